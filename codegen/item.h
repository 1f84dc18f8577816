#ifndef QUERN_CODEGEN_ITEM_H_
#define QUERN_CODEGEN_ITEM_H_

#include <vector>

#include "rewrite/graph.h"
#include "rewrite/range_sets.h"
#include "rewrite/target.h"

namespace quern {

/// One piece of work of a kernel: a REDUCE with its accumulator, a SCAN with its carry, a STAGE
/// with its fast buffer, or a STORE of the kernel. Linearization decides for each where its loops
/// stand.
struct Item {
  const UOp* node = nullptr;
  size_t number = 0;              ///< in topological order
  std::vector<const UOp*> path;   ///< loops around the whole item, outermost first
  std::vector<const UOp*> loops;  ///< loops of the update or fill statement, below `path`
  std::vector<const UOp*> tile;   ///< loops inside the reduction: dimensions of a tile in memory
  std::vector<const UOp*> output_registers;  ///< free register axes, lane axis last
  std::vector<const UOp*> reduce_registers;  ///< register axes that the item closes
  const UOp* lane = nullptr;                 ///< the register axis that becomes SIMD lanes, if any
  std::vector<const Item*> inputs;           ///< items whose result this one reads
  bool once = false;                         ///< a STAGE that is filled by a phase of its own
  /// In a kernel with temporaries: the number of the only STORE that it is for, −1 if several are.
  int owner = 0;
  bool reads_temporary = false;  ///< directly or not
  const UOp* result = nullptr;   ///< what consumers read in place of `node`
};

/// Whether a node becomes an item. A SCAN over registers is part of the statement that reads it.
inline bool IsItemNode(const UOp* u) {
  if (u->op == Op::kScan) return !IsRegisterAxis(u->src(1)->range_type());
  return u->op == Op::kReduce || u->op == Op::kStage || u->op == Op::kStore;
}

/// Chooses `lane` of every item: the register axis that gives the fewest instructions, counting how
/// loads and stores walk through memory along it. Items that meet in an accumulator agree on the
/// axis where they share it.
void ChooseLanes(const RangeSets& sets, const Target& target, std::vector<Item*>& items);

}  // namespace quern

#endif  // QUERN_CODEGEN_ITEM_H_
