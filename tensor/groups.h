#ifndef QUERN_TENSOR_GROUPS_H_
#define QUERN_TENSOR_GROUPS_H_

#include <vector>

#include "tensor/lower.h"

namespace quern::notation {

/// Chains of the statements that are not inlined, each of which becomes one kernel: what all but
/// its last statement write is read inside the chain only, at the same element of some outer loops.
/// So a block of rows at a time goes through the whole chain and the rows never leave the caches.
///
/// That pays where the intermediates are larger than a cache and some product of the chain uses
/// what does not depend on the rows, such as the keys of an attention, again for each row.
std::vector<StatementGroup> ChooseGroups(const Formula& formula, const FormulaMeaning& meaning,
                                         const std::vector<bool>& inlined);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_GROUPS_H_
