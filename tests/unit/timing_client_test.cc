#include "runtime/timing_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "runtime/cpu_target.h"
#include "tests/unit/child_processes.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TimingRequest SetupFor(const UOp* kernel) {
  TimingRequest setup;
  setup.command = TimingCommand::kSetup;
  setup.threads = 2;
  setup.seed = 5;
  for (const KernelParam& p : CollectParams(kernel)) {
    setup.buffers.push_back({p.slot, p.dtype, p.elements, p.written, p.read, p.temporary});
  }
  return setup;
}

KernelImage ImageOf(const FormulaKernel& k) {
  absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, k.sink, DetectCpu());
  QUERN_CHECK(built.ok());
  return std::move(built->image);
}

absl::Status Load(TimingClient& client, int64_t id, const KernelImage& image) {
  TimingRequest load;
  load.command = TimingCommand::kLoad;
  load.ids = {id};
  load.image = SerializeImage(image);
  absl::StatusOr<TimingReply> reply = client.Ask(load, 30);
  return reply.ok() ? reply->status : reply.status();
}

TimingRequest Time(std::vector<int64_t> ids, int64_t rounds = 5) {
  TimingRequest request;
  request.command = TimingCommand::kTime;
  request.ids = std::move(ids);
  request.rounds = rounds;
  return request;
}

TimingRequest Faulty(const char* fault) {
  TimingRequest request;
  request.command = TimingCommand::kUnload;
  request.fault = fault;
  return request;
}

class TimingClientTest : public ::testing::Test {
 protected:
  TimingClientTest() : kernel_(KernelOf("y[i] = x[i]*2", "i=1000")) {
    absl::StatusOr<std::unique_ptr<TimingClient>> client =
        TimingClient::Start(SetupFor(kernel_.sink));
    QUERN_CHECK_MSG(client.ok(), std::string(client.status().message()).c_str());
    client_ = *std::move(client);
  }

  FormulaKernel kernel_;
  std::unique_ptr<TimingClient> client_;
};

TEST_F(TimingClientTest, TimesKernelsInTurns) {
  ASSERT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  ASSERT_TRUE(Load(*client_, 2, ImageOf(kernel_)).ok());
  const absl::StatusOr<TimingReply> reply = client_->Ask(Time({1, 2}, 7), 30);
  ASSERT_TRUE(reply.ok() && reply->status.ok());
  ASSERT_THAT(reply->seconds, SizeIs(2));
  for (const std::vector<double>& rounds : reply->seconds) {
    ASSERT_THAT(rounds, SizeIs(7));
    for (double s : rounds) EXPECT_GT(s, 0);
  }
}

TEST_F(TimingClientTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(client_->Ask(Time({7}), 30)->status.code(), absl::StatusCode::kNotFound);
  KernelImage rubbish;
  rubbish.object = "rubbish";
  rubbish.phases = {{.symbol = "f", .threads = 1, .scratch_bytes = 0}};
  EXPECT_FALSE(Load(*client_, 1, rubbish).ok());
  // A kernel for other buffers than those that were set up.
  EXPECT_FALSE(Load(*client_, 1, ImageOf(KernelOf("y[i] = x[i]*2", "i=1001"))).ok());
  TimingRequest compare;
  compare.command = TimingCommand::kCompare;
  compare.ids = {1};
  EXPECT_FALSE(client_->Ask(compare, 30)->status.ok());
  EXPECT_EQ(client_->restarts(), 0);
}

TEST_F(TimingClientTest, OneSlowRunIsEnough) {
  ASSERT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  TimingRequest request = Time({1}, 9);
  request.abort_seconds = 1e-12;
  const absl::StatusOr<TimingReply> reply = client_->Ask(request, 30);
  ASSERT_TRUE(reply.ok() && reply->status.ok());
  EXPECT_THAT(reply->seconds[0], SizeIs(1));
}

TEST_F(TimingClientTest, ComparesNumbers) {
  ASSERT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  ASSERT_TRUE(Load(*client_, 2, ImageOf(KernelOf("y[i] = x[i]+x[i]", "i=1000"))).ok());
  ASSERT_TRUE(Load(*client_, 3, ImageOf(KernelOf("y[i] = x[i]*2.5", "i=1000"))).ok());
  TimingRequest compare;
  compare.command = TimingCommand::kCompare;
  compare.tolerance = 1e-6;
  compare.ids = {1, 2};
  absl::StatusOr<TimingReply> reply = client_->Ask(compare, 30);
  ASSERT_TRUE(reply.ok() && reply->status.ok());
  EXPECT_TRUE(reply->equal);
  EXPECT_EQ(reply->max_abs_error, 0);
  compare.ids = {1, 3};
  reply = client_->Ask(compare, 30);
  ASSERT_TRUE(reply.ok() && reply->status.ok());
  EXPECT_FALSE(reply->equal);
  EXPECT_GT(reply->max_rel_error, 0.1);
}

// A kernel that leaves outputs as they were has not computed them.
TEST_F(TimingClientTest, OutputsArePoisonedBeforeTheyAreCompared) {
  ASSERT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  KernelImage half = ImageOf(KernelOf("y[i] = x[i]*2", "i=500"));
  ASSERT_TRUE(Load(*client_, 2, half).ok());
  TimingRequest compare;
  compare.command = TimingCommand::kCompare;
  compare.tolerance = 0.1;
  compare.ids = {1, 2};
  const absl::StatusOr<TimingReply> reply = client_->Ask(compare, 30);
  ASSERT_TRUE(reply.ok() && reply->status.ok());
  EXPECT_FALSE(reply->equal);
}

TEST_F(TimingClientTest, WritingOutsideABufferIsSeen) {
  ASSERT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  KernelImage wide = ImageOf(KernelOf("y[i] = x[i]*2", "i=1008"));
  for (ImageParam& p : wide.params) p.elements = 1000;  // A lie.
  ASSERT_TRUE(Load(*client_, 2, wide).ok());
  TimingRequest compare;
  compare.command = TimingCommand::kCompare;
  compare.tolerance = 1;
  compare.ids = {1, 2};
  const absl::StatusOr<TimingReply> reply = client_->Ask(compare, 30);
  ASSERT_TRUE(reply.ok());
  EXPECT_THAT(std::string(reply->status.message()), HasSubstr("wrote outside buffer"));
}

TEST(TimingClientInPlaceTest, OperandsAreRestored) {
  FormulaKernel k = KernelOf("b[i] = b[i]*0.5", "i=1000");
  std::unique_ptr<TimingClient> client = *TimingClient::Start(SetupFor(k.sink));
  ASSERT_TRUE(Load(*client, 1, ImageOf(k)).ok());
  ASSERT_TRUE(Load(*client, 2, ImageOf(k)).ok());
  ASSERT_TRUE(client->Ask(Time({1, 2}, 500), 60).ok());  // 2^-1000 would be zero by now.
  TimingRequest compare;
  compare.command = TimingCommand::kCompare;
  compare.ids = {1, 2};
  const absl::StatusOr<TimingReply> reply = client->Ask(compare, 30);
  ASSERT_TRUE(reply.ok() && reply->status.ok());
  EXPECT_TRUE(reply->equal);
}

TEST_F(TimingClientTest, ACrashIsAnErrorAndANewWorkerFollows) {
  ASSERT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  const std::vector<pid_t> before = ChildProcesses();
  ASSERT_THAT(before, SizeIs(1));

  absl::StatusOr<TimingReply> reply = client_->Ask(Faulty("segv"), 30);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("died of signal 11"));
  EXPECT_EQ(client_->restarts(), 1);
  // Kernels went with the process.
  EXPECT_EQ(client_->Ask(Time({1}), 30)->status.code(), absl::StatusCode::kNotFound);

  reply = client_->Ask(Faulty("exit"), 30);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("exited with 1"));
  EXPECT_EQ(client_->restarts(), 2);

  const std::vector<pid_t> after = ChildProcesses();
  ASSERT_THAT(after, SizeIs(1));  // No zombies.
  EXPECT_NE(after, before);
  ASSERT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  EXPECT_TRUE(client_->Ask(Time({1}), 30)->status.ok());
}

TEST_F(TimingClientTest, WhatHangsIsEnded) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<pid_t> before = ChildProcesses();
  const absl::StatusOr<TimingReply> reply = client_->Ask(Faulty("hang"), 0.2);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("0.2 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(client_->restarts(), 1);
  const std::vector<pid_t> after = ChildProcesses();
  EXPECT_THAT(after, SizeIs(1));
  EXPECT_NE(after, before);
  EXPECT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
}

// As the kernel's out-of-memory killer would end it: between two requests.
TEST_F(TimingClientTest, AWorkerThatIsKilledMeanwhileIsReplaced) {
  const std::vector<pid_t> workers = ChildProcesses();
  ASSERT_THAT(workers, SizeIs(1));
  kill(workers[0], SIGKILL);
  while (ProcessState(workers[0]) != 'Z') std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const absl::StatusOr<TimingReply> reply = client_->Ask(Time({1}), 30);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
  EXPECT_THAT(ChildProcesses(), SizeIs(1));
}

// If no worker can be started any more, that is an error each time, and other children of the
// program are left alone.
TEST_F(TimingClientTest, AWorkerThatCannotBeStartedAgainIsAnError) {
  const pid_t other = fork();
  if (other == 0) {
    pause();
    _exit(0);
  }
  const char* named = getenv("QUERN_WORKER");
  const std::string old = named == nullptr ? "" : named;
  setenv("QUERN_WORKER", "/nowhere/quern-worker", 1);
  EXPECT_EQ(client_->Ask(Faulty("exit"), 30).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(client_->Ask(Time({1}), 30).ok());
  // It lives, whether it has come to its pause yet or not.
  EXPECT_THAT(ProcessState(other), AnyOf('S', 'R', 'D'));
  if (named == nullptr) {
    unsetenv("QUERN_WORKER");
  } else {
    setenv("QUERN_WORKER", old.c_str(), 1);
  }
  kill(other, SIGKILL);
  EXPECT_EQ(waitpid(other, nullptr, 0), other);
  EXPECT_FALSE(client_->Ask(Time({1}), 30).ok());  // Still without a worker; begins one.
  EXPECT_TRUE(Load(*client_, 1, ImageOf(kernel_)).ok());
}

TEST_F(TimingClientTest, NothingIsLeftBehind) {
  ASSERT_THAT(ChildProcesses(), SizeIs(1));
  client_.reset();
  EXPECT_THAT(ChildProcesses(), IsEmpty());
}

// The worker of a program that is killed ends with it, even in the middle of a request.
TEST(TimingClientOrphanTest, TheWorkerEndsWithItsParent) {
  FormulaKernel k = KernelOf("y[i] = x[i]*2", "i=1000");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    absl::StatusOr<std::unique_ptr<TimingClient>> client = TimingClient::Start(SetupFor(k.sink));
    pid_t worker = -1;
    const std::vector<pid_t> children = ChildProcesses();
    if (client.ok() && children.size() == 1) worker = children[0];
    if (write(ends[1], &worker, sizeof(worker)) != sizeof(worker)) _exit(1);
    if (client.ok()) (*client)->Ask(Faulty("hang"), 600).status().IgnoreError();
    _exit(0);
  }
  close(ends[1]);
  pid_t worker = -1;
  ASSERT_EQ(read(ends[0], &worker, sizeof(worker)), static_cast<ssize_t>(sizeof(worker)));
  close(ends[0]);
  ASSERT_GT(worker, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  kill(parent, SIGKILL);
  EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
  char state = ProcessState(worker);
  for (int i = 0; i < 1000 && state != 0 && state != 'Z'; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    state = ProcessState(worker);
  }
  // A zombie waits for init, not for us.
  EXPECT_TRUE(state == 0 || state == 'Z') << state;
}

TEST(TimingClientStartTest, NoProgramIsAnError) {
  const char* named = getenv("QUERN_WORKER");
  const std::string old = named == nullptr ? "" : named;
  setenv("QUERN_WORKER", "/nowhere/quern-worker", 1);
  const absl::StatusOr<std::unique_ptr<TimingClient>> client = TimingClient::Start({});
  setenv("QUERN_WORKER", "/bin/true", 1);  // A program, but no worker.
  const absl::StatusOr<std::unique_ptr<TimingClient>> other = TimingClient::Start({});
  if (named == nullptr) {
    unsetenv("QUERN_WORKER");
  } else {
    setenv("QUERN_WORKER", old.c_str(), 1);
  }
  EXPECT_EQ(client.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("quern-worker"));
  EXPECT_FALSE(other.ok());
  EXPECT_THAT(ChildProcesses(), IsEmpty());
}

}  // namespace
}  // namespace quern
