#include "driver/search_progress.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "driver/report.h"

namespace quern {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void OnInterrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

void ShowProgress(const SearchProgress& p) {
  const double left = std::max(0.0, p.limit_seconds - p.elapsed_seconds);
  // Goes back to the start of the line and clears it, so that what is printed next replaces it.
  std::fprintf(stderr, "\r\x1b[Ksearching: round %d, %lld candidates, best %s, %.0f s left\r",
               p.round, static_cast<long long>(p.candidates),
               p.best_seconds > 0 ? SecondsText(p.best_seconds).c_str() : "-", left);
  std::fflush(stderr);
}

}  // namespace

SearchHooks TerminalHooks() {
  std::signal(SIGINT, OnInterrupt);
  SearchHooks hooks;
  if (isatty(STDERR_FILENO) != 0) {
    hooks.progress = ShowProgress;
  }
  hooks.cancelled = Interrupted;
  return hooks;
}

bool Interrupted() { return interrupted != 0; }

}  // namespace quern
