#include "runtime/timing_protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include "rewrite/concat.h"
#include "runtime/byte_stream.h"

namespace quern {
namespace {

constexpr int64_t kMaxMessage = int64_t{1} << 30;

void PutInts(std::string& out, const std::vector<int64_t>& values) {
  PutInt(out, static_cast<int64_t>(values.size()));
  for (int64_t v : values) PutInt(out, v);
}

std::vector<int64_t> ReadInts(ByteReader& reader) {
  std::vector<int64_t> values(static_cast<size_t>(reader.Count()));
  for (int64_t& v : values) v = reader.Int();
  return values;
}

}  // namespace

std::string SerializeRequest(const TimingRequest& request) {
  std::string out;
  PutInt(out, static_cast<int64_t>(request.command));
  PutInts(out, request.ids);
  PutText(out, request.image);
  KernelImage buffers;  // The same form as a kernel's parameters.
  buffers.params = request.buffers;
  PutText(out, SerializeImage(buffers));
  PutInt(out, request.seed);
  PutInt(out, request.threads);
  PutInt(out, request.rounds);
  PutDouble(out, request.abort_seconds);
  PutDouble(out, request.min_sample_seconds);
  PutDouble(out, request.tolerance);
  PutText(out, request.fault);
  return out;
}

absl::StatusOr<TimingRequest> ParseRequest(std::string_view bytes) {
  ByteReader reader{bytes};
  TimingRequest request;
  request.command = static_cast<TimingCommand>(reader.Int());
  request.ids = ReadInts(reader);
  request.image = reader.Text();
  absl::StatusOr<KernelImage> buffers = ParseImage(reader.Text());
  if (!buffers.ok()) return buffers.status();
  request.buffers = std::move(buffers->params);
  request.seed = reader.Int();
  request.threads = reader.Int();
  request.rounds = reader.Int();
  request.abort_seconds = reader.Double();
  request.min_sample_seconds = reader.Double();
  request.tolerance = reader.Double();
  request.fault = reader.Text();
  if (!reader.ok) return absl::DataLossError("timing: a request that was cut off");
  return request;
}

std::string SerializeReply(const TimingReply& reply) {
  std::string out;
  PutInt(out, static_cast<int64_t>(reply.status.code()));
  const absl::string_view message = reply.status.message();
  PutText(out, std::string_view(message.data(), message.size()));
  PutInt(out, static_cast<int64_t>(reply.seconds.size()));
  for (const std::vector<double>& rounds : reply.seconds) {
    PutInt(out, static_cast<int64_t>(rounds.size()));
    for (double s : rounds) PutDouble(out, s);
  }
  PutDouble(out, reply.max_abs_error);
  PutDouble(out, reply.max_rel_error);
  PutInt(out, reply.equal ? 1 : 0);
  return out;
}

absl::StatusOr<TimingReply> ParseReply(std::string_view bytes) {
  ByteReader reader{bytes};
  TimingReply reply;
  const auto code = static_cast<absl::StatusCode>(reader.Int());
  const std::string message = reader.Text();
  if (code != absl::StatusCode::kOk) reply.status = absl::Status(code, message);
  reply.seconds.resize(static_cast<size_t>(reader.Count()));
  for (std::vector<double>& rounds : reply.seconds) {
    rounds.resize(static_cast<size_t>(reader.Count()));
    for (double& s : rounds) s = reader.Double();
  }
  reply.max_abs_error = reader.Double();
  reply.max_rel_error = reader.Double();
  reply.equal = reader.Int() != 0;
  if (!reader.ok) return absl::DataLossError("timing: a reply that was cut off");
  return reply;
}

absl::Status SendMessage(int file, std::string_view message) {
  std::string framed;
  framed.reserve(message.size() + 8);
  PutText(framed, message);
  size_t sent = 0;
  while (sent < framed.size()) {
    // Without the flag, a worker that died between two requests would end this process, too.
    const ssize_t n = send(file, framed.data() + sent, framed.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return absl::UnavailableError(Concat("timing: writing to the worker: ", strerror(errno)));
    }
    sent += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveMessage(int file, double deadline_seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::string header;
  std::string body;
  int64_t size = -1;
  while (size < 0 || static_cast<int64_t>(body.size()) < size) {
    int wait_ms = -1;
    if (deadline_seconds > 0) {
      const double passed = std::chrono::duration<double>(Clock::now() - start).count();
      if (passed >= deadline_seconds) {
        return absl::DeadlineExceededError(
            Concat("timing: no answer within ", deadline_seconds, " s"));
      }
      wait_ms = static_cast<int>((deadline_seconds - passed) * 1000) + 1;
    }
    pollfd waiting = {file, POLLIN, 0};
    const int ready = poll(&waiting, 1, wait_ms);
    if (ready < 0 && errno != EINTR) {
      return absl::UnavailableError(Concat("timing: poll: ", strerror(errno)));
    }
    if (ready <= 0) continue;
    char chunk[1 << 16];
    const size_t want = size < 0 ? 8 - header.size()
                                 : std::min(sizeof(chunk), static_cast<size_t>(size) - body.size());
    const ssize_t n = read(file, chunk, want);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("timing: the other end is gone");
    if (size < 0) {
      header.append(chunk, static_cast<size_t>(n));
      if (header.size() < 8) continue;
      size = ByteReader{header}.Int();
      if (size < 0 || size > kMaxMessage) {
        return absl::DataLossError(Concat("timing: a message of ", size, " bytes"));
      }
      body.reserve(static_cast<size_t>(size));
    } else {
      body.append(chunk, static_cast<size_t>(n));
    }
  }
  return body;
}

}  // namespace quern
