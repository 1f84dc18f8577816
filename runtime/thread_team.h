#ifndef QUERN_RUNTIME_THREAD_TEAM_H_
#define QUERN_RUNTIME_THREAD_TEAM_H_

#include <tbb/task_arena.h>

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace quern {

/// The threads among which kernels divide their chunks: the caller's and oneTBB's workers.
///
/// A worker that has finished its chunk keeps polling for the next launch for about a millisecond
/// before it goes back to oneTBB, as threads of OpenMP runtimes do: waking a sleeping thread takes
/// longer (100 µs and more on a virtual machine) than many kernels run. A launch that finds workers
/// polling costs a few hundred nanoseconds. One that finds none does not wait for them: each
/// thread, the caller's too, claims chunks until all are taken.
///
///     ThreadTeam team(/*cores=*/4);
///     team.Run(4, [&](int64_t chunk) { ... });  // returns when all four are done
class ThreadTeam {
 public:
  explicit ThreadTeam(int cores);

  /// The team of the calling thread, which all kernels share that it runs: the workers of one are
  /// there for the next. With a team for each kernel, those of the last would still poll, on cores
  /// that the next one's need. (OpenMP runtimes keep a team for each thread, too.)
  static ThreadTeam& OfThisThread();
  /// No Run may be in progress.
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Calls body(0) … body(chunks - 1), each once, from any of the threads. Chunk i goes to the same
  /// thread in each launch if that thread is there in time, so that caches stay warm. May be called
  /// by several threads at once; only one of them at a time gets help.
  void Run(int64_t chunks, absl::FunctionRef<void(int64_t)> body);

 private:
  struct State;
  void CallWorkers(int64_t wanted);

  tbb::task_arena arena_;
  int64_t workers_;
  std::shared_ptr<State> state_;  // Shared with workers that have yet to notice the end.
};

}  // namespace quern

#endif  // QUERN_RUNTIME_THREAD_TEAM_H_
