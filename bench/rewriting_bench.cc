#include <benchmark/benchmark.h>

#include "codegen/lower.h"
#include "optimizer/build_kernel.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/simplify.h"
#include "runtime/cpu_target.h"

namespace quern {
namespace {

const UOp* Product(UOpGraph& g, int64_t n) {
  const UOp* size = IndexConst(g, n);
  const UOp* i = Range(g, n, 0, AxisType::kLoop);
  const UOp* j = Range(g, n, 1, AxisType::kLoop);
  const UOp* k = Range(g, n, 2, AxisType::kReduce);
  auto at = [&](int slot, const UOp* row, const UOp* column) {
    return Index(g, Param(g, kF32Type, slot, n * n), Add(g, Mul(g, row, size), column));
  };
  const UOp* product = Mul(g, Load(g, at(1, i, k)), Load(g, at(2, k, j)));
  return Sink(g, {{Store(g, at(0, i, j), Reduce(g, Op::kAdd, product, {{k}}))}});
}

void InternedMake(benchmark::State& state) {
  UOpGraph base;
  const UOp* one = IndexConst(base, 1);
  base.Freeze();
  for (auto _ : state) {
    state.PauseTiming();
    UOpGraph overlay(&base);
    const UOp* u = one;
    state.ResumeTiming();
    for (int i = 0; i < 10000; ++i) u = Add(overlay, u, one);
    benchmark::DoNotOptimize(u);
  }
  state.SetItemsProcessed(state.iterations() * 10000);
}
BENCHMARK(InternedMake)->Threads(1)->Threads(2)->UseRealTime();

void SimplifyCandidate(benchmark::State& state) {
  const Target target = DetectCpu();
  UOpGraph base;
  Scheduler scheduler(base, Product(base, 1024), target);
  ApplyHeuristic(scheduler);
  base.Freeze();
  for (auto _ : state) {
    UOpGraph overlay(&base);
    benchmark::DoNotOptimize(Simplify(overlay, scheduler.kernel()));
  }
}
BENCHMARK(SimplifyCandidate)->Unit(benchmark::kMicrosecond);

void LowerCandidate(benchmark::State& state) {
  const Target target = DetectCpu();
  UOpGraph base;
  Scheduler scheduler(base, Product(base, 1024), target);
  ApplyHeuristic(scheduler);
  base.Freeze();
  for (auto _ : state) {
    UOpGraph overlay(&base);
    benchmark::DoNotOptimize(Lower(overlay, scheduler.kernel(), target));
  }
}
BENCHMARK(LowerCandidate)->Unit(benchmark::kMicrosecond);

void CompileCandidate(benchmark::State& state) {
  const Target target = DetectCpu();
  UOpGraph base;
  Scheduler scheduler(base, Product(base, 1024), target);
  ApplyHeuristic(scheduler);
  base.Freeze();
  for (auto _ : state) {
    UOpGraph overlay(&base);
    benchmark::DoNotOptimize(BuildKernel(overlay, scheduler.kernel(), target));
  }
}
BENCHMARK(CompileCandidate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace quern
