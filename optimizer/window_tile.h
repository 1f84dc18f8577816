#ifndef QUERN_OPTIMIZER_WINDOW_TILE_H_
#define QUERN_OPTIMIZER_WINDOW_TILE_H_

#include <cstdint>
#include <vector>

#include "optimizer/access_pattern.h"
#include "optimizer/scheduler.h"
#include "rewrite/range_sets.h"

namespace quern {

/// The register tile of outputs that are no product.
struct OutputTile {
  int64_t lanes = 1;
  const UOp* row_axis = nullptr;  ///< nullptr: one row
  int64_t rows = 1;
  bool operator==(const OutputTile&) const = default;
};

/// Tiles with lanes along `lane` for a reduction over a window of whole rows of lanes, such as a
/// depthwise convolution or a pooling with channels last, the best first. Empty if `reduce` is
/// none.
///
/// Such a kernel waits for its first-level cache. So each tile costs the lines that it brings
/// there: those of all places in its windows, or only those that the tile before did not have, if
/// these are still there. Rows of images often lie a power of two apart, or nearly so, and fall on
/// few sets of the cache; a tile of many rows then evicts its own lines.
std::vector<OutputTile> WindowTiles(const Scheduler& s, const RangeSets& sets,
                                    const StatementAccesses& reduce, const StatementAccesses& store,
                                    const UOp* lane);

/// Of a window of two axes that register tiles of neighbouring pixels slide along: the outer one if
/// no tile reaches from one of its steps to the next, so that unrolling it would share nothing;
/// nullptr otherwise. As a loop it brings the pixels of one row of the image at a time, and the
/// borders above and below are its bounds instead of masks.
const UOp* WindowRowsAxis(const RangeSets& sets, const StatementAccesses& reduce);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_WINDOW_TILE_H_
