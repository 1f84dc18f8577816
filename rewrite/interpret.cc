#include "rewrite/interpret.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "rewrite/concat.h"
#include "rewrite/interpreter_program.h"
#include "rewrite/scan.h"

namespace quern {
namespace {

using Code = InterpreterStep::Code;

// More private memory than any sound kernel asks for is an error in the kernel.
constexpr int64_t kMaxPrivateBytes = int64_t{1} << 32;

struct Memory {
  const UOp* node = nullptr;
  std::byte* write = nullptr;
  const std::byte* read = nullptr;
  std::vector<std::byte> owned;
};

std::string BufferName(const UOp* b) {
  return Concat(OpName(b->op), " ", b->slot(), " (", DTypeName(b->dtype), ", ", b->buffer_size(),
                " elements)");
}

absl::StatusOr<int64_t> BytesOf(const UOp* buffer) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(buffer->buffer_size(),
                             int64_t{ByteSize(buffer->dtype.scalar)} * buffer->dtype.lanes,
                             &bytes)) {
    return absl::InvalidArgumentError(Concat(BufferName(buffer), " is larger than memory can be"));
  }
  return bytes;
}

// NaN in every float type, true in bool, -1 or the largest value in integers.
void FillWithNonsense(std::vector<std::byte>& memory) {
  std::fill(memory.begin(), memory.end(), std::byte{0xff});
}

absl::Status Bind(const InterpreterProgram& program, std::span<const BufferView> params,
                  std::vector<Memory>& memories) {
  int64_t private_bytes = 0;
  for (const InterpreterBuffer& buffer : program.buffers) {
    Memory memory;
    memory.node = buffer.node;
    const absl::StatusOr<int64_t> bytes = BytesOf(buffer.node);
    if (!bytes.ok()) return bytes.status();
    if (buffer.node->op != Op::kParam) {
      private_bytes += std::min(*bytes, kMaxPrivateBytes);
      if (private_bytes > kMaxPrivateBytes) {
        return absl::ResourceExhaustedError(
            Concat(BufferName(buffer.node), " does not fit into private memory"));
      }
      memory.owned.resize(*bytes);
      FillWithNonsense(memory.owned);
      memory.write = memory.owned.data();
      memory.read = memory.write;
      memories.push_back(std::move(memory));
      continue;
    }
    const BufferView* view = nullptr;
    for (const BufferView& v : params) {
      if (v.slot == buffer.node->slot()) view = &v;
    }
    if (view == nullptr) {
      return absl::InvalidArgumentError(Concat(BufferName(buffer.node), " has no memory"));
    }
    if (view->bytes < *bytes) {
      return absl::InvalidArgumentError(Concat(BufferName(buffer.node), " needs ", *bytes,
                                               " bytes of memory, not ", view->bytes));
    }
    memory.write = static_cast<std::byte*>(view->data);
    memory.read = memory.write;
    if (program.reads_before_writes && buffer.loaded && buffer.stored) {
      memory.owned.assign(memory.write, memory.write + *bytes);
      memory.read = memory.owned.data();
    }
    memories.push_back(std::move(memory));
  }
  return absl::OkStatus();
}

Scalar ReadScalar(ScalarType type, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, ByteSize(type));
  return ScalarFromBits(type, bits);
}

void WriteScalar(ScalarType type, std::byte* at, Scalar value) {
  const uint64_t bits = ScalarToBits(type, value);
  std::memcpy(at, &bits, ByteSize(type));
}

class Machine {
 public:
  Machine(const InterpreterProgram& program, std::vector<Memory>& memories)
      : program_(program), memories_(memories), cells_(program.cells, Scalar{.i = 0}) {
    for (const auto& [cell, value] : program.constants) cells_[cell] = value;
  }

  absl::Status Run() {
    const auto size = static_cast<int64_t>(program_.code.size());
    for (int64_t pc = 0; pc < size; ++pc) {
      const InterpreterStep& in = program_.code[pc];
      switch (in.code) {
        case Code::kLoop:
          cells_[in.result].i = in.backwards ? in.amount - 1 : 0;
          if (in.amount == 0) pc += in.jump;
          break;
        case Code::kLoopEnd: {
          int64_t& value = cells_[in.result].i;
          value += in.backwards ? -1 : 1;
          if (in.backwards ? value >= 0 : value < in.amount) pc -= in.jump;
          break;
        }
        case Code::kNewThread:
          for (size_t i = 0; i < memories_.size(); ++i) {
            if (program_.buffers[i].thread_loop == in.amount &&
                program_.buffers[i].node->op != Op::kParam) {
              FillWithNonsense(memories_[i].owned);
            }
          }
          break;
        case Code::kGuard:
        case Code::kPhase:
          break;
        case Code::kLoad:
        case Code::kStore:
          if (absl::Status s = Access(in); !s.ok()) return s;
          break;
        default:
          Step(in);
          if (overflow_) {
            return absl::OutOfRangeError(
                Concat("the index computed by ", OpName(in.node->op), " leaves 64 bits"));
          }
      }
    }
    return absl::OkStatus();
  }

 private:
  // Each lane of the accumulator gains its group of products; an operand of one group serves all.
  void Matrix(const InterpreterStep& in, Scalar* result) {
    const ScalarType type = in.node->dtype.scalar;
    const DType a = in.node->src(1)->dtype;
    const DType b = in.node->src(2)->dtype;
    const int group = std::max(a.lanes, b.lanes) / in.lanes;
    for (int lane = 0; lane < in.lanes; ++lane) {
      Scalar sum = cells_[in.sources[0] + lane];
      for (int i = 0; i < group; ++i) {
        const Scalar x = cells_[in.sources[1] + (a.lanes == group ? i : lane * group + i)];
        const Scalar y = cells_[in.sources[2] + (b.lanes == group ? i : lane * group + i)];
        const Scalar factors[2] = {Evaluate(Op::kCast, a.scalar, type, &x, &overflow_),
                                   Evaluate(Op::kCast, b.scalar, type, &y, &overflow_)};
        const Scalar terms[2] = {sum, Evaluate(Op::kMul, type, type, factors, &overflow_)};
        sum = Evaluate(Op::kAdd, type, type, terms, &overflow_);
      }
      result[lane] = sum;
    }
  }

  // c + a·b, the rows of `a` in groups of 32 bits, of which `b` has one for each column.
  void Tile(const InterpreterStep& in, Scalar* result) {
    const ScalarType type = in.node->dtype.scalar;
    const DType a = in.node->src(1)->dtype;
    const DType b = in.node->src(2)->dtype;
    const auto rows = static_cast<int>(in.node->arg.b);
    const int columns = in.lanes / rows;
    const int depth = a.lanes / rows;
    const int group = 4 / ByteSize(a.scalar);
    for (int lane = 0; lane < in.lanes; ++lane) {
      Scalar sum = cells_[in.sources[0] + lane];
      for (int k = 0; k < depth; ++k) {
        const int at_b = ((k / group) * columns + lane % columns) * group + k % group;
        const Scalar x = cells_[in.sources[1] + lane / columns * depth + k];
        const Scalar y = cells_[in.sources[2] + at_b];
        const Scalar factors[2] = {Evaluate(Op::kCast, a.scalar, type, &x, &overflow_),
                                   Evaluate(Op::kCast, b.scalar, type, &y, &overflow_)};
        const Scalar terms[2] = {sum, Evaluate(Op::kMul, type, type, factors, &overflow_)};
        sum = Evaluate(Op::kAdd, type, type, terms, &overflow_);
      }
      result[lane] = sum;
    }
  }

  void Step(const InterpreterStep& in) {
    const ScalarType type = in.node->dtype.scalar;
    Scalar* result = &cells_[in.result];
    const Scalar* source = &cells_[in.sources[0]];
    switch (in.code) {
      case Code::kElementwise: {
        const uint32_t count = in.node->source_count;
        const ScalarType from = in.node->sources[count - 1]->dtype.scalar;
        for (int lane = 0; lane < in.lanes; ++lane) {
          Scalar s[3];
          for (uint32_t i = 0; i < count; ++i) s[i] = cells_[in.sources[i] + lane];
          result[lane] = Evaluate(in.node->op, from, type, s, &overflow_);
        }
        break;
      }
      case Code::kBroadcast:
        for (int lane = 0; lane < in.lanes; ++lane) result[lane] = *source;
        break;
      case Code::kExtract:
        for (int lane = 0; lane < in.lanes; ++lane) result[lane] = source[in.node->arg.a + lane];
        break;
      case Code::kInterleave:
        for (int lane = 0; lane < in.lanes; ++lane) {
          const auto group = static_cast<int>(std::max<int64_t>(1, in.node->arg.a));
          const auto sources = static_cast<int>(in.node->source_count);
          result[((lane / group) * sources + in.amount) * group + lane % group] = source[lane];
        }
        break;
      case Code::kMatrix:
        Matrix(in, result);
        break;
      case Code::kTile:
        Tile(in, result);
        break;
      case Code::kHorizontal: {
        // Neighbours are combined: lane i is made of the lanes from i·group on.
        const int group = in.node->src(0)->dtype.lanes / in.lanes;
        for (int lane = 0; lane < in.lanes; ++lane) {
          Scalar sum = source[lane * group];
          for (int i = 1; i < group; ++i) Combine(in.node, type, source[lane * group + i], sum);
          result[lane] = IsFloat(type) ? Scalar{.f = RoundFloat(type, sum.f)} : sum;
        }
        break;
      }
      case Code::kPrefix: {
        const bool reverse = (in.node->arg.b & kScanReverse) != 0;
        const bool exclusive = (in.node->arg.b & kScanExclusive) != 0;
        Scalar sum = ReduceStart(in.node->reduce_op(), type);
        for (int i = 0; i < in.lanes; ++i) {
          const int lane = reverse ? in.lanes - 1 - i : i;
          const Scalar before = sum;
          Combine(in.node, type, source[lane], sum);
          const Scalar here = exclusive ? before : sum;
          result[lane] = IsFloat(type) ? Scalar{.f = RoundFloat(type, here.f)} : here;
        }
        break;
      }
      case Code::kStage:
      case Code::kStart:
        for (int lane = 0; lane < in.lanes; ++lane) result[lane] = source[lane];
        break;
      case Code::kAccumulate:
        for (int lane = 0; lane < in.lanes; ++lane) {
          Combine(in.node, type, source[lane], result[lane]);
        }
        break;
      case Code::kFinish:
        for (int lane = 0; lane < in.lanes; ++lane) {
          result[lane] =
              IsFloat(type) ? Scalar{.f = RoundFloat(type, source[lane].f)} : source[lane];
        }
        break;
      default:
        QUERN_CHECK_MSG(false, "no such instruction");
    }
  }

  // Sums and products of floats stay in double until they are complete.
  void Combine(const UOp* node, ScalarType type, Scalar value, Scalar& sum) {
    const Op op = node->reduce_op();
    const Scalar s[2] = {sum, value};
    const ScalarType wide = IsFloat(type) ? ScalarType::kF64 : type;
    sum = Evaluate(op, wide, wide, s, &overflow_);
  }

  absl::Status Access(const InterpreterStep& in) {
    const UOp* index = in.node->sources[0];
    Memory& memory = memories_[in.buffer];
    const ScalarType type = memory.node->dtype.scalar;
    const int bytes = ByteSize(type);
    const int group = memory.node->dtype.lanes;
    const bool one_gate = in.sources[1] < 0 || index->sources[2]->dtype.lanes == 1;
    for (int lane = 0; lane < in.lanes; ++lane) {
      const bool open = in.sources[1] < 0 || cells_[in.sources[1] + (one_gate ? 0 : lane)].i != 0;
      if (!open) {
        for (int i = 0; in.code == Code::kLoad && i < group; ++i) {
          // 64 zero bits are 0, false and +0.0.
          cells_[in.result + lane * group + i] = Scalar{.i = 0};
        }
        continue;
      }
      const int64_t offset = cells_[in.sources[0] + lane].i;
      if (offset < 0 || offset >= memory.node->buffer_size()) {
        return absl::OutOfRangeError(Concat(OpName(in.node->op), " of ", BufferName(memory.node),
                                            ": offset ", offset, " is outside [0, ",
                                            memory.node->buffer_size(), ")"));
      }
      for (int i = 0; i < group; ++i) {
        const int64_t at = (offset * group + i) * bytes;
        if (in.code == Code::kLoad) {
          cells_[in.result + lane * group + i] = ReadScalar(type, memory.read + at);
        } else {
          WriteScalar(type, memory.write + at, cells_[in.sources[2] + lane * group + i]);
        }
      }
    }
    return absl::OkStatus();
  }

  const InterpreterProgram& program_;
  std::vector<Memory>& memories_;
  std::vector<Scalar> cells_;
  bool overflow_ = false;
};

}  // namespace

absl::Status Interpret(const UOp* sink, std::span<const BufferView> params) {
  UOpGraph graph;
  sink = ScansAsReductions(graph, sink);
  const absl::StatusOr<InterpreterProgram> program =
      CompileForInterpreter(sink, LoopOrder::kReduces);
  if (!program.ok()) return program.status();
  std::vector<Memory> memories;
  if (absl::Status s = Bind(*program, params, memories); !s.ok()) return s;
  return Machine(*program, memories).Run();
}

}  // namespace quern
