#ifndef QUERN_RUNTIME_TIMING_CLIENT_H_
#define QUERN_RUNTIME_TIMING_CLIENT_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/timing_protocol.h"

namespace quern {

/// Where the program `quern-worker` is: $QUERN_WORKER, else beside the running program, else where
/// the package was installed; "" if it is nowhere.
std::string FindWorkerProgram();

/// Times kernels in a process of its own (`quern-worker`), which is ended when a request takes too
/// long and begun anew after a crash. Not for use by several threads at once.
class TimingClient {
 public:
  /// Starts the worker and sets its buffers up. Errors: no worker program, no memory.
  static absl::StatusOr<std::unique_ptr<TimingClient>> Start(const TimingRequest& setup);
  ~TimingClient();
  TimingClient(const TimingClient&) = delete;
  TimingClient& operator=(const TimingClient&) = delete;

  /// Sends a request and waits for the answer. When the worker crashes or the deadline passes, the
  /// error says so, a new worker is started, and kernels must be loaded again.
  absl::StatusOr<TimingReply> Ask(const TimingRequest& request, double deadline_seconds);

  /// How often the worker was begun anew: when this changes, loaded kernels are gone.
  int restarts() const { return restarts_; }

 private:
  explicit TimingClient(TimingRequest setup) : setup_(std::move(setup)) {}
  absl::Status Spawn();
  void Stop();

  TimingRequest setup_;
  pid_t process_ = -1;
  int to_worker_ = -1;
  int from_worker_ = -1;
  int restarts_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_TIMING_CLIENT_H_
