#ifndef QUERN_RUNTIME_TIMING_WORKER_H_
#define QUERN_RUNTIME_TIMING_WORKER_H_

namespace quern {

/// The other side of TimingClient: answers requests from file `in` on file `out` until `in` ends.
/// Runs in a process of its own, so that a kernel that crashes or never returns harms nobody.
/// Returns the exit status of that process.
int RunTimingWorker(int in, int out);

}  // namespace quern

#endif  // QUERN_RUNTIME_TIMING_WORKER_H_
