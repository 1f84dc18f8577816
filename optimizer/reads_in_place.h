#ifndef QUERN_OPTIMIZER_READS_IN_PLACE_H_
#define QUERN_OPTIMIZER_READS_IN_PLACE_H_

#include <cstdint>

#include "optimizer/access_pattern.h"
#include "rewrite/range_sets.h"
#include "rewrite/target.h"

namespace quern {

/// Bytes that a product reads through `index` for given values of the loops that all its operands
/// follow: what one operand would take in a cache for the others to meet it again.
int64_t OperandBytes(const RangeSets& sets, const StatementAccesses& reduce, const UOp* index);

/// Whether a lane operand stays in the second-level cache as it lies: it is dense, takes at most
/// a quarter of it, and is walked through in equal steps. Nothing is gained by packing it.
bool StaysInCache(const Target& target, const RangeSets& sets, const StatementAccesses& reduce,
                  const UOp* index);

/// Whether tiles of a product do best to read their lanes where they lie, instead of from a packed
/// panel, although not all of the operand stays in a cache: `index` walks in equal steps over the
/// reduced axis, `lanes` neighbours at a time; what `row_tiles` tiles of rows read again does stay
/// in the second-level cache; and they are too few to make up for packing it. (A panel may fit and
/// not stay: rows whose distance is a large power of two fall on a few sets of the cache.)
bool ReadsInPlace(const Target& target, const StatementAccesses& reduce, const UOp* index,
                  int64_t lanes, int64_t row_tiles);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_READS_IN_PLACE_H_
