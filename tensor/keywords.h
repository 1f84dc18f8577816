#ifndef QUERN_TENSOR_KEYWORDS_H_
#define QUERN_TENSOR_KEYWORDS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rewrite/dtype.h"
#include "rewrite/op.h"

namespace quern::notation {

/// name(a, …); max and min of more than two arguments are nested.
struct FunctionRow {
  std::string_view name;
  Op op;
  int min_args;
  int max_args;
};
std::span<const FunctionRow> Functions();

/// name[k](…)
struct ReductionRow {
  std::string_view name;
  Op op;
};
std::span<const ReductionRow> Reductions();

/// a symbol b. Levels count from the loosest, 0.
struct BinaryRow {
  std::string_view symbol;
  int level;
  Op op;
  bool swapped;  ///< a > b is b < a
};
std::span<const BinaryRow> BinaryOperators();
inline constexpr int kComparisonLevel = 2;
inline constexpr int kUnaryLevel = 5;

/// The type of a cast written `name(x)`.
std::optional<DType> CastType(std::string_view name);

/// Whether a name cannot be that of a tensor or an index variable.
bool IsReserved(std::string_view name);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_KEYWORDS_H_
