#ifndef QUERN_OPTIMIZER_READS_IN_PLACE_H_
#define QUERN_OPTIMIZER_READS_IN_PLACE_H_

#include <cstdint>

#include "optimizer/access_pattern.h"
#include "rewrite/target.h"

namespace quern {

/// Whether tiles of a product do best to read their lanes where they lie, instead of from a packed
/// panel: `index` walks in equal steps over the reduced axis, `lanes` neighbours at a time; what
/// `row_tiles` tiles of rows read again stays in the second-level cache as it lies; and they are
/// too few to make up for packing it. (A panel may fit and not stay: rows whose distance is a large
/// power of two fall on a few sets of the cache.)
bool ReadsInPlace(const Target& target, const StatementAccesses& reduce, const UOp* index,
                  int64_t lanes, int64_t row_tiles);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_READS_IN_PLACE_H_
