#ifndef QUERN_CODEGEN_FILL_BLOCKS_H_
#define QUERN_CODEGEN_FILL_BLOCKS_H_

#include <functional>
#include <vector>

#include "codegen/item.h"

namespace quern {

/// One of the statements that together fill the buffer of a STAGE.
struct FillPart {
  const UOp* lane = nullptr;      ///< the register axis that becomes its lanes, if any
  std::vector<const UOp*> loops;  ///< in place of those of the item
  const UOp* statement = nullptr;
};

struct FillContext {
  UOpGraph& graph;
  const RangeSets& sets;             ///< of the kernel
  std::function<int()> unused_axis;  ///< an axis number that no range has
};

/// Cuts `fill`, the statement that fills a STAGE, into parts that read memory as it lies. If the
/// operand is contiguous along one of the loops and not along the buffer's last dimension, that
/// loop is done in blocks of a vector, which Expand transposes in registers, and the rest of it one
/// by one. Where a matrix instruction wants groups of neighbours, which are the last dimension
/// then, whole groups move.
std::vector<FillPart> CutIntoBlocks(const FillContext& context, const Item& item, const UOp* fill);

}  // namespace quern

#endif  // QUERN_CODEGEN_FILL_BLOCKS_H_
