#ifndef QUERN_TESTS_UNIT_GROUP_KERNEL_H_
#define QUERN_TESTS_UNIT_GROUP_KERNEL_H_

#include <string_view>
#include <vector>

#include "rewrite/check.h"
#include "tensor/lower.h"
#include "tensor/parser.h"
#include "tests/unit/formula_kernel.h"

namespace quern {

/// All statements of a formula as one kernel with temporaries, whether that pays or not.
inline FormulaKernel GroupKernelOf(std::string_view text, std::string_view sizes,
                                   std::string_view dtypes = "") {
  NotationOptions options;
  QUERN_CHECK(ParseSizes(sizes, options).ok());
  if (!dtypes.empty()) QUERN_CHECK(ParseDTypes(dtypes, options).ok());
  absl::StatusOr<notation::Formula> formula = notation::ParseFormula(text);
  QUERN_CHECK_MSG(formula.ok(), std::string(formula.status().message()).c_str());
  absl::StatusOr<notation::FormulaMeaning> meaning = notation::ResolveFormula(*formula, options);
  QUERN_CHECK_MSG(meaning.ok(), std::string(meaning.status().message()).c_str());
  std::vector<int> statements;
  for (size_t i = 0; i < formula->statements.size(); ++i) {
    statements.push_back(static_cast<int>(i));
  }
  const std::vector<bool> inlined(statements.size(), false);
  const notation::StatementGroup group =
      notation::FindSharedVariables(*formula, *meaning, statements, inlined);
  FormulaKernel kernel;
  kernel.graph = std::make_shared<UOpGraph>();
  absl::StatusOr<const UOp*> sink =
      notation::LowerGroup(*kernel.graph, *formula, *meaning, group, inlined);
  QUERN_CHECK_MSG(sink.ok(), std::string(sink.status().message()).c_str());
  kernel.sink = *sink;
  return kernel;
}

inline constexpr const char* kAttention =
    "S[h,i,j] = sum[d](Q[h,i,d]*K[h,j,d])*0.125; M[h,i] = max[j](S[h,i,j]); "
    "P[h,i,j] = exp(S[h,i,j]-M[h,i]); "
    "O[h,i,d] = sum[j](P[h,i,j]*V[h,j,d])/sum[j](P[h,i,j])";
inline constexpr const char* kPerceptron =
    "H[i,k] = max(sum[c](X[i,c]*U[c,k]) + b[k], 0); Y[i,o] = sum[k](H[i,k]*W[k,o])";

}  // namespace quern

#endif  // QUERN_TESTS_UNIT_GROUP_KERNEL_H_
