#ifndef QUERN_CODEGEN_SHARED_LOOPS_H_
#define QUERN_CODEGEN_SHARED_LOOPS_H_

#include <deque>
#include <vector>

#include "codegen/item.h"

namespace quern {

// The stores of a kernel with temporaries run one after the other inside the loops that all of them
// have outermost, and have the loops below for themselves.

/// Those outermost loops, as far as all temporaries are used alike in them.
std::vector<const UOp*> FindSharedLoops(const UOp* sink, const RangeSets& sets);

/// Sets `owner` of all items, which are in topological order.
void FindOwners(std::deque<Item>& items);

/// Shortens `shared` until no item that reads a temporary stands further out: such an item waits
/// for all iterations of the store that writes it. True if there was one; then items must be placed
/// anew.
bool LeaveWaiting(const std::deque<Item>& items, std::vector<const UOp*>& shared);

/// The items that stand further out than the innermost of the `shared` loops, outermost first. They
/// come before all stores: coming back to an outer loop would end that one.
std::vector<Item*> ItemsAhead(std::deque<Item>& items, const std::vector<const UOp*>& shared);

}  // namespace quern

#endif  // QUERN_CODEGEN_SHARED_LOOPS_H_
