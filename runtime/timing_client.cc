#include "runtime/timing_client.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "rewrite/concat.h"

extern char** environ;

/// Where find_package(quern) has found the worker program; other programs have no such symbol.
extern "C" __attribute__((weak)) const char quern_worker_location[];

namespace quern {
namespace {

constexpr double kSetupSeconds = 60;

bool IsProgram(const std::string& path) { return !path.empty() && access(path.c_str(), X_OK) == 0; }

}  // namespace

std::string FindWorkerProgram() {
  if (const char* named = getenv("QUERN_WORKER"); named != nullptr && *named != '\0') {
    return IsProgram(named) ? named : "";
  }
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length > 0) {
    std::string folder(self, static_cast<size_t>(length));
    folder.resize(folder.rfind('/') + 1);
    for (const char* path : {"quern-worker", QUERN_WORKER_FROM_PROGRAM}) {
      if (IsProgram(folder + path)) return folder + path;
    }
  }
  if (quern_worker_location != nullptr && IsProgram(quern_worker_location)) {
    return quern_worker_location;
  }
  return IsProgram(QUERN_WORKER_INSTALLED) ? QUERN_WORKER_INSTALLED : "";
}

absl::StatusOr<std::unique_ptr<TimingClient>> TimingClient::Start(const TimingRequest& setup) {
  std::unique_ptr<TimingClient> client(new TimingClient(setup));
  if (absl::Status status = client->Spawn(); !status.ok()) return status;
  return client;
}

TimingClient::~TimingClient() { Stop(); }

absl::Status TimingClient::Spawn() {
  const std::string program = FindWorkerProgram();
  if (program.empty()) {
    return absl::NotFoundError(
        "timing: the program quern-worker is neither in $QUERN_WORKER, nor beside this program, "
        "nor installed");
  }
  // Close-on-exec, so that no other child keeps a worker alive.
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return absl::InternalError(Concat("timing: socketpair: ", strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
  // What a kernel's process prints is nobody's business, and Ctrl-C is for the parent alone.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string name = program;
  std::string argument = "--serve";
  char* arguments[] = {name.data(), argument.data(), nullptr};
  const int error =
      posix_spawn(&process_, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pair[1]);
  if (error != 0) {
    close(pair[0]);
    process_ = -1;
    return absl::InternalError(Concat("timing: starting ", program, ": ", strerror(error)));
  }
  to_worker_ = from_worker_ = pair[0];
  if (absl::Status s = SendMessage(to_worker_, SerializeRequest(setup_)); !s.ok()) return s;
  absl::StatusOr<std::string> message = ReceiveMessage(from_worker_, kSetupSeconds);
  if (!message.ok()) return message.status();
  absl::StatusOr<TimingReply> reply = ParseReply(*message);
  return reply.ok() ? reply->status : reply.status();
}

void TimingClient::Stop() {
  if (to_worker_ >= 0) close(to_worker_);
  to_worker_ = from_worker_ = -1;
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

absl::StatusOr<TimingReply> TimingClient::Ask(const TimingRequest& request,
                                              double deadline_seconds) {
  absl::Status sent = SendMessage(to_worker_, SerializeRequest(request));
  absl::StatusOr<std::string> message =
      sent.ok() ? ReceiveMessage(from_worker_, deadline_seconds) : sent;
  if (message.ok()) {
    absl::StatusOr<TimingReply> reply = ParseReply(*message);
    if (reply.ok()) return reply;
    message = reply.status();
  }
  // Say how it ended, then begin anew.
  std::string end = std::string(message.status().message());
  int status = 0;
  const bool gone = message.status().code() == absl::StatusCode::kUnavailable;
  // (Without a process, waitpid would take any other child of this program.)
  if (process_ > 0 && waitpid(process_, &status, gone ? 0 : WNOHANG) == process_) {
    process_ = -1;
    if (WIFSIGNALED(status)) {
      end = Concat("the kernel's process died of signal ", WTERMSIG(status), " (",
                   strsignal(WTERMSIG(status)), ")");
    } else {
      end = Concat("the kernel's process exited with ", WEXITSTATUS(status));
    }
  }
  const absl::StatusCode code = message.status().code();
  Stop();
  ++restarts_;
  if (absl::Status again = Spawn(); !again.ok()) return again;
  return absl::Status(code, end);
}

}  // namespace quern
