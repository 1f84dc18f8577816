#include "codegen/decompose_float16.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "rewrite/build.h"

namespace quern {
namespace {

using Sources = absl::InlinedVector<const UOp*, 8>;

bool IsFloat16(DType t) { return t.scalar == ScalarType::kF16 || t.scalar == ScalarType::kBF16; }

bool IsElementaryFunction(Op op) {
  return op == Op::kExp || op == Op::kExp2 || op == Op::kLog || op == Op::kLog2 || op == Op::kSin ||
         op == Op::kTanh || op == Op::kErf;
}

// Operations that give one of their values back, or its bits.
bool OnlyMoves(Op op) { return op == Op::kWhere || op == Op::kBitcast || op == Op::kCast; }

const UOp* Widen(UOpGraph& graph, const UOp* x) {
  const DType wide = kF32Type.WithLanes(x->dtype.lanes);
  return x->IsConst() ? FloatConst(graph, wide, x->FloatValue()) : Cast(graph, x, wide);
}

const UOp* ConvertByWayOfF32(UOpGraph& graph, const UOp* x, DType to) {
  return Cast(graph, IsFloat16(x->dtype) ? Widen(graph, x) : Cast(graph, x, kF32Type), to);
}

const UOp* ComputeInF32(UOpGraph& graph, const UOp* u, Sources& sources) {
  for (const UOp*& s : sources) s = Widen(graph, s);
  if (GetOpInfo(u->op).comparison) return graph.Make(u->op, u->dtype, sources, u->arg);
  const UOp* wide = graph.Make(u->op, kF32Type.WithLanes(u->dtype.lanes), sources, u->arg);
  return Cast(graph, wide, u->dtype);
}

}  // namespace

const UOp* DecomposeFloat16(UOpGraph& graph, const UOp* root, bool native_f16_arithmetic) {
  absl::flat_hash_map<const UOp*, const UOp*> done;
  Sources sources;
  for (const UOp* u : Toposort(root)) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    const UOp* result = nullptr;
    if (IsElementwise(u->op) && u->source_count > 0) {
      // Of a comparison the sources have the type that counts.
      const DType from = u->src(u->source_count - 1)->dtype;
      const bool native =
          native_f16_arithmetic && from.scalar == ScalarType::kF16 && !IsElementaryFunction(u->op);
      if (u->op == Op::kCast) {
        const bool direct = from.scalar == ScalarType::kF32 || u->dtype.scalar == ScalarType::kF32;
        if (!direct && (IsFloat16(from) || IsFloat16(u->dtype))) {
          result = ConvertByWayOfF32(graph, sources[0], u->dtype);
        }
      } else if (!OnlyMoves(u->op) && IsFloat16(from) && !native) {
        result = ComputeInF32(graph, u, sources);
      }
    }
    done[u] = result != nullptr ? result : WithSources(graph, u, sources);
  }
  return done.at(root);
}

}  // namespace quern
