#include "optimizer/measurer.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "codegen/lower.h"
#include "rewrite/concat.h"
#include "runtime/enqueue_task.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

// Deadlines of the timing process. A kernel may be slow, but one that takes this much longer than
// the best is ended.
constexpr double kLoadSeconds = 20;
constexpr double kUnknownSeconds = 120;
constexpr double kHopelessFactor = 50;
constexpr double kSlackSeconds = 0.25;

Hash128 HashOfBytes(std::string_view bytes) {
  Hash128 hash{0x243f6a8885a308d3ull, 0x13198a2e03707344ull};
  for (unsigned char c : bytes) {
    hash.high = (hash.high ^ c) * 0x100000001b3ull;
    hash.low = (hash.low + c) * 0x9e3779b97f4a7c15ull ^ (hash.low >> 29);
  }
  return hash;
}

// Threads of this process that are in compiles for which nobody waits any more. They may never come
// back, so the limit on threads does not count them.
std::atomic<int> lost_threads{0};

// Shared with the compiling threads, so that one that never ends harms nobody.
struct CompileBatch {
  std::vector<Candidate> candidates;
  Target target;
  BuildOptions options;
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<absl::StatusOr<BuiltKernel>> results;
  size_t open = 0;
  int running = 0;
  bool abandoned = false;  // nobody waits any more: begin nothing
};

absl::StatusOr<BuiltKernel> CompileOne(const CompileBatch& batch, const Candidate& candidate) {
  if (candidate.fault == "compile-error") {
    return absl::InternalError("compile: an injected fault");
  }
  if (candidate.fault == "compile-hang") std::this_thread::sleep_for(std::chrono::hours(24));
  UOpGraph graph;  // A graph of its own: lowering shares nothing with other tasks.
  BuildOptions options = batch.options;
  if (candidate.unlimited) options.limits = {};
  return BuildKernel(graph, graph.Import(candidate.kernel), batch.target, options);
}

}  // namespace

// oneTBB counts the waiting thread as one of its own; it must not cost a compiling one.
struct Measurer::Parallelism {
  explicit Parallelism(int cores)
      : control(tbb::global_control::max_allowed_parallelism,
                static_cast<size_t>(cores + lost_threads) + 1) {}
  tbb::global_control control;
};

struct Measurer::Kept {
  int64_t id = 0;
  std::string image;
  std::string fault;
  int loaded_generation = -1;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Measurer::Measurer(const Target& target, const MeasureOptions& options)
    : target_(target),
      options_(options),
      parallelism_(std::make_unique<Parallelism>(target.cores)) {}

Measurer::~Measurer() = default;

absl::StatusOr<std::unique_ptr<Measurer>> Measurer::Create(const UOp* kernel, const Target& target,
                                                           const MeasureOptions& options) {
  std::unique_ptr<Measurer> measurer(new Measurer(target, options));
  TimingRequest setup;
  setup.command = TimingCommand::kSetup;
  setup.seed = static_cast<int64_t>(options.seed);
  setup.threads = target.cores;
  for (const KernelParam& p : CollectParams(kernel)) {
    setup.buffers.push_back({p.slot, p.dtype, p.elements, p.written, p.read, p.temporary});
  }
  absl::StatusOr<std::unique_ptr<TimingClient>> client = TimingClient::Start(setup);
  if (!client.ok()) return client.status();
  measurer->client_ = *std::move(client);
  return measurer;
}

std::vector<absl::StatusOr<BuiltKernel>> Measurer::CompileAll(
    const std::vector<Candidate>& candidates, const std::function<bool()>& stop) {
  auto batch = std::make_shared<CompileBatch>();
  batch->candidates = candidates;
  batch->target = target_;
  batch->options = options_.build;
  std::unique_lock<std::mutex> lock(batch->mutex);  // Tasks see all of the batch.
  batch->open = candidates.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    batch->results.push_back(absl::DeadlineExceededError("compile: did not end in time"));
  }
  // The arena has its own threads: this one only waits, and stops waiting at the deadline. It asks
  // for lost threads, too: oneTBB takes them for free ones and wakes so many fewer.
  auto arena = std::make_shared<tbb::task_arena>(target_.cores + lost_threads,
                                                 /*reserved_for_masters=*/0);
  for (size_t i = 0; i < candidates.size(); ++i) {
    EnqueueTask(*arena, [batch, i, arena] {
      {
        std::lock_guard<std::mutex> lock(batch->mutex);
        if (batch->abandoned) return;
        ++batch->running;
      }
      absl::StatusOr<BuiltKernel> built = CompileOne(*batch, batch->candidates[i]);
      std::lock_guard<std::mutex> lock(batch->mutex);
      --batch->running;
      if (batch->abandoned) --lost_threads;
      batch->results[i] = std::move(built);
      if (--batch->open == 0) batch->ended.notify_all();
    });
  }
  const Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options_.compile_seconds));
  while (batch->open > 0 && Clock::now() < deadline && !stop()) {
    batch->ended.wait_for(lock, std::chrono::milliseconds(20));
  }
  batch->abandoned = true;
  if (batch->running > 0) {
    lost_threads += batch->running;
    parallelism_.reset();
    parallelism_ = std::make_unique<Parallelism>(target_.cores);
  }
  return batch->results;
}

std::vector<Measurement> Measurer::Measure(const std::vector<Candidate>& candidates,
                                           double best_seconds, const std::function<bool()>& stop) {
  std::vector<absl::StatusOr<BuiltKernel>> built = CompileAll(candidates, stop);
  std::vector<Measurement> measurements(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    Measurement& m = measurements[i];
    if (!built[i].ok()) {
      m.status = built[i].status();
      continue;
    }
    ++compiled_;
    m.built = *std::move(built[i]);
    // Equal code runs equally fast. (Phases and scratch sizes are part of the image.)
    const std::string image = SerializeImage(m.built.image);
    const Hash128 hash = HashOfBytes(image);
    if (std::find(seen_code_.begin(), seen_code_.end(), hash) != seen_code_.end()) {
      m.status = absl::AlreadyExistsError("measure: the same code as another candidate");
      continue;
    }
    seen_code_.push_back(hash);
    if (stop()) {
      m.status = absl::DeadlineExceededError("measure: no time left");
      continue;
    }
    m.id = next_id_++;
    kept_.push_back({m.id, image, candidates[i].fault, -1});
    TimingRequest request;
    request.command = TimingCommand::kTime;
    request.ids = {m.id};
    request.rounds = 2;
    request.min_sample_seconds = options_.min_sample_seconds;
    double deadline = options_.first_seconds;
    if (best_seconds > 0) {
      request.abort_seconds = options_.abort_factor * best_seconds;
      deadline = kSlackSeconds + kHopelessFactor * best_seconds;
    }
    request.fault = candidates[i].fault;
    absl::StatusOr<TimingReply> reply = AskLoaded(request, deadline);
    if (!reply.ok() || !reply->status.ok()) {
      m.status = reply.ok() ? reply->status : reply.status();
      kept_.pop_back();
      m.id = -1;
      continue;
    }
    ++timed_;
    m.seconds = *std::min_element(reply->seconds[0].begin(), reply->seconds[0].end());
    m.aborted = reply->seconds[0].size() == 1;
    if (best_seconds == 0 || m.seconds < best_seconds) best_seconds = m.seconds;
  }
  return measurements;
}

absl::StatusOr<int64_t> Measurer::Prepare(const Candidate& candidate) {
  BuildOptions options = options_.build;
  options.limits = {};
  UOpGraph graph;
  absl::StatusOr<BuiltKernel> built =
      BuildKernel(graph, graph.Import(candidate.kernel), target_, options);
  if (!built.ok()) return built.status();
  kept_.push_back({next_id_, SerializeImage(built->image), "", -1});
  return next_id_++;
}

void Measurer::AllowNodes(int64_t nodes) {
  int64_t& most = options_.build.limits.max_nodes;
  if (most > 0) most = std::max(most, nodes);
}

absl::Status Measurer::EnsureLoaded(const std::vector<int64_t>& ids) {
  for (int64_t id : ids) {
    auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.id == id; });
    if (kept == kept_.end()) return absl::NotFoundError(Concat("measure: no kernel ", id));
    if (kept->loaded_generation == client_->restarts()) continue;
    TimingRequest load;
    load.command = TimingCommand::kLoad;
    load.ids = {id};
    load.image = kept->image;
    absl::StatusOr<TimingReply> reply = client_->Ask(load, kLoadSeconds);
    if (!reply.ok()) return reply.status();
    if (!reply->status.ok()) return reply->status;
    kept->loaded_generation = client_->restarts();
  }
  return absl::OkStatus();
}

absl::StatusOr<TimingReply> Measurer::AskLoaded(TimingRequest request, double deadline_seconds) {
  if (absl::Status s = EnsureLoaded(request.ids); !s.ok()) return s;
  return client_->Ask(request, deadline_seconds);
}

absl::StatusOr<std::vector<std::vector<double>>> Measurer::TimeInterleaved(
    const std::vector<int64_t>& ids, int64_t rounds) {
  TimingRequest request;
  request.command = TimingCommand::kTime;
  request.ids = ids;
  request.rounds = rounds;
  request.min_sample_seconds = options_.min_sample_seconds;
  absl::StatusOr<TimingReply> reply = AskLoaded(request, kUnknownSeconds);
  if (!reply.ok()) return reply.status();
  if (!reply->status.ok()) return reply->status;
  return std::move(reply->seconds);
}

absl::StatusOr<Measurer::Comparison> Measurer::Compare(int64_t reference, int64_t id,
                                                       double tolerance) {
  TimingRequest request;
  request.command = TimingCommand::kCompare;
  request.ids = {reference, id};
  request.tolerance = tolerance;
  absl::StatusOr<TimingReply> reply = AskLoaded(request, kUnknownSeconds);
  if (!reply.ok()) return reply.status();
  if (!reply->status.ok()) return reply->status;
  return Comparison{reply->max_abs_error, reply->max_rel_error, reply->equal};
}

void Measurer::KeepOnly(const std::vector<int64_t>& ids) {
  TimingRequest unload;
  unload.command = TimingCommand::kUnload;
  std::erase_if(kept_, [&](const Kept& k) {
    const bool drop = std::find(ids.begin(), ids.end(), k.id) == ids.end();
    if (drop && k.loaded_generation == client_->restarts()) unload.ids.push_back(k.id);
    return drop;
  });
  if (unload.ids.empty()) return;
  client_->Ask(unload, kLoadSeconds).status().IgnoreError();  // A new worker has none of them.
}

}  // namespace quern
