#ifndef QUERN_RUNTIME_PART_BY_PART_H_
#define QUERN_RUNTIME_PART_BY_PART_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "runtime/thread_team.h"

namespace quern {

/// Phases of a kernel whose threads are more than run at the same time: parts of the work.
struct Parts {
  int64_t phases = 1;
  int64_t count = 1;    ///< of each phase
  int64_t at_once = 1;  ///< at least 1
};

/// Calls body(phase, part, worker) once for each phase and part. A part goes through all phases
/// before its worker (0 … at_once - 1) takes the next one, so that what it has read in one phase is
/// still in the cache in the next; and before each phase it waits until all parts before it have
/// finished the phase before that.
///
///     worker 0   p0(0) p1(0) p0(2) p1(2) p0(4) …
///     worker 1   p0(1)  wait  p1(1) p0(3) p1(3) …
///
/// Workers fall into different phases, and wait no more. Parts are taken in order, so those before
/// a part are with workers that run, and one worker alone never waits: no deadlock.
///
/// Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016,
/// whose blocks also add up what those before them have published.
void RunPartByPart(ThreadTeam& team, const Parts& parts,
                   absl::FunctionRef<void(int64_t phase, int64_t part, int64_t worker)> body);

}  // namespace quern

#endif  // QUERN_RUNTIME_PART_BY_PART_H_
