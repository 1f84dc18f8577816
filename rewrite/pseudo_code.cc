#include "rewrite/pseudo_code.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite/concat.h"
#include "rewrite/expression_piece.h"
#include "rewrite/graph.h"
#include "rewrite/interpreter_program.h"

namespace quern {
namespace {

using Code = InterpreterStep::Code;

// A value that is used again gets a name if it is longer than this, and every value if it is longer
// than a line.
constexpr size_t kShort = 16;
constexpr size_t kLine = 120;
constexpr size_t kLongestMessage = 400;

// The steps of the interpreter are the kernel in the order of its work: this prints them, putting
// the text of a value where the value is used.
class Printer {
 public:
  explicit Printer(const InterpreterProgram& program)
      : program_(program), pieces_(program.cells), uses_(program.cells, 0) {
    for (const InterpreterStep& step : program.code) {
      for (int32_t cell : step.sources) {
        if (cell >= 0) ++uses_[cell];
      }
      phases_ += step.code == Code::kPhase;
    }
  }

  std::string Run() {
    PrintBuffers();
    for (const InterpreterStep& step : program_.code) Print(step);
    return std::move(text_);
  }

 private:
  template <typename... Parts>
  void Line(const Parts&... parts) {
    text_.append(2 * depth_, ' ');
    Append(text_, parts..., "\n");
  }

  void PrintBuffers() {
    std::vector<const UOp*> buffers;
    for (const InterpreterBuffer& b : program_.buffers) buffers.push_back(b.node);
    std::sort(buffers.begin(), buffers.end(), [](const UOp* a, const UOp* b) {
      return a->op != b->op ? a->op < b->op : a->slot() < b->slot();
    });
    for (const UOp* b : buffers) {
      Line(OpName(b->op), " ", DTypeName(b->dtype), " ", NameText(b), "[", b->buffer_size(), "]");
    }
  }

  // Constants have no step of their own, so they are known by the node that uses them.
  ExpressionPiece Source(const InterpreterStep& step, int i, const UOp* node) {
    const ExpressionPiece& piece = pieces_[step.sources[i]];
    if (!piece.text.empty()) return piece;
    if (node->op == Op::kReduce) return OperationPiece(node, {{ExpressionPiece{"nothing", 0}}});
    return LeafPiece(node);
  }

  ExpressionPiece Access(const InterpreterStep& step) {
    const UOp* index = step.node->src(0);
    const ExpressionPiece offset = Source(step, 0, index->src(1));
    if (step.sources[1] < 0) return AccessPiece(index->src(0), offset, nullptr);
    const ExpressionPiece gate = Source(step, 1, index->src(2));
    return AccessPiece(index->src(0), offset, &gate);
  }

  ExpressionPiece NewName() { return {Concat("t", names_++), kTightest}; }

  void Define(const InterpreterStep& step, ExpressionPiece piece) {
    const size_t length = piece.text.size();
    if ((uses_[step.result] > 1 && length > kShort) || length > kLine) {
      const ExpressionPiece name = NewName();
      Line(name.text, " = ", piece.text);
      piece = name;
    }
    pieces_[step.result] = std::move(piece);
  }

  void Print(const InterpreterStep& step) {
    const UOp* u = step.node;
    switch (step.code) {
      case Code::kPhase:
        if (phases_ > 1) Line("# phase ", phase_++);
        break;
      case Code::kNewThread:
        break;
      case Code::kGuard:
        Line("guard ", Source(step, 0, u->src(0)).text);
        break;
      case Code::kLoop:
        pieces_[step.result] = LeafPiece(u);
        if (u->range_type() == AxisType::kLoop) {
          Line("for ", NameText(u), " in ", u->range_size(), ":");
        } else {
          Line("for ", NameText(u), " in ", u->range_size(), " (", AxisTypeName(u->range_type()),
               "):");
        }
        ++depth_;
        break;
      case Code::kLoopEnd:
        --depth_;
        break;
      case Code::kLoad:
        Define(step, Access(step));
        break;
      case Code::kStore:
        Line(Access(step).text, " = ", Source(step, 2, u->src(1)).text);
        break;
      case Code::kStart:
        pieces_[step.result] = NewName();
        Line(pieces_[step.result].text, " = ", StartText(u));
        break;
      case Code::kAccumulate: {
        const std::string& sum = pieces_[step.result].text;
        const std::string value = Source(step, 0, u->src(0)).text;
        const Op op = u->reduce_op();
        if (op == Op::kAdd || op == Op::kMul) {
          Line(sum, op == Op::kAdd ? " += " : " *= ", value);
        } else {
          Line(sum, " = ", OpName(op), "(", sum, ", ", value, ")");
        }
        break;
      }
      case Code::kFinish:
        pieces_[step.result] = pieces_[step.sources[0]];
        break;
      default: {
        std::vector<ExpressionPiece> sources;
        for (int i = 0; i < 3 && step.sources[i] >= 0; ++i) {
          sources.push_back(Source(step, i, u->src(i)));
        }
        Define(step, OperationPiece(u, sources));
      }
    }
  }

  static std::string StartText(const UOp* reduce) {
    const Op op = reduce->reduce_op();
    if (op == Op::kAdd) return "0";
    if (op == Op::kMul) return "1";
    return op == Op::kMax ? "lowest" : "highest";
  }

  static constexpr int kTightest = 12;

  const InterpreterProgram& program_;
  std::vector<ExpressionPiece> pieces_;  // by cell
  std::vector<int> uses_;                // by cell
  std::string text_;
  size_t depth_ = 0;
  int names_ = 0;
  int phases_ = 0;
  int phase_ = 0;
};

}  // namespace

std::string PseudoCode(const UOp* sink) {
  const absl::StatusOr<InterpreterProgram> program = CompileForInterpreter(sink, LoopOrder::kAxis);
  if (!program.ok()) return Concat("# not a kernel: ", program.status().message(), "\n");
  return Printer(*program).Run();
}

std::string ExpressionText(const UOp* value) {
  absl::flat_hash_map<const UOp*, ExpressionPiece> pieces;
  std::vector<ExpressionPiece> sources;
  for (const UOp* u : Toposort(value)) {
    ExpressionPiece& piece = pieces[u];
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(pieces.at(s));
    if (u->source_count == 0 && !GetOpInfo(u->op).statement) {
      piece = LeafPiece(u);
    } else if (u->op == Op::kIndex) {
      piece = AccessPiece(u->src(0), sources[1], u->source_count == 3 ? &sources[2] : nullptr);
    } else if (u->op == Op::kLoad) {
      piece = sources[0];
    } else if (u->op == Op::kStore) {
      piece = {Concat(sources[0].text, " = ", sources[1].text), 0};
    } else {
      piece = OperationPiece(u, sources);
    }
    if (piece.text.size() > kLongestMessage) {
      size_t end = kLongestMessage;
      piece.text = Concat(std::string_view(piece.text).substr(0, end), "…");
    }
  }
  return pieces.at(value).text;
}

}  // namespace quern
