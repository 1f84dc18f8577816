#include "codegen/stage.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/matrix_instructions.h"
#include "rewrite/build.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// Axes that the buffer of a STAGE has as dimensions: loops in nest order, then the register axes,
// those of reductions first (the lane axis, always last, is moved there when lanes are chosen).
std::vector<const UOp*> TileRanges(const RangeSets& sets, const UOp* load, int tile_begin) {
  std::vector<const UOp*> loops;
  std::vector<const UOp*> reduce_registers;
  std::vector<const UOp*> output_registers;
  for (const UOp* r : sets.Members(sets.Of(load))) {
    if (IsRegisterAxis(r->range_type())) {
      (IsReduceAxis(r->range_type()) ? reduce_registers : output_registers).push_back(r);
    } else if (r->range_axis() >= tile_begin) {
      loops.push_back(r);
    }
  }
  loops.insert(loops.end(), reduce_registers.begin(), reduce_registers.end());
  loops.insert(loops.end(), output_registers.begin(), output_registers.end());
  return loops;
}

// Whether the packed form of a whole operand may be kept: it is constant, and tiles neither overlap
// much nor are chosen by data.
bool PacksOnce(const RangeSets& sets, const UOp* sink, const UOp* load) {
  constexpr int64_t kMostGrowth = 2;
  const UOp* buffer = load->src(0)->src(0);
  if (buffer->op != Op::kParam || !IsConstantSlot(sink, buffer->slot())) return false;
  for (const UOp* u : Toposort(load)) {
    if (u != load && u->op == Op::kLoad) return false;
  }
  int64_t elements = 1;
  for (const UOp* r : sets.Members(sets.Of(load))) elements *= r->range_size();
  return elements <= kMostGrowth * buffer->buffer_size();
}

// The types that matrix instructions want of loads that are narrower.
absl::flat_hash_map<const UOp*, ScalarType> WidenedFactors(const std::vector<const UOp*>& order,
                                                           const Target& target) {
  absl::flat_hash_map<const UOp*, ScalarType> types;
  for (const UOp* reduce : order) {
    if (reduce->op != Op::kReduce) continue;
    for (const UOp* u : Toposort(reduce->src(0))) {
      if (u->op != Op::kLoad) continue;
      const ScalarType type = PackedType(reduce, u->src(0), target);
      if (type != u->dtype.scalar) types[u] = type;
    }
  }
  return types;
}

}  // namespace

const UOp* StageOperands(UOpGraph& graph, const UOp* sink, const Target& target) {
  if ((sink->arg.a & kNoLocalsFlag) != 0) return sink;
  const RangeSets sets(sink);
  uint64_t local_set = 0;
  int tile_begin = -1;
  for (const UOp* r : sets.ranges()) {
    if (r->range_type() != AxisType::kLocal) continue;
    if (tile_begin < 0) tile_begin = r->range_axis();
    local_set |= sets.Bit(r);
  }
  if (local_set == 0) return sink;

  const std::vector<const UOp*> order = Toposort(sink);
  absl::flat_hash_set<const UOp*> written;
  for (const UOp* u : order) {
    if (u->op == Op::kStore) written.insert(u->src(0)->src(0));
  }
  const absl::flat_hash_map<const UOp*, ScalarType> types = WidenedFactors(order, target);
  absl::flat_hash_map<const UOp*, const UOp*> done;
  absl::flat_hash_map<const UOp*, const UOp*> widened;  // the STAGE of a load in such a type
  std::vector<const UOp*> sources;
  for (const UOp* u : order) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    const UOp* rebuilt = WithSources(graph, u, sources);
    if (u->op == Op::kCast) {
      const auto wide = widened.find(u->src(0));
      if (wide != widened.end()) rebuilt = Cast(graph, wide->second, u->dtype);
    }
    done[u] = rebuilt;
    if (u->op != Op::kLoad || written.contains(u->src(0)->src(0))) continue;
    const uint64_t used = sets.Of(u);
    if ((used & local_set) == local_set) continue;  // No LOCAL loop reuses it.
    const std::vector<const UOp*> ranges = TileRanges(sets, u, tile_begin);
    bool has_loop = false;
    for (const UOp* r : ranges) has_loop |= !IsRegisterAxis(r->range_type());
    if (!has_loop) continue;  // One vector or scalar: it stays in registers.
    std::vector<const UOp*> stage = {rebuilt};
    stage.insert(stage.end(), ranges.begin(), ranges.end());
    const int64_t once = PacksOnce(sets, sink, u) ? kOnceFlag : 0;
    done[u] = graph.Make(Op::kStage, u->dtype, stage, {once, 0});
    if (const auto type = types.find(u); type != types.end()) {
      stage[0] = Cast(graph, rebuilt, DType(type->second));
      widened[u] = graph.Make(Op::kStage, stage[0]->dtype, stage, {once, 0});
    }
  }
  return done.at(sink);
}

}  // namespace quern
