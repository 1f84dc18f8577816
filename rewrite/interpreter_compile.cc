#include <algorithm>
#include <array>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite/concat.h"
#include "rewrite/graph.h"
#include "rewrite/interpreter_levels.h"
#include "rewrite/interpreter_program.h"
#include "rewrite/range_sets.h"
#include "rewrite/verify_node.h"

namespace quern {
namespace {

using Code = InterpreterStep::Code;

// What is still to be done; the last task is the next. Stands in for recursion over the graph.
struct Task {
  enum Kind : uint8_t {
    kStatement,
    kCloseStatement,  // closes `levels` loops and the level of the statement
    kCloseLoop,
    kEmitStore,
    kEmitGuard,
    kExpression,    // computes a value, after its sources
    kCompute,       // the sources are there
    kFinishReduce,  // closes `levels` loops, into level `home`
  };
  Kind kind;
  const UOp* node;
  size_t levels = 0;
  size_t home = 0;
};

class Compiler {
 public:
  Compiler(const UOp* sink, LoopOrder order) : sink_(sink), sets_(sink) {
    for (const UOp* u : Toposort(sink)) {
      bool loads = u->op == Op::kLoad;
      for (const UOp* s : u->src()) loads |= loads_.contains(s);
      if (loads) loads_.insert(u);
      if (u->op != Op::kReduce || order == LoopOrder::kAxis) continue;
      for (size_t i = 0; i < sets_.ranges().size(); ++i) reduces_[i] += (sets_.Of(u) >> i) & 1;
    }
  }

  absl::StatusOr<InterpreterProgram> Run() {
    program_.reads_before_writes = std::all_of(sink_->src().begin(), sink_->src().end(),
                                               [](const UOp* s) { return s->op == Op::kStore; });
    tasks_.push_back({Task::kStatement, sink_});
    while (!tasks_.empty()) {
      const Task task = tasks_.back();
      tasks_.pop_back();
      if (absl::Status s = Do(task); !s.ok()) return s;
    }
    program_.code = std::move(levels_[0].code);
    return std::move(program_);
  }

 private:
  absl::Status Do(const Task& task) {
    switch (task.kind) {
      case Task::kStatement:
        OpenStatement(task.node);
        return absl::OkStatus();
      case Task::kCloseStatement:
        for (size_t i = 0; i < task.levels; ++i) levels_.Close(levels_.size() - 2);
        levels_.Close(levels_.size() - 2);
        return absl::OkStatus();
      case Task::kCloseLoop:
        if (levels_.back().thread_loop != InterpreterBuffer::kNone)
          thread_loop_ = InterpreterBuffer::kNone;
        levels_.Close(levels_.size() - 2);
        return absl::OkStatus();
      case Task::kEmitStore: {
        const UOp* store = task.node;
        InterpreterStep in = MemoryAccess(Code::kStore, store);
        in.sources[2] = CellOf(store->src(1));
        levels_.back().code.push_back(in);
        return absl::OkStatus();
      }
      case Task::kEmitGuard: {
        InterpreterStep in{.code = Code::kGuard, .node = task.node};
        in.sources[0] = CellOf(task.node->src(0));
        levels_.back().code.push_back(in);
        return absl::OkStatus();
      }
      case Task::kExpression:
        return Expression(task.node);
      case Task::kCompute:
        Compute(task.node);
        return absl::OkStatus();
      case Task::kFinishReduce:
        FinishReduce(task);
        return absl::OkStatus();
    }
    return absl::InternalError("no such task");
  }

  int32_t NewCells(int lanes) {
    const int32_t first = program_.cells;
    program_.cells += lanes;
    return first;
  }

  void OpenLevel(const UOp* range) { levels_.Open(range, range == nullptr ? -1 : NewCells(1)); }

  void OpenStatement(const UOp* u) {
    if (u->op == Op::kStore) {
      OpenStore(u);
      return;
    }
    if (u->op == Op::kGuard) {
      statement_level_ = levels_.size();
      OpenLevel(nullptr);
      tasks_.push_back({Task::kCloseStatement, u, 0});
      tasks_.push_back({Task::kEmitGuard, u});
      tasks_.push_back({Task::kExpression, u->src(0)});
      return;
    }
    size_t first = 0;
    if (u->op == Op::kPhase || (u->op == Op::kSink && u != sink_))
      levels_.back().code.push_back({.code = Code::kPhase, .node = u});
    if (u->op == Op::kLoop) {
      OpenLevel(u->src(0));
      if (u->src(0)->range_type() == AxisType::kThread &&
          thread_loop_ == InterpreterBuffer::kNone) {
        levels_.back().thread_loop = thread_loop_ = thread_loops_++;
      }
      tasks_.push_back({Task::kCloseLoop, u});
      first = 1;
    }
    for (size_t i = u->source_count; i > first; --i) {
      tasks_.push_back({Task::kStatement, u->src(i - 1)});
    }
  }

  // Ranges that no loop binds are looped over here.
  void OpenStore(const UOp* store) {
    std::vector<const UOp*> loops = sets_.Members(sets_.Of(store) & ~levels_.BoundRanges());
    for (const UOp* r : loops) {
      // Nothing runs; what would be computed before the loops might touch what is not there.
      if (r->range_size() == 0) return;
    }
    std::sort(loops.begin(), loops.end(), [this](const UOp* a, const UOp* b) {
      const int i = std::countr_zero(sets_.Bit(a));
      const int j = std::countr_zero(sets_.Bit(b));
      return reduces_[i] != reduces_[j] ? reduces_[i] > reduces_[j] : i < j;
    });
    statement_level_ = levels_.size();
    OpenLevel(nullptr);
    for (const UOp* r : loops) OpenLevel(r);
    tasks_.push_back({Task::kCloseStatement, store, loops.size()});
    tasks_.push_back({Task::kEmitStore, store});
    tasks_.push_back({Task::kExpression, store->src(1)});
    PushAddress(store->src(0));
  }

  void PushAddress(const UOp* index) {
    for (size_t i = 1; i < index->source_count; ++i) {
      tasks_.push_back({Task::kExpression, index->src(i)});
    }
  }

  // The level at which `u` is computed. What loads is never moved out of its statement: statements
  // before it may store what it reads.
  size_t Home(const UOp* u) const {
    const size_t level = levels_.DeepestThatBinds(sets_.Of(u));
    return loads_.contains(u) ? std::max(level, statement_level_) : level;
  }

  int32_t CellOf(const UOp* u) const { return levels_[Home(u)].cells.at(u); }

  int32_t NewConstant(int lanes, Scalar value) {
    const int32_t first = NewCells(lanes);
    for (int i = 0; i < lanes; ++i) program_.constants.push_back({first + i, value});
    return first;
  }

  absl::Status Expression(const UOp* u) {
    InterpreterLevel& home = levels_[Home(u)];
    if (home.cells.contains(u)) return absl::OkStatus();
    switch (u->op) {
      case Op::kConst:
        home.cells[u] = NewConstant(u->dtype.lanes, {.i = u->arg.a});
        return absl::OkStatus();
      case Op::kLanes: {
        const int32_t first = NewCells(u->dtype.lanes);
        for (int i = 0; i < u->dtype.lanes; ++i)
          program_.constants.push_back({first + i, {.i = i}});
        home.cells[u] = first;
        return absl::OkStatus();
      }
      case Op::kRange:
        return absl::InvalidArgumentError(Concat("no loop binds the range of axis ",
                                                 u->range_axis(), " (size ", u->range_size(),
                                                 ", type ", AxisTypeName(u->range_type()), ")"));
      case Op::kReduce:
        OpenReduce(u);
        return absl::OkStatus();
      case Op::kLoad:
        tasks_.push_back({Task::kCompute, u});
        PushAddress(u->src(0));
        return absl::OkStatus();
      case Op::kStage:
      case Op::kScan:
        tasks_.push_back({Task::kCompute, u});
        tasks_.push_back({Task::kExpression, u->src(0)});
        return absl::OkStatus();
      default:
        break;
    }
    if (IsBuffer(u->op) || u->op == Op::kIndex) {
      return absl::InvalidArgumentError(Concat(OpName(u->op), " is used as a value"));
    }
    tasks_.push_back({Task::kCompute, u});
    for (const UOp* s : u->src()) tasks_.push_back({Task::kExpression, s});
    return absl::OkStatus();
  }

  void OpenReduce(const UOp* u) {
    const size_t home = Home(u);
    std::vector<const UOp*> closed(u->src().begin() + 1, u->src().end());
    for (const UOp* r : closed) {
      if (r->range_size() == 0) {
        levels_[home].cells[u] =
            NewConstant(u->dtype.lanes, ReduceStart(u->reduce_op(), u->dtype.scalar));
        return;
      }
    }
    SortByAxis(closed);
    for (const UOp* r : closed) OpenLevel(r);
    tasks_.push_back({Task::kFinishReduce, u, closed.size(), home});
    tasks_.push_back({Task::kExpression, u->src(0)});
  }

  void FinishReduce(const Task& task) {
    const UOp* u = task.node;
    InterpreterStep step{.code = Code::kStart, .node = u, .lanes = u->dtype.lanes};
    step.result = NewCells(u->dtype.lanes);
    step.sources[0] = NewConstant(u->dtype.lanes, ReduceStart(u->reduce_op(), u->dtype.scalar));
    // At `home` itself the accumulation follows the start directly (a REDUCE over no ranges).
    const size_t target = task.levels > 0 ? levels_.size() - 1 : task.home;
    InterpreterStep accumulate = step;
    accumulate.code = Code::kAccumulate;
    accumulate.sources[0] = CellOf(u->src(0));
    InterpreterStep finish = step;
    finish.code = Code::kFinish;
    finish.sources[0] = step.result;
    finish.result = NewCells(u->dtype.lanes);

    levels_[task.home].code.push_back(step);
    levels_[target].code.push_back(accumulate);
    for (size_t i = task.levels; i > 0; --i) levels_.Close(i == 1 ? task.home : levels_.size() - 2);
    levels_[task.home].code.push_back(finish);
    levels_[task.home].cells[u] = finish.result;
  }

  InterpreterStep MemoryAccess(Code code, const UOp* u) {
    const UOp* index = u->src(0);
    InterpreterStep in{.code = code, .node = u, .lanes = index->src(1)->dtype.lanes};
    in.sources[0] = CellOf(index->src(1));
    if (index->source_count == 3) in.sources[1] = CellOf(index->src(2));
    const auto [found, is_new] =
        buffer_numbers_.try_emplace(index->src(0), static_cast<int32_t>(program_.buffers.size()));
    if (is_new) program_.buffers.push_back({.node = index->src(0)});
    in.buffer = found->second;
    InterpreterBuffer& buffer = program_.buffers[in.buffer];
    (code == Code::kLoad ? buffer.loaded : buffer.stored) = true;
    if (buffer.thread_loop == InterpreterBuffer::kUnused) {
      buffer.thread_loop = thread_loop_;
    } else if (buffer.thread_loop != thread_loop_) {
      buffer.thread_loop = InterpreterBuffer::kNone;
    }
    return in;
  }

  void Compute(const UOp* u) {
    InterpreterLevel& home = levels_[Home(u)];
    // Two users may both have asked for it before it was there.
    if (home.cells.contains(u)) return;
    InterpreterStep in;
    if (u->op == Op::kInterleave) {
      in.code = Code::kInterleave;
      in.node = u;
      in.result = NewCells(u->dtype.lanes);
      for (const UOp* s : u->src()) {
        in.lanes = s->dtype.lanes;
        in.sources[0] = CellOf(s);
        home.code.push_back(in);
        ++in.amount;
      }
      home.cells[u] = in.result;
      return;
    }
    if (u->op == Op::kLoad) {
      in = MemoryAccess(Code::kLoad, u);
    } else {
      in.code = u->op == Op::kBroadcast    ? Code::kBroadcast
                : u->op == Op::kHorizontal ? Code::kHorizontal
                : u->op == Op::kExtract    ? Code::kExtract
                : u->op == Op::kStage      ? Code::kStage
                : u->op == Op::kScan       ? Code::kScan
                : u->op == Op::kPrefix     ? Code::kPrefix
                : u->op == Op::kMatrix     ? Code::kMatrix
                : u->op == Op::kTile       ? Code::kTile
                                           : Code::kElementwise;
      in.node = u;
      in.lanes = u->dtype.lanes;
      const size_t values = u->op == Op::kStage || u->op == Op::kScan ? 1 : u->source_count;
      for (size_t i = 0; i < values; ++i) in.sources[i] = CellOf(u->src(i));
    }
    in.result = NewCells(u->dtype.lanes);
    home.code.push_back(in);
    home.cells[u] = in.result;
  }

  const UOp* sink_;
  RangeSets sets_;
  absl::flat_hash_set<const UOp*> loads_;             // nodes with a load below them
  std::array<int, RangeSets::kMaxRanges> reduces_{};  // by range: REDUCEs that depend on it
  InterpreterProgram program_;
  absl::flat_hash_map<const UOp*, int32_t> buffer_numbers_;
  LevelStack levels_{sets_};
  std::vector<Task> tasks_;
  size_t statement_level_ = 0;
  int thread_loop_ = InterpreterBuffer::kNone;
  int thread_loops_ = 0;
};

}  // namespace

absl::StatusOr<InterpreterProgram> CompileForInterpreter(const UOp* sink, LoopOrder order) {
  if (sink->op != Op::kSink) {
    return absl::InvalidArgumentError(Concat("a kernel is a sink, not a ", OpName(sink->op)));
  }
  size_t ranges = 0;
  for (const UOp* u : Toposort(sink)) {
    if (absl::Status s = VerifyNode(u); !s.ok()) return s;
    if (u->op == Op::kRange) ++ranges;
  }
  if (ranges > RangeSets::kMaxRanges) {
    return absl::InvalidArgumentError(
        Concat("a kernel has at most ", RangeSets::kMaxRanges, " ranges, not ", ranges));
  }
  return Compiler(sink, order).Run();
}

}  // namespace quern
