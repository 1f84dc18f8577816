#ifndef QUERN_REWRITE_INTERPRETER_PROGRAM_H_
#define QUERN_REWRITE_INTERPRETER_PROGRAM_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite/evaluate.h"
#include "rewrite/uop.h"

namespace quern {

/// One step of the interpreter. Values live in numbered cells, the lanes of a vector in cells that
/// follow one another; `result` and `sources` are first cells, -1 where there is none.
struct InterpreterStep {
  enum class Code : uint8_t {
    kElementwise,  ///< node->op, lane by lane
    kBroadcast,
    kHorizontal,
    kExtract,
    kStage,  ///< a copy
    kScan,   ///< for printing only: to interpret, scans are written as reductions first
    kPrefix,
    kInterleave,  ///< one of the sources, number `amount`, into every n-th lane of the result
    kMatrix,
    kTile,
    kLoad,        ///< sources: offset, gate; from `buffer`
    kStore,       ///< sources: offset, gate, value; to `buffer`
    kLoop,        ///< `amount` is the size; the body follows, `jump` instructions long
    kLoopEnd,     ///< `jump` instructions back to the body's first
    kGuard,       ///< source: condition; for printing only, as what is skipped does nothing
    kPhase,       ///< `node`, a phase or a sink inside the sink, begins
    kNewThread,   ///< forgets the memory that belongs to the loop over threads number `amount`
    kStart,       ///< a REDUCE: result = identity
    kAccumulate,  ///< result = result op source, floats unrounded
    kFinish,      ///< result = source, rounded to the type
  };
  Code code;
  bool backwards = false;  ///< kLoop, kLoopEnd: from size - 1 down to 0
  const UOp* node = nullptr;
  int32_t lanes = 1;
  int32_t result = -1;
  int32_t sources[3] = {-1, -1, -1};
  int32_t buffer = -1;
  int64_t amount = 0;
  int64_t jump = 0;
};

/// A buffer of the program.
struct InterpreterBuffer {
  const UOp* node = nullptr;
  bool loaded = false;
  bool stored = false;
  /// The loop over threads in which all its accesses stand, kNone if there are others.
  int thread_loop = kUnused;
  static constexpr int kUnused = -2;
  static constexpr int kNone = -1;
};

/// A kernel as a flat list of steps: nothing is looked up or ordered while it runs.
struct InterpreterProgram {
  std::vector<InterpreterStep> code;
  std::vector<InterpreterBuffer> buffers;
  std::vector<std::pair<int32_t, Scalar>> constants;  ///< cells that are set before the start
  int32_t cells = 0;
  /// A sink of stores: loads see the memory as it was before the first store.
  bool reads_before_writes = false;
};

/// How the ranges are nested that no loop of the kernel binds.
enum class LoopOrder : uint8_t {
  kAxis,     ///< by axis number
  kReduces,  ///< those on which many REDUCEs depend outside, so that these are computed seldom
};

/// Puts the nodes of a kernel in the order in which they are computed, each at the outermost loop
/// that binds all it needs.
absl::StatusOr<InterpreterProgram> CompileForInterpreter(const UOp* sink, LoopOrder order);

}  // namespace quern

#endif  // QUERN_REWRITE_INTERPRETER_PROGRAM_H_
