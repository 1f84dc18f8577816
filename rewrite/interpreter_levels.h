#ifndef QUERN_REWRITE_INTERPRETER_LEVELS_H_
#define QUERN_REWRITE_INTERPRETER_LEVELS_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite/interpreter_program.h"
#include "rewrite/range_sets.h"

namespace quern {

/// Code that is being written: the body of a loop, or (without a range) what is computed once for a
/// statement.
struct InterpreterLevel {
  const UOp* range = nullptr;
  uint64_t bit = 0;
  int32_t range_cell = -1;
  int thread_loop = InterpreterBuffer::kNone;  ///< set on the loop over threads itself
  std::vector<InterpreterStep> code;
  absl::flat_hash_map<const UOp*, int32_t> cells;  ///< values computed at this level
};

/// The levels around the place where code is being written, outermost first. A node is computed at
/// the deepest level that binds one of its ranges; when a level is closed, its code becomes part of
/// another one's and its values are forgotten.
class LevelStack {
 public:
  explicit LevelStack(const RangeSets& sets) : sets_(sets), levels_(1) {}

  size_t size() const { return levels_.size(); }
  InterpreterLevel& operator[](size_t i) { return levels_[i]; }
  const InterpreterLevel& operator[](size_t i) const { return levels_[i]; }
  InterpreterLevel& back() { return levels_.back(); }

  void Open(const UOp* range, int32_t cell) {
    InterpreterLevel& level = levels_.emplace_back();
    if (range == nullptr) return;
    level.range = range;
    level.bit = sets_.Bit(range);
    level.range_cell = cell;
    level.cells[range] = cell;
  }

  uint64_t BoundRanges() const {
    uint64_t bound = 0;
    for (const InterpreterLevel& level : levels_) bound |= level.bit;
    return bound;
  }

  size_t DeepestThatBinds(uint64_t set) const {
    size_t level = levels_.size() - 1;
    while (level > 0 && (levels_[level].bit & set) == 0) --level;
    return level;
  }

  /// Appends the innermost level, as a loop if it is one, to the code of level `home`.
  void Close(size_t home) {
    using Code = InterpreterStep::Code;
    InterpreterLevel level = std::move(levels_.back());
    levels_.pop_back();
    std::vector<InterpreterStep>& into = levels_[home].code;
    if (level.range == nullptr) {
      into.insert(into.end(), level.code.begin(), level.code.end());
      return;
    }
    InterpreterStep begin{.code = Code::kLoop, .node = level.range, .result = level.range_cell};
    begin.amount = level.range->range_size();
    begin.backwards = level.range->range_type() == AxisType::kThread ||
                      level.range->range_type() == AxisType::kGlobal;
    if (level.thread_loop != InterpreterBuffer::kNone) {
      InterpreterStep forget{.code = Code::kNewThread, .node = level.range};
      forget.amount = level.thread_loop;
      level.code.insert(level.code.begin(), forget);
    }
    begin.jump = static_cast<int64_t>(level.code.size()) + 1;
    InterpreterStep end = begin;
    end.code = Code::kLoopEnd;
    into.push_back(begin);
    into.insert(into.end(), level.code.begin(), level.code.end());
    into.push_back(end);
  }

 private:
  const RangeSets& sets_;
  std::vector<InterpreterLevel> levels_;
};

}  // namespace quern

#endif  // QUERN_REWRITE_INTERPRETER_LEVELS_H_
