#ifndef QUERN_RUNTIME_TILE_PERMISSION_H_
#define QUERN_RUNTIME_TILE_PERMISSION_H_

#include <string>
#include <vector>

namespace quern {

/// Asks the kernel to let this process use the tile registers of AMX, whose state it does not save
/// unasked. False where it does not know of them or refuses. What is granted is granted to all
/// threads, and asking again does no harm.
bool RequestTileData();

/// Removes LLVM's features that work on tiles from those of a CPU, unless `request`, which is
/// called only if there are any, gets leave to use them: such a CPU counts as one without.
void DropForbiddenTiles(std::vector<std::string>& features, bool (*request)() = RequestTileData);

}  // namespace quern

#endif  // QUERN_RUNTIME_TILE_PERMISSION_H_
