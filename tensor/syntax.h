#ifndef QUERN_TENSOR_SYNTAX_H_
#define QUERN_TENSOR_SYNTAX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewrite/dtype.h"
#include "rewrite/op.h"
#include "tensor/source_error.h"

namespace quern::notation {

enum class ExprKind : uint8_t {
  kInteger,   ///< a literal without a type of its own
  kReal,      ///< a literal without a type of its own
  kVariable,  ///< an index variable
  kRead,      ///< name[args…], or pad(name[args…])
  kOp,        ///< op applied to args: operators and functions alike
  kCast,      ///< dtype(args[0])
  kReduce,    ///< op over `variables` of args[0]
};

struct Name {
  std::string text;
  SourceSpan span{};
};

/// A node of the syntax tree. Plain data: which members count depends on `kind`.
struct Expr {
  ExprKind kind;
  SourceSpan span{};
  int depth = 1;  ///< of the tree below; the parser bounds it, so recursion over it is safe

  int64_t integer = 0;
  double real = 0;
  std::string name{};   ///< of the variable or the tensor
  bool padded = false;  ///< kRead: zero outside the tensor
  Op op = Op::kAdd;     ///< kOp and kReduce
  DType dtype{};        ///< kCast
  std::vector<const Expr*> args{};
  std::vector<Name> variables{};  ///< kReduce: what it runs over
};

/// name[variables…] = value
struct Statement {
  Name name;
  std::vector<Name> variables;
  const Expr* value = nullptr;
};

/// A parsed formula; owns its nodes.
struct Formula {
  std::string text;
  std::vector<Statement> statements;
  std::vector<std::unique_ptr<Expr>> nodes;
};

}  // namespace quern::notation

#endif  // QUERN_TENSOR_SYNTAX_H_
