#include "codegen/decompose_math.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "codegen/math_functions.h"

namespace quern {
namespace {

constexpr uint64_t kMathOps =
    uint64_t{1} << static_cast<int>(Op::kExp) | uint64_t{1} << static_cast<int>(Op::kExp2) |
    uint64_t{1} << static_cast<int>(Op::kLog) | uint64_t{1} << static_cast<int>(Op::kLog2) |
    uint64_t{1} << static_cast<int>(Op::kSin) | uint64_t{1} << static_cast<int>(Op::kTanh) |
    uint64_t{1} << static_cast<int>(Op::kErf);

const UOp* Build(const MathBuilder& b, Op op, const UOp* x) {
  switch (op) {
    case Op::kExp:
      return BuildExp(b, x);
    case Op::kExp2:
      return BuildExp2(b, x);
    case Op::kLog:
      return BuildLog(b, x);
    case Op::kLog2:
      return BuildLog2(b, x);
    case Op::kSin:
      return BuildSin(b, x);
    case Op::kTanh:
      return BuildTanh(b, x);
    case Op::kErf:
      return BuildErf(b, x);
    default:
      QUERN_CHECK_MSG(false, "no elementary function");
  }
}

}  // namespace

const UOp* DecomposeMath(UOpGraph& graph, const UOp* root) {
  absl::flat_hash_map<const UOp*, const UOp*> done;
  absl::InlinedVector<const UOp*, 8> sources;
  for (const UOp* u : Toposort(root)) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    if ((kMathOps & OpBit(u->op)) != 0) {
      done[u] = Build(MathBuilder(graph, u->dtype), u->op, sources[0]);
    } else {
      done[u] = WithSources(graph, u, sources);
    }
  }
  return done.at(root);
}

}  // namespace quern
