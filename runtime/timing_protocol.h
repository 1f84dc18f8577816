#ifndef QUERN_RUNTIME_TIMING_PROTOCOL_H_
#define QUERN_RUNTIME_TIMING_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kernel_image.h"

namespace quern {

/// What the timing worker is asked. One request is answered by one TimingReply.
enum class TimingCommand : uint8_t {
  kSetup,    ///< buffers: allocate and fill the parameters
  kLoad,     ///< ids[0], image: link a kernel
  kUnload,   ///< ids
  kTime,     ///< ids, rounds, abort_seconds: time kernels, interleaved
  kCompare,  ///< ids[1] against the reference ids[0], which may compute only some elements
};

struct TimingRequest {
  TimingCommand command = TimingCommand::kSetup;
  std::vector<int64_t> ids;
  std::string image;                ///< kLoad: SerializeImage
  std::vector<ImageParam> buffers;  ///< kSetup
  int64_t seed = 0;                 ///< kSetup
  int64_t threads = 0;              ///< kSetup: cores to use
  int64_t rounds = 1;               ///< kTime
  /// kTime: a kernel whose first runs take longer is not run again; 0 for no limit.
  double abort_seconds = 0;
  double min_sample_seconds = 0;  ///< kTime: short kernels run several times in one sample
  double tolerance = 0;           ///< kCompare: relative to the largest magnitude of the output
  std::string fault;              ///< for tests: "segv", "exit", "hang", "refuse"
};

struct TimingReply {
  absl::Status status;
  /// kTime: seconds of one run, by kernel and round (fewer rounds if aborted).
  std::vector<std::vector<double>> seconds;
  double max_abs_error = 0;  ///< kCompare
  double max_rel_error = 0;  ///< kCompare: relative to the output's largest magnitude
  bool equal = false;        ///< kCompare
};

std::string SerializeRequest(const TimingRequest& request);
absl::StatusOr<TimingRequest> ParseRequest(std::string_view bytes);
std::string SerializeReply(const TimingReply& reply);
absl::StatusOr<TimingReply> ParseReply(std::string_view bytes);

/// Writes a message with its length before it. Errors: the other end is gone.
absl::Status SendMessage(int file, std::string_view message);
/// Reads one message. Errors: the other end is gone; nothing came before `deadline_seconds` (from
/// now; 0 waits for ever).
absl::StatusOr<std::string> ReceiveMessage(int file, double deadline_seconds);

}  // namespace quern

#endif  // QUERN_RUNTIME_TIMING_PROTOCOL_H_
