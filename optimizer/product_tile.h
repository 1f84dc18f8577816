#ifndef QUERN_OPTIMIZER_PRODUCT_TILE_H_
#define QUERN_OPTIMIZER_PRODUCT_TILE_H_

#include <vector>

#include "optimizer/access_pattern.h"
#include "optimizer/scheduler.h"
#include "rewrite/range_sets.h"

namespace quern {

/// The register tile of a product: `lanes` neighbours along one output axis, `rows` along another
/// (or two others).
struct ProductTile {
  const UOp* lane_axis = nullptr;
  int64_t lanes = 1;
  const UOp* row_axis = nullptr;  ///< nullptr: one row
  int64_t rows = 1;
  const UOp* other_axis = nullptr;  ///< of more rows, if those of one axis are too few to keep the
  int64_t others = 1;               ///< multipliers busy: `rows` times `others` in all
  double cycles = 0;                ///< estimate for the whole statement on one core
};

/// Tiles, the one with the lowest estimate first; empty if no output axis can have lanes. For each
/// pair of output axes and each tile that fits the registers it counts, padding included:
/// multiply-adds, vector loads and broadcasts of one step of the reduction, of which a core does
/// two each in a cycle; the copying of operands that lie apart along the lanes (lowering packs them
/// by transposed blocks); and the stores. Behind the first come others worth a measurement.
///
/// So lanes follow what the inner loop reads, not what the end stores: the pixels of a 3×3
/// convolution over 14×14 outputs are rows of a tile whose lanes are output channels.
std::vector<ProductTile> ProductTiles(const Scheduler& s, const RangeSets& sets,
                                      const StatementAccesses& reduce,
                                      const StatementAccesses* store);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_PRODUCT_TILE_H_
