#ifndef QUERN_REWRITE_TEMPORARIES_H_
#define QUERN_REWRITE_TEMPORARIES_H_

#include <span>
#include <vector>

#include "rewrite/uop.h"

namespace quern {

/// A temporary of a kernel AST: a SCRATCH that one store of a sink writes and later ones read
/// (docs/semantics.md).
struct Temporary {
  const UOp* buffer = nullptr;
  const UOp* store = nullptr;        ///< that writes it
  std::vector<const UOp*> accesses;  ///< its INDEX nodes
};

/// The temporaries of one part of a kernel, by slot.
std::vector<Temporary> FindTemporaries(const UOp* part);

bool HasTemporaries(const UOp* part);

/// The ranges that all of `accesses`, INDEX nodes of one buffer, use alike: each occurs in every
/// offset as the same multiple, and what is left of the offsets is smaller than that multiple. So
/// iterations with different values of such a range touch different elements, and what one of them
/// writes only the same one reads. Outermost first.
std::vector<const UOp*> RangesUsedAlike(std::span<const UOp* const> accesses);

/// The loops that the stores of a kernel with temporaries may share: ranges of every store, closed
/// by no REDUCE, that all accesses of each temporary use alike. Outermost first; none without
/// temporaries.
std::vector<const UOp*> SharedRanges(const UOp* part);

}  // namespace quern

#endif  // QUERN_REWRITE_TEMPORARIES_H_
