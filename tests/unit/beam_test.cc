#include "optimizer/beam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <set>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "runtime/cpu_target.h"
#include "tests/unit/child_processes.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Target TwoCores() {
  Target target = DetectCpu();
  target.cores = 2;
  return target;
}

BeamOptions Small(int width = 2, double seconds = 3) {
  BeamOptions options;
  options.width = width;
  options.seconds = seconds;
  options.max_rounds = 3;
  return options;
}

// Compiles a schedule and runs it here against the interpreter.
std::string CheckActions(const FormulaKernel& k, const std::vector<Action>& actions) {
  const Target target = TwoCores();
  std::unique_ptr<CpuDevice> device = *CpuDevice::Create(2);
  Scheduler scheduler(*k.graph, k.sink, target);
  if (absl::Status s = scheduler.ApplyAll(actions); !s.ok()) return std::string(s.message());
  return RunAgainstInterpreter(*k.graph, k.sink, scheduler.kernel(), target, *device);
}

std::vector<Action> HeuristicActions(const FormulaKernel& k, const Target& target) {
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  return scheduler.actions();
}

TEST(BeamTest, FindsARightSchedule) {
  FormulaKernel k = MatmulKernel(32, 32, 32);
  const Target target = TwoCores();
  std::vector<SearchProgress> progress;
  SearchHooks hooks;
  hooks.progress = [&](const SearchProgress& p) { progress.push_back(p); };
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, target, Small(), hooks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->candidates, 2);
  EXPECT_GE(result->rounds, 1);
  EXPECT_GT(result->seconds, 0);
  EXPECT_GT(result->heuristic_seconds, 0);
  EXPECT_LE(result->max_rel_error, ToleranceFor(k.sink));
  EXPECT_EQ(CheckActions(k, result->actions), "");
  ASSERT_FALSE(progress.empty());
  for (size_t i = 1; i < progress.size(); ++i) {
    EXPECT_GE(progress[i].candidates, progress[i - 1].candidates);
    EXPECT_GE(progress[i].elapsed_seconds, progress[i - 1].elapsed_seconds);
  }
  EXPECT_EQ(progress.back().limit_seconds, 3);
  EXPECT_THAT(ChildProcesses(), IsEmpty());
}

// Times two schedules in turns, in a process of their own: the median of the ratios.
double Ratio(const FormulaKernel& k, const std::vector<Action>& a, const std::vector<Action>& b) {
  const Target target = TwoCores();
  std::unique_ptr<Measurer> measurer = *Measurer::Create(k.sink, target, {});
  std::vector<int64_t> ids;
  for (const std::vector<Action>& actions : {a, b}) {
    Candidate c;
    c.graph = std::make_shared<UOpGraph>();
    Scheduler scheduler(*c.graph, c.graph->Import(k.sink), target);
    QUERN_CHECK(scheduler.ApplyAll(actions).ok());
    c.kernel = scheduler.kernel();
    absl::StatusOr<int64_t> id = measurer->Prepare(c);
    QUERN_CHECK(id.ok());
    ids.push_back(*id);
  }
  absl::StatusOr<std::vector<std::vector<double>>> times = measurer->TimeInterleaved(ids, 61);
  QUERN_CHECK(times.ok());
  std::vector<double> ratios;
  for (size_t i = 0; i < (*times)[0].size(); ++i) {
    ratios.push_back((*times)[0][i] / (*times)[1][i]);
  }
  return Median(ratios);
}

TEST(BeamTest, NeverEndsSlowerThanTheHeuristic) {
  for (int64_t size : {64, 128, 512}) {
    FormulaKernel k = MatmulKernel(size, size, size);
    const std::vector<Action> heuristic = HeuristicActions(k, TwoCores());
    double best = 1e9;
    // A busy machine disturbs single comparisons; a search that is wrong fails all of them.
    for (int attempt = 0; attempt < 4 && best > 1.05; ++attempt) {
      const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), Small(2, 4));
      ASSERT_TRUE(result.ok()) << result.status();
      best =
          std::min(best, result->actions == heuristic ? 1.0 : Ratio(k, result->actions, heuristic));
    }
    EXPECT_LE(best, 1.05) << size;
  }
}

TEST(BeamTest, InPlaceOperandsAreWhole) {
  FormulaKernel k = KernelOf("b[i] = b[i]*0.5", "i=1000");
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), Small());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->max_abs_error, 0);
  EXPECT_EQ(CheckActions(k, result->actions), "");
}

// Registers that the heuristic has settled are no end: other tiles are tried, with what the rest of
// the heuristic makes of them.
TEST(BeamTest, TriesOtherRegistersThanTheHeuristics) {
  FormulaKernel k = MatmulKernel(128, 128, 128);
  const std::vector<Action> heuristic = HeuristicActions(k, TwoCores());
  std::set<std::string> tiles;
  SearchHooks hooks;
  hooks.inject_fault = [&](Candidate& c) {
    std::string registers;  // The first two: what is added to the heuristic's comes behind.
    int count = 0;
    for (const Action& a : c.actions) {
      if (a.kind == ActionKind::kUpcast && ++count <= 2) registers += ActionToString(a);
    }
    const bool divided = ActionsToString(c.actions).find("THREAD") != std::string::npos;
    if (divided && c.actions != heuristic) tiles.insert(registers);
  };
  BeamOptions options = Small(1, 6);
  options.max_rounds = 1;
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), options, hooks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(tiles.size(), 5);
}

// Each candidate but the heuristic's and the plain one fails in one of the ways.
TEST(BeamTest, FaultyCandidatesLose) {
  FormulaKernel k = MatmulKernel(32, 32, 32);
  int injected = 0;
  SearchHooks hooks;
  const std::vector<Action> heuristic = HeuristicActions(k, TwoCores());
  hooks.inject_fault = [&](Candidate& c) {
    if (c.actions.empty() || c.actions == heuristic) return;
    constexpr const char* kFaults[] = {"segv", "exit", "compile-error", "hang", "refuse", ""};
    c.fault = kFaults[injected++ % 6];
  };
  BeamOptions options = Small(2, 6);
  options.max_rounds = 1;
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), options, hooks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(injected, 4);
  EXPECT_GE(result->failed, 3);
  EXPECT_EQ(CheckActions(k, result->actions), "");
  EXPECT_THAT(ChildProcesses(), IsEmpty());
}

TEST(BeamTest, ACompileThatNeverEndsCostsItsDeadline) {
  FormulaKernel k = KernelOf("r[i] = sum[j](x[i,j])", "i=32,j=64");
  int hung = 0;
  SearchHooks hooks;
  hooks.inject_fault = [&](Candidate& c) {
    if (!c.actions.empty() && hung < 2) {
      c.fault = "compile-hang";
      ++hung;
    }
  };
  BeamOptions options = Small(2, 8);
  options.measure.compile_seconds = 2;
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), options, hooks);
  EXPECT_LT(SecondsSince(start), 40);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(hung, 2);
  EXPECT_EQ(CheckActions(k, result->actions), "");
  // The threads that hang are not missing in the next search: no seed waits for one in vain.
  for (int next = 0; next < 3; ++next) {
    options = Small(1, 1);
    options.measure.compile_seconds = 30;
    const absl::StatusOr<SearchResult> after = BeamSearch(k.sink, TwoCores(), options);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_GT(after->heuristic_seconds, 0);
  }
}

// Replaces the kernel of every candidate but the seeds, whatever its actions say, by what `make`
// gives for the number of the replacement.
void ReplaceKernels(const FormulaKernel& seeds, std::function<FormulaKernel(int)> make,
                    SearchHooks& hooks, int& replaced) {
  const std::vector<Action> heuristic = HeuristicActions(seeds, TwoCores());
  hooks.inject_fault = [make = std::move(make), &replaced, heuristic](Candidate& c) {
    if (c.actions.empty() || c.actions == heuristic) return;
    const FormulaKernel other = make(replaced);
    c.graph = std::make_shared<UOpGraph>();
    c.kernel = c.graph->Import(other.sink);
    ++replaced;
  };
}

// A candidate that is fast because it leaves work out never wins. (Each has code of its own: what
// is dropped as a duplicate, or by a disturbed measurement, says nothing about the others.)
TEST(BeamTest, WrongNumbersLose) {
  FormulaKernel k = MatmulKernel(256, 256, 256);
  const Target target = TwoCores();
  SearchHooks hooks;
  int replaced = 0;
  ReplaceKernels(
      k,
      [&target](int number) {
        FormulaKernel wrong = KernelOf(Concat("C[i,j] = A[i,j]*B[i,j] + ", number), "i=256,j=256");
        Scheduler scheduler(*wrong.graph, wrong.sink, target);
        ApplyHeuristic(scheduler);
        wrong.sink = scheduler.kernel();
        return wrong;
      },
      hooks, replaced);
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), Small(), hooks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(replaced, 1);
  EXPECT_GT(result->failed, 0);
  EXPECT_TRUE(result->actions.empty() || result->actions == HeuristicActions(k, TwoCores()))
      << ActionsToString(result->actions);
  EXPECT_EQ(CheckActions(k, result->actions), "");
}

// The heuristic's kernel may be larger than what a search would try by itself.
TEST(BeamTest, BeginsWithTheHeuristicWhateverItsSize) {
  const FormulaKernel k = KernelOf("Y[o,h,w] = sum[c,p,q](pad(X[c,h+p-1,w+q-1])*W[o,c,p,q])",
                                   "o=64,h=28,w=28,c=16,p=3,q=3", "", "X=16,28,28");
  const Target target = TwoCores();
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  const absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, scheduler.kernel(), target);
  ASSERT_TRUE(built.ok()) << built.status();
  BeamOptions options = Small(1, 3);
  options.measure.build.limits.max_nodes = built->nodes / 2;
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, target, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->heuristic_seconds, 0);
  EXPECT_EQ(CheckActions(k, result->actions), "");
}

TEST(BeamTest, AThousandTimesTheWorkLoses) {
  FormulaKernel k = MatmulKernel(32, 32, 32);
  FormulaKernel slow = KernelOf("C[i,j] = sum[k,r](A[i,k]*B[k,j])", "i=32,j=32,k=32,r=1000");
  SearchHooks hooks;
  int replaced = 0;
  ReplaceKernels(k, [&slow](int) { return slow; }, hooks, replaced);
  BeamOptions options = Small(2, 4);
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), options, hooks);
  EXPECT_LT(SecondsSince(start), 30);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(replaced, 0);
  EXPECT_TRUE(result->actions.empty() || result->actions == HeuristicActions(k, TwoCores()))
      << ActionsToString(result->actions);
  EXPECT_THAT(ChildProcesses(), IsEmpty());
}

TEST(BeamTest, WhenAllFailThereIsAnError) {
  FormulaKernel k = MatmulKernel(16, 16, 16);
  for (const char* fault : {"segv", "exit", "compile-error", "refuse"}) {
    SearchHooks hooks;
    hooks.inject_fault = [&](Candidate& c) { c.fault = fault; };
    const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), Small(), hooks);
    EXPECT_FALSE(result.ok()) << fault;
    EXPECT_FALSE(result.status().message().empty());
    EXPECT_THAT(ChildProcesses(), IsEmpty());
  }
}

// The heuristic's own schedule fails: the plain loops still win something.
TEST(BeamTest, TheHeuristicMayFail) {
  FormulaKernel k = MatmulKernel(16, 16, 16);
  bool first = true;
  SearchHooks hooks;
  hooks.inject_fault = [&](Candidate& c) {
    if (first) c.fault = "segv";
    first = false;
  };
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), Small(), hooks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(first);
  EXPECT_EQ(result->heuristic_seconds, 0);
  EXPECT_EQ(CheckActions(k, result->actions), "");
}

TEST(BeamTest, KeepsItsTimeLimit) {
  FormulaKernel k = MatmulKernel(128, 128, 128);
  BeamOptions options = Small(8, 1.5);
  options.max_rounds = 100;
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), options);
  ASSERT_TRUE(result.ok()) << result.status();
  // One candidate and the finalists may come on top, on a machine that is busy.
  EXPECT_LT(SecondsSince(start), 1.5 + 15);
}

TEST(BeamTest, CancellingGivesTheBestSoFar) {
  FormulaKernel k = MatmulKernel(64, 64, 64);
  int64_t measured = 0;
  SearchHooks hooks;
  hooks.progress = [&](const SearchProgress& p) { measured = p.candidates; };
  hooks.cancelled = [&] { return measured >= 4; };
  BeamOptions options = Small(4, 600);
  options.max_rounds = 100;
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), options, hooks);
  EXPECT_LT(SecondsSince(start), 60);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->candidates, 4);
  EXPECT_EQ(CheckActions(k, result->actions), "");

  // Before anything could be tried.
  hooks.cancelled = [] { return true; };
  const absl::StatusOr<SearchResult> at_once = BeamSearch(k.sink, TwoCores(), options, hooks);
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_EQ(at_once->rounds, 0);
  EXPECT_EQ(CheckActions(k, at_once->actions), "");
}

// Which candidates are tried, and in which order, does not depend on threads or pointers. The first
// round expands the same two seeds each time, so it is the same list.
TEST(BeamTest, ExpandsInAFixedOrder) {
  std::vector<std::string> first;
  for (int run = 0; run < 3; ++run) {
    FormulaKernel k = MatmulKernel(24, 32, 16);
    std::vector<std::string> tried;
    SearchHooks hooks;
    hooks.inject_fault = [&](Candidate& c) {
      tried.push_back(ActionsToString(c.actions));
      if (tried.size() > 2) c.fault = "compile-error";  // Expanding is under test, not timing.
    };
    BeamOptions options = Small(2, 120);
    options.max_rounds = 1;
    options.measure.abort_factor = 1e9;  // The plain loops stay, however slow they are.
    const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), options, hooks);
    ASSERT_TRUE(result.ok()) << result.status();
    if (run == 0) {
      first = tried;
      EXPECT_GT(tried.size(), 20u);
    }
    EXPECT_EQ(tried, first) << run;
  }
}

TEST(BeamTest, WithoutAWorkerThereIsAnError) {
  const char* named = getenv("QUERN_WORKER");
  const std::string old = named == nullptr ? "" : named;
  setenv("QUERN_WORKER", "/nowhere/quern-worker", 1);
  FormulaKernel k = MatmulKernel(16, 16, 16);
  const absl::StatusOr<SearchResult> result = BeamSearch(k.sink, TwoCores(), Small());
  if (named == nullptr) {
    unsetenv("QUERN_WORKER");
  } else {
    setenv("QUERN_WORKER", old.c_str(), 1);
  }
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("quern-worker"));
}

TEST(ToleranceTest, FollowsTypeAndTerms) {
  const double f32 = ToleranceFor(MatmulKernel(4, 4, 4).sink);
  EXPECT_GT(f32, 0x1p-23);
  EXPECT_LT(f32, 1e-5);
  EXPECT_GT(ToleranceFor(MatmulKernel(4, 4, 4096).sink), f32);
  EXPECT_EQ(ToleranceFor(KernelOf("r[i] = sum[j](x[i,j])", "i=4,j=4", "x=i32").sink), 0);
  EXPECT_GT(ToleranceFor(KernelOf("y[i] = x[i]*2", "i=4", "x=f16").sink), 1e-3);
  EXPECT_LE(ToleranceFor(KernelOf("y[i] = x[i]*2", "i=4", "x=bf16").sink), 0.05);
}

}  // namespace
}  // namespace quern
