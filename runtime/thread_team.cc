#include "runtime/thread_team.h"

#include <tbb/info.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/enqueue_task.h"
#include "runtime/poll.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kLinger(1000);
constexpr int kPollsPerClockReading = 64;

// On a line of its own: threads claim neighbouring chunks at the same moment.
struct alignas(64) Slot {
  std::atomic<uint64_t> claim{0};
};

uint64_t Free(uint64_t launch) { return 2 * launch; }
uint64_t Taken(uint64_t launch) { return 2 * launch + 1; }

}  // namespace

// A launch is published by its number. A thread that is late by a launch cannot do harm: slots that
// it believes to be free carry the number of the launch that they are free for.
struct ThreadTeam::State {
  std::atomic<uint64_t> launch{0};
  std::atomic<int64_t> chunks{0};
  std::atomic<const absl::FunctionRef<void(int64_t)>*> body{nullptr};
  std::atomic<int64_t> unfinished{0};
  std::atomic<Slot*> table{nullptr};  // a slot a chunk

  std::atomic<bool> busy{false};
  std::atomic<bool> ended{false};
  std::atomic<int64_t> residents{0};  // workers that poll, or are on their way

  std::vector<std::unique_ptr<Slot[]>> tables;  // Old ones stay: a late thread may look at them.
  int64_t table_size = 0;

  // Takes and runs what is left of launch `number`, beginning with the thread's own chunk.
  void Work(uint64_t number, int64_t own) {
    const int64_t count = chunks.load(std::memory_order_acquire);
    const absl::FunctionRef<void(int64_t)>* const call = body.load(std::memory_order_relaxed);
    Slot* const slot = table.load(std::memory_order_relaxed);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t chunk = (own + i) % count;
      uint64_t expected = Free(number);
      if (!slot[chunk].claim.compare_exchange_strong(expected, Taken(number),
                                                     std::memory_order_acq_rel)) {
        continue;
      }
      (*call)(chunk);
      unfinished.fetch_sub(1, std::memory_order_release);
    }
  }

  // What a worker does between its call and its return to oneTBB.
  void Reside(int64_t own) {
    uint64_t seen = 0;
    Clock::time_point last = Clock::now();
    for (int polls = 1;; ++polls) {
      const uint64_t current = launch.load(std::memory_order_acquire);
      if (ended.load(std::memory_order_relaxed)) break;
      if (current != seen) {
        Work(current, own);
        seen = current;
        last = Clock::now();
      }
      Pause();
      if (polls % kPollsPerClockReading == 0 && Clock::now() - last > kLinger) break;
    }
    residents.fetch_sub(1, std::memory_order_release);
  }
};

ThreadTeam::ThreadTeam(int cores)
    : arena_(std::clamp(cores, 1, tbb::info::default_concurrency())),
      workers_(arena_.max_concurrency() - 1),
      state_(std::make_shared<State>()) {}

ThreadTeam& ThreadTeam::OfThisThread() {
  thread_local ThreadTeam team(tbb::info::default_concurrency());
  return team;
}

ThreadTeam::~ThreadTeam() { state_->ended.store(true, std::memory_order_relaxed); }

void ThreadTeam::CallWorkers(int64_t wanted) {
  int64_t there = state_->residents.load(std::memory_order_relaxed);
  while (there < wanted) {
    if (!state_->residents.compare_exchange_weak(there, there + 1, std::memory_order_relaxed)) {
      continue;
    }
    EnqueueTask(arena_, [state = state_] {
      state->Reside(std::max(tbb::this_task_arena::current_thread_index(), 0));
    });
    ++there;
  }
}

void ThreadTeam::Run(int64_t chunks, absl::FunctionRef<void(int64_t)> body) {
  State& state = *state_;
  if (chunks < 2 || workers_ == 0 || state.busy.exchange(true, std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  if (chunks > state.table_size) {
    state.tables.push_back(std::make_unique<Slot[]>(static_cast<size_t>(chunks)));
    state.table.store(state.tables.back().get(), std::memory_order_relaxed);
    state.table_size = chunks;
  }
  const uint64_t number = state.launch.load(std::memory_order_relaxed) + 1;
  Slot* const slot = state.table.load(std::memory_order_relaxed);
  state.chunks.store(chunks, std::memory_order_release);  // after the table
  state.body.store(&body, std::memory_order_relaxed);
  state.unfinished.store(chunks, std::memory_order_relaxed);
  for (int64_t i = 0; i < chunks; ++i) {
    slot[i].claim.store(Free(number), std::memory_order_release);
  }
  state.launch.store(number, std::memory_order_release);
  CallWorkers(std::min(workers_, chunks - 1));
  state.Work(number, 0);
  for (Poll poll; state.unfinished.load(std::memory_order_acquire) != 0;) poll.Wait();
  state.busy.store(false, std::memory_order_release);
}

}  // namespace quern
