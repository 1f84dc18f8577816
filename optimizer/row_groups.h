#ifndef QUERN_OPTIMIZER_ROW_GROUPS_H_
#define QUERN_OPTIMIZER_ROW_GROUPS_H_

#include <vector>

#include "optimizer/access_pattern.h"
#include "rewrite/range_sets.h"

namespace quern {

// A group is a kernel with temporaries: a chain of statements through which blocks of rows go, such
// as the scores, weights and results of an attention. Its rows are the loop along which a product
// of the chain uses other operands again.

/// Whether a REDUCE is a product of operands of which some change along `rows` and some do not.
bool MultipliesRows(const RangeSets& sets, const StatementAccesses& reduce, const UOp* rows);

/// The longest of the `shared` loops of a group's stores along which a product uses operands again;
/// nullptr if there is none.
const UOp* RowsOfGroup(const UOp* kernel, const RangeSets& sets,
                       const std::vector<const UOp*>& shared);

/// Bytes of what does not change along `rows`, for one value of the other `shared` loops: each tile
/// of rows reads it again.
int64_t SharedOperandBytes(const UOp* kernel, const RangeSets& sets,
                           const std::vector<const UOp*>& shared, const UOp* rows);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_ROW_GROUPS_H_
