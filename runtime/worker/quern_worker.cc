#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>

#include "runtime/timing_worker.h"

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], "--serve") != 0) {
    std::fprintf(stderr, "quern-worker runs kernels for a search; it is started by quern itself\n");
    return 2;
  }
  // Ends with its parent, and leaves no core files of kernels that crash.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  return quern::RunTimingWorker(3, 3);
}
