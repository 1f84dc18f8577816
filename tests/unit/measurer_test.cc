#include "optimizer/measurer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/kernel_flags.h"
#include "runtime/cpu_target.h"
#include "tests/unit/child_processes.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool Never() { return false; }

class MeasurerTest : public ::testing::Test {
 protected:
  MeasurerTest() : target_(DetectCpu()), kernel_(MatmulKernel(32, 32, 32)) {
    target_.cores = 2;
    options_.compile_seconds = 60;
  }

  Measurer& Start() {
    absl::StatusOr<std::unique_ptr<Measurer>> measurer =
        Measurer::Create(kernel_.sink, target_, options_);
    QUERN_CHECK_MSG(measurer.ok(), std::string(measurer.status().message()).c_str());
    measurer_ = *std::move(measurer);
    return *measurer_;
  }

  Candidate Make(const char* actions, const char* fault = "") {
    Candidate candidate;
    candidate.graph = std::make_shared<UOpGraph>();
    Scheduler scheduler(*candidate.graph, candidate.graph->Import(kernel_.sink), target_);
    QUERN_CHECK(scheduler.ApplyAll(*ParseActions(actions)).ok());
    candidate.actions = scheduler.actions();
    candidate.kernel = scheduler.kernel();
    candidate.fault = fault;
    return candidate;
  }

  Target target_;
  FormulaKernel kernel_;
  MeasureOptions options_;
  std::unique_ptr<Measurer> measurer_;
};

TEST(MedianTest, IsTheMiddle) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({1, 100, 2, 4}), 3);
}

TEST_F(MeasurerTest, TimesCandidatesInOrder) {
  Measurer& measurer = Start();
  const std::vector<Measurement> m = measurer.Measure(
      {Make(""), Make("UPCAST(1,16)"), Make("UPCAST(0,4)"), Make("UPCAST(1,16)")}, 0, Never);
  ASSERT_THAT(m, SizeIs(4));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(m[i].status.ok()) << m[i].status;
    EXPECT_EQ(m[i].id, i);
    EXPECT_GT(m[i].seconds, 0);
    EXPECT_FALSE(m[i].built.image.object.empty());
  }
  // The same schedule is the same code; it is not timed twice.
  EXPECT_EQ(m[3].status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(measurer.compiled(), 4);
  EXPECT_EQ(measurer.timed(), 3);
}

TEST_F(MeasurerTest, FaultsHitOnlyTheirCandidate) {
  options_.compile_seconds = 5;
  Measurer& measurer = Start();
  const Clock::time_point start = Clock::now();
  const std::vector<Measurement> m = measurer.Measure(
      {Make(""), Make("UPCAST(1,2)", "compile-error"), Make("UPCAST(1,4)", "segv"),
       Make("UPCAST(1,8)", "exit"), Make("UPCAST(1,16)", "hang"), Make("UPCAST(0,2)")},
      0, Never);
  ASSERT_THAT(m, SizeIs(6));
  EXPECT_TRUE(m[0].status.ok()) << m[0].status;
  EXPECT_THAT(std::string(m[1].status.message()), HasSubstr("injected"));
  EXPECT_THAT(std::string(m[2].status.message()), HasSubstr("signal 11"));
  EXPECT_THAT(std::string(m[3].status.message()), HasSubstr("exited with 1"));
  // The first candidate's time bounds how long one may hang.
  EXPECT_EQ(m[4].status.code(), absl::StatusCode::kDeadlineExceeded) << m[4].status;
  EXPECT_LT(SecondsSince(start), 60);
  EXPECT_TRUE(m[5].status.ok()) << m[5].status;
  for (int i = 1; i < 5; ++i) EXPECT_EQ(m[i].id, -1);
  EXPECT_THAT(ChildProcesses(), SizeIs(1));

  // Kernels measured before the crashes are loaded again when they are asked for.
  const auto times = measurer.TimeInterleaved({m[0].id, m[5].id}, 3);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(*times, testing::ElementsAre(SizeIs(3), SizeIs(3)));
  measurer_.reset();
  EXPECT_THAT(ChildProcesses(), IsEmpty());
}

// More compiles than cores hang; what comes after them is compiled all the same.
TEST_F(MeasurerTest, CompilesThatNeverEndAreLeftBehind) {
  options_.compile_seconds = 1;
  Measurer& measurer = Start();
  const Clock::time_point start = Clock::now();
  std::vector<Measurement> m =
      measurer.Measure({Make("UPCAST(1,2)", "compile-hang"), Make("UPCAST(1,4)", "compile-hang"),
                        Make("UPCAST(1,8)", "compile-hang")},
                       0, Never);
  for (const Measurement& one : m) {
    EXPECT_EQ(one.status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(one.status.message()), HasSubstr("did not end in time"));
  }
  EXPECT_LT(SecondsSince(start), 30);
  // A busy machine may take longer than a second for a compile.
  bool compiled = false;
  for (const char* actions : {"", "UPCAST(0,2)", "UPCAST(0,4)", "UPCAST(0,8)", "UNROLL(0,2)"}) {
    m = measurer.Measure({Make(actions)}, 0, Never);
    compiled |= m[0].status.ok();
    if (compiled) break;
  }
  EXPECT_TRUE(compiled) << m[0].status;
}

TEST_F(MeasurerTest, LimitsAreCheckedBeforeCompiling) {
  options_.build.limits.max_register_bytes = 64;
  options_.build.limits.max_nodes = 200;
  Measurer& measurer = Start();
  const std::vector<Measurement> m =
      measurer.Measure({Make("UPCAST(1,32) UPCAST(0,8)"), Make("UNROLL(0,0)"), Make("")}, 0, Never);
  EXPECT_EQ(m[0].status.code(), absl::StatusCode::kResourceExhausted) << m[0].status;
  EXPECT_TRUE(m[2].status.ok()) << m[2].status;
  // Limits are for candidates, not for the reference.
  EXPECT_TRUE(measurer.Prepare(Make("UPCAST(1,32) UPCAST(0,8)")).ok());
}

TEST_F(MeasurerTest, WhatIsMuchSlowerRunsOnce) {
  options_.min_sample_seconds = 0;
  Measurer& measurer = Start();
  const std::vector<Measurement> m =
      measurer.Measure({Make(""), Make("UPCAST(1,16)")}, 1e-10, Never);
  ASSERT_TRUE(m[0].status.ok() && m[1].status.ok());
  EXPECT_TRUE(m[0].aborted);
  EXPECT_TRUE(m[1].aborted);
}

// A schedule is not judged by its first run alone, when caches and branches are cold: hardly any of
// those that are as good as the best may be given up.
TEST_F(MeasurerTest, GoodCandidatesSurviveTheirFirstRun) {
  const std::vector<Candidate> candidates = {
      Make("UPCAST(1,16)"), Make("UPCAST(1,32)"), Make("UPCAST(1,16) UPCAST(0,4)"),
      Make("UPCAST(1,32) UPCAST(0,4)"), Make("UPCAST(1,16) UPCAST(0,8)")};
  double given_up = 1;  // The share of good ones; a busy machine gets several attempts.
  for (int attempt = 0; attempt < 5 && given_up > 0.4; ++attempt) {
    options_.abort_factor = 1e9;
    const std::vector<Measurement> all = Start().Measure(candidates, 0, Never);
    double best = 1;
    for (const Measurement& m : all) {
      if (m.status.ok()) best = std::min(best, m.seconds);
    }
    options_.abort_factor = 2;
    const std::vector<Measurement> judged = Start().Measure(candidates, best, Never);
    int good = 0;
    int aborted = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!all[i].status.ok() || !judged[i].status.ok() || all[i].seconds > 1.3 * best) continue;
      ++good;
      if (judged[i].aborted) ++aborted;
    }
    ASSERT_GT(good, 0);
    given_up = static_cast<double>(aborted) / good;
  }
  EXPECT_LE(given_up, 0.4);
}

TEST_F(MeasurerTest, StopsWhenAskedTo) {
  Measurer& measurer = Start();
  int asked = 0;
  const std::vector<Measurement> m =
      measurer.Measure({Make(""), Make("UPCAST(1,16)")}, 0, [&] { return ++asked > 0; });
  for (const Measurement& one : m) {
    EXPECT_EQ(one.status.code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_GT(asked, 0);
  EXPECT_EQ(measurer.timed(), 0);
}

TEST_F(MeasurerTest, ComparesWithAReference) {
  Measurer& measurer = Start();
  const std::vector<Measurement> m = measurer.Measure({Make("UPCAST(1,16) UNROLL(0,4)")}, 0, Never);
  ASSERT_TRUE(m[0].status.ok());
  const absl::StatusOr<int64_t> reference = measurer.Prepare(Make(""));
  ASSERT_TRUE(reference.ok());
  absl::StatusOr<Measurer::Comparison> comparison = measurer.Compare(*reference, m[0].id, 1e-5);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(comparison->equal);

  Candidate wrong;  // Another kernel over the same buffers.
  FormulaKernel other = KernelOf("C[i,j] = sum[k](A[i,k]*B[j,k])", "i=32,j=32,k=32");
  wrong.graph = other.graph;
  wrong.kernel = other.sink;
  const absl::StatusOr<int64_t> id = measurer.Prepare(wrong);
  ASSERT_TRUE(id.ok());
  comparison = measurer.Compare(*reference, *id, 1e-5);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_FALSE(comparison->equal);
  EXPECT_GT(comparison->max_rel_error, 1e-3);
}

TEST_F(MeasurerTest, KernelsThatAreNotKeptAreGone) {
  Measurer& measurer = Start();
  const std::vector<Measurement> m = measurer.Measure({Make(""), Make("UPCAST(1,16)")}, 0, Never);
  ASSERT_TRUE(m[0].status.ok() && m[1].status.ok());
  measurer.KeepOnly({m[1].id});
  EXPECT_EQ(measurer.TimeInterleaved({m[0].id}, 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(measurer.TimeInterleaved({m[1].id}, 1).ok());
}

TEST_F(MeasurerTest, ABrokenKernelIsAnError) {
  options_.build.passes.verify = true;
  Measurer& measurer = Start();
  Candidate broken;
  broken.graph = std::make_shared<UOpGraph>();
  UOpGraph& g = *broken.graph;
  const UOp* i = Range(g, 100, 0, AxisType::kLoop);  // Past the end of 64 elements.
  const UOp* store = Store(g, Index(g, Param(g, kF32Type, 2, 64), i), FloatConst(g, kF32Type, 1));
  broken.kernel = Sink(g, std::vector<const UOp*>{store});
  const std::vector<Measurement> m = measurer.Measure({broken, Make("")}, 0, Never);
  EXPECT_FALSE(m[0].status.ok());
  EXPECT_TRUE(m[1].status.ok()) << m[1].status;
}

// What is packed once is packed before the first run is timed: packing takes many times as long,
// and a first run that slow would be the last.
TEST_F(MeasurerTest, PackingOfConstantsIsNotTimed) {
  kernel_ = KernelOf("C[i,j] = sum[k](A[i,k]*B[j,k])", "i=8,j=2048,k=1024");
  for (const KernelParam& p : CollectParams(kernel_.sink)) {
    if (p.read && p.elements == 2048 * 1024) {
      kernel_.sink = MarkConstantSlot(*kernel_.graph, kernel_.sink, p.slot);
    }
  }
  options_.abort_factor = 4;  // Packing takes ten times as long as a run, other load less.
  const char* packed = "UPCAST(1,32) UPCAST(0,4) LOCAL(0,0)";
  for (int attempt = 0; attempt < 3; ++attempt) {
    Measurer& measurer = Start();
    const std::vector<Measurement> m = measurer.Measure({Make(packed)}, 0, Never);
    ASSERT_TRUE(m[0].status.ok()) << m[0].status;
    bool keeps = false;
    for (const ImageParam& p : m[0].built.image.params) keeps |= p.kept;
    ASSERT_TRUE(keeps);
    EXPECT_FALSE(Start().Measure({Make(packed)}, m[0].seconds, Never)[0].aborted) << attempt;
  }
}

TEST_F(MeasurerTest, CodeAboveTheLimitIsRefused) {
  options_.build.limits.max_instructions = 100;
  Measurer& measurer = Start();
  const std::vector<Measurement> m =
      measurer.Measure({Make(""), Make("UPCAST(1,16) UPCAST(0,16) UNROLL(0,8)")}, 0, Never);
  EXPECT_TRUE(m[0].status.ok()) << m[0].status;
  EXPECT_EQ(m[1].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(m[1].status.message(), HasSubstr("instructions is above the limit 100"));
}

}  // namespace
}  // namespace quern
