#ifndef QUERN_TENSOR_TYPING_H_
#define QUERN_TENSOR_TYPING_H_

#include <functional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "tensor/syntax.h"

namespace quern::notation {

/// The type of every node of an expression. For a read or a cast inside a `sum` this is the type in
/// which the sum computes (f32 for f16); for a reduction `accumulator` has the type of its loop and
/// `type` that of its result.
struct ExprTypes {
  absl::flat_hash_map<const Expr*, DType> type;
  absl::flat_hash_map<const Expr*, DType> accumulator;
};

/// The type in which sums and products of `t` are computed: f32 for f16 and bf16, i32 for i8 and
/// i16, u32 for u8 and u16, otherwise `t`.
DType WideType(DType t);

/// The type of a statement's value; adds all nodes of it to `types`. `tensor_type` gives the types
/// of tensors that are read. Operands of different types are an error, literals take the type of
/// what they meet.
absl::StatusOr<DType> InferTypes(const Formula& formula, const Expr* value,
                                 const std::function<DType(const std::string&)>& tensor_type,
                                 ExprTypes& types);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_TYPING_H_
