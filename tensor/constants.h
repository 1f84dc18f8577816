#ifndef QUERN_TENSOR_CONSTANTS_H_
#define QUERN_TENSOR_CONSTANTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensor/shapes.h"
#include "tensor/syntax.h"

namespace quern::notation {

/// Marks the inputs named in `constants`, and with them every intermediate that is computed of
/// constants alone: its kernel runs once, and what reads it may pack it ahead like an input.
///
///     "V[j] = sum[k](W[j,k]*W[j,k]); Y[i,j] = X[i,j]/V[j]", constants {"W"}:  V is constant, too
///
/// Not outputs: the caller may give each run another buffer for them. Errors: a name that is no
/// input.
absl::Status MarkConstants(const Formula& formula, const std::vector<std::string>& constants,
                           FormulaMeaning& meaning);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_CONSTANTS_H_
