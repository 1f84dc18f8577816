#ifndef QUERN_TENSOR_FUSION_H_
#define QUERN_TENSOR_FUSION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tensor/shapes.h"

namespace quern::notation {

/// Which statements are written into the kernels that use them instead of becoming kernels with a
/// buffer: those whose inlining at most doubles the work of the kernels concerned (a statement with
/// a reduction: a quarter more), as EstimateWork counts it. Outputs and in-place updates never are.
absl::StatusOr<std::vector<bool>> ChooseInlined(const Formula& formula,
                                                const FormulaMeaning& meaning);

/// The slots of the params that a kernel loads from, ascending.
std::vector<int64_t> LoadedSlots(const UOp* sink);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_FUSION_H_
