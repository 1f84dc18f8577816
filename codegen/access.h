#ifndef QUERN_CODEGEN_ACCESS_H_
#define QUERN_CODEGEN_ACCESS_H_

#include <cstdint>
#include <utility>

#include "rewrite/graph.h"

namespace quern {

/// How a kIndex node walks through memory, read off the forms that Expand makes.
struct Access {
  enum class Kind : uint8_t {
    kScalar,   ///< one element
    kSame,     ///< every lane the same element: `base`
    kStrided,  ///< lane l at base + stride · l
    kTile,     ///< lane l at base + stride · (l // columns) + l % columns
    kGather,   ///< lane l at offset[l]
  };
  enum class Gate : uint8_t { kNone, kScalar, kLanes };

  Kind kind = Kind::kScalar;
  Gate gate_kind = Gate::kNone;
  const UOp* buffer = nullptr;
  const UOp* base = nullptr;    ///< scalar part of the offset; nullptr: 0
  int64_t stride = 0;           ///< elements
  int64_t columns = 0;          ///< of a tile
  const UOp* offset = nullptr;  ///< the whole offset, for gathers
  const UOp* gate = nullptr;    ///< scalar or vector, as `gate_kind` says
};

Access ReadAccess(const UOp* index);

/// The offsets of a tile, which ReadAccess knows again.
const UOp* TileOffsets(UOpGraph& graph, const UOp* base, int rows, int64_t stride, int columns);

/// Splits a base `x + constant`, so that neighbouring accesses share the address of x; x is nullptr
/// if there is only a constant.
std::pair<const UOp*, int64_t> SplitBase(const UOp* base);

}  // namespace quern

#endif  // QUERN_CODEGEN_ACCESS_H_
