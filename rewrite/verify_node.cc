#include "rewrite/verify_node.h"

#include <cmath>

#include "rewrite/concat.h"

namespace quern {
namespace {

// Everything that a rule below looks at.
struct Node {
  Op op;
  DType dtype;
  std::span<const UOp* const> sources;
  Arg arg;

  DType source(size_t i) const { return sources[i]->dtype; }
};

absl::Status Fail(const Node& n, std::string_view why) {
  std::string sources;
  for (const UOp* s : n.sources) {
    Append(sources, sources.empty() ? "" : ", ", OpName(s->op), ".", DTypeName(s->dtype));
  }
  return absl::InvalidArgumentError(
      Concat(OpName(n.op), ".", DTypeName(n.dtype), "(", sources, "): ", why));
}

bool IsCombining(int64_t op) {
  return op == static_cast<int64_t>(Op::kAdd) || op == static_cast<int64_t>(Op::kMul) ||
         op == static_cast<int64_t>(Op::kMax) || op == static_cast<int64_t>(Op::kMin);
}

bool IsWhole(DType t) { return IsInteger(t) || IsIndex(t); }

absl::Status VerifySourceCount(const Node& n) {
  const OpInfo& info = GetOpInfo(n.op);
  const int count = static_cast<int>(n.sources.size());
  if (count < info.min_sources || (info.max_sources >= 0 && count > info.max_sources)) {
    return Fail(n,
                Concat("takes ",
                       info.max_sources == info.min_sources ? Concat(info.min_sources)
                       : info.max_sources < 0 ? Concat("at least ", info.min_sources)
                                              : Concat(info.min_sources, " to ", info.max_sources),
                       " sources, not ", count));
  }
  return absl::OkStatus();
}

absl::Status VerifyConst(const Node& n) {
  if (n.dtype.scalar == ScalarType::kVoid) return Fail(n, "a constant has a value type");
  if (IsFloat(n.dtype)) {
    const double value = std::bit_cast<double>(n.arg.a);
    if (!std::isnan(value) && RoundFloat(n.dtype.scalar, value) != value) {
      return Fail(n, Concat(value, " is not a value of the type"));
    }
  } else if (WrapInteger(n.dtype.scalar, n.arg.a) != n.arg.a) {
    return Fail(n, Concat(n.arg.a, " is not a value of the type"));
  }
  return absl::OkStatus();
}

absl::Status VerifyBuffer(const Node& n) {
  if (ByteSize(n.dtype.scalar) == 0) return Fail(n, "a buffer has an element type of known size");
  if (n.op == Op::kParam && n.dtype.lanes != 1) return Fail(n, "a param has scalar elements");
  if (n.arg.a < 0) return Fail(n, Concat("slot ", n.arg.a, " is negative"));
  if (n.arg.b < 0) return Fail(n, Concat("size ", n.arg.b, " is negative"));
  return absl::OkStatus();
}

absl::Status VerifyRange(const Node& n) {
  if (!IsWhole(n.dtype) || n.dtype.lanes != 1)
    return Fail(n, "a range is a scalar index or integer");
  if (n.arg.a < 0) return Fail(n, Concat("size ", n.arg.a, " is negative"));
  if (n.arg.b < 0 || (n.arg.b & 0xff) >= kAxisTypeCount) {
    return Fail(n, Concat("no axis number and type are packed as ", n.arg.b));
  }
  return absl::OkStatus();
}

absl::Status VerifyIndex(const Node& n) {
  if (!IsBuffer(n.sources[0]->op)) return Fail(n, "source 0 is not a buffer");
  const DType buffer = n.source(0);
  const DType offset = n.source(1);
  if (!IsWhole(offset)) return Fail(n, "the offset is not an index or integer");
  // A register may have vectors as elements; then each offset names one whole vector.
  if (n.dtype.scalar != buffer.scalar || n.dtype.lanes != buffer.lanes * offset.lanes) {
    return Fail(n, "the type is not that of the elements, one for each lane of the offset");
  }
  if (n.sources.size() == 3) {
    const DType gate = n.source(2);
    if (!IsBool(gate)) return Fail(n, "the gate is not bool");
    if (gate.lanes != 1 && gate.lanes != offset.lanes) {
      return Fail(n, "the gate has neither one lane nor those of the offset");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyMemory(const Node& n) {
  if (n.sources[0]->op != Op::kIndex) return Fail(n, "source 0 is not an index");
  if (n.op == Op::kLoad) {
    if (n.dtype != n.source(0)) return Fail(n, "the type is not that of the index");
    if (n.sources.size() == 2 && n.source(1) != kIndexType) {
      return Fail(n, "the place to fetch is no index");
    }
  } else if (n.source(1) != n.source(0)) {
    return Fail(n, "the value has not the type of the index");
  }
  return absl::OkStatus();
}

absl::Status VerifyScan(const Node& n) {
  if (n.dtype != n.source(0)) return Fail(n, "the type is not that of the value");
  if (!IsCombining(n.arg.a)) return Fail(n, "combines with add, mul, max or min only");
  if (!IsFloat(n.dtype) && !IsInteger(n.dtype)) return Fail(n, "is for floats and integers only");
  if ((n.arg.b & ~(kScanExclusive | kScanReverse)) != 0) {
    return Fail(n, Concat("there are no flags ", n.arg.b));
  }
  for (size_t i = 1; i < n.sources.size(); ++i) {
    if (n.sources[i]->op != Op::kRange) return Fail(n, Concat("source ", i, " is not a range"));
    for (size_t j = 1; j < i; ++j) {
      if (n.sources[i] == n.sources[j]) return Fail(n, "a range is named twice");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyReduce(const Node& n) {
  if (n.dtype != n.source(0)) return Fail(n, "the type is not that of the value");
  for (size_t i = 1; i < n.sources.size(); ++i) {
    if (n.sources[i]->op != Op::kRange) return Fail(n, Concat("source ", i, " is not a range"));
    for (size_t j = 1; j < i; ++j) {
      if (n.sources[i] == n.sources[j]) return Fail(n, "a range is named twice");
    }
  }
  if (n.op == Op::kStage) return absl::OkStatus();
  if (!IsCombining(n.arg.a)) return Fail(n, "combines with add, mul, max or min only");
  if (IsIndex(n.dtype) && n.arg.a != static_cast<int64_t>(Op::kAdd) &&
      n.arg.a != static_cast<int64_t>(Op::kMul)) {
    return Fail(n, "an index has no lowest or highest value to begin with");
  }
  return absl::OkStatus();
}

// Which element types an operation is documented for.
bool IsMeant(Op op, DType t) {
  switch (op) {
    case Op::kSub:
    case Op::kNeg:
    case Op::kAbs:
    case Op::kMulAdd:
      return !IsBool(t);
    case Op::kDiv:
    case Op::kFloor:
    case Op::kSqrt:
    case Op::kExp:
    case Op::kExp2:
    case Op::kLog:
    case Op::kLog2:
    case Op::kSin:
    case Op::kTanh:
    case Op::kErf:
      return IsFloat(t);
    case Op::kFloorDiv:
    case Op::kFloorMod:
    case Op::kTruncDiv:
    case Op::kTruncMod:
      return IsWhole(t);
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return IsWhole(t) || IsBool(t);
    case Op::kShl:
    case Op::kShr:
      return IsInteger(t);
    case Op::kNot:
      return IsInteger(t) || IsBool(t);
    default:
      return true;
  }
}

absl::Status VerifyElementwise(const Node& n) {
  if (n.dtype.scalar == ScalarType::kVoid) return Fail(n, "has no value type");
  for (size_t i = 0; i < n.sources.size(); ++i) {
    if (n.source(i).scalar == ScalarType::kVoid) return Fail(n, "a source has no value");
    if (n.source(i).lanes != n.dtype.lanes) return Fail(n, "the lanes differ");
  }
  switch (n.op) {
    case Op::kCast:
      return absl::OkStatus();
    case Op::kBitcast:
      if (BitWidth(n.dtype.scalar) != BitWidth(n.source(0).scalar) || IsIndex(n.dtype) ||
          IsIndex(n.source(0))) {
        return Fail(n, "the types differ in width");
      }
      return absl::OkStatus();
    case Op::kWhere:
      if (!IsBool(n.source(0))) return Fail(n, "the condition is not bool");
      if (n.source(1) != n.dtype || n.source(2) != n.dtype) return Fail(n, "the types differ");
      return absl::OkStatus();
    default:
      break;
  }
  for (size_t i = 1; i < n.sources.size(); ++i) {
    if (n.source(i) != n.source(0)) return Fail(n, "the sources differ in type");
  }
  if (GetOpInfo(n.op).comparison) {
    if (!IsBool(n.dtype)) return Fail(n, "a comparison is bool");
  } else if (n.dtype != n.source(0)) {
    return Fail(n, "the type is not that of the sources");
  }
  if (!IsMeant(n.op, n.source(0))) return Fail(n, "is not defined for this type");
  return absl::OkStatus();
}

absl::Status VerifyVector(const Node& n) {
  const DType from = n.source(0);
  if (n.op == Op::kTile) {
    const int64_t rows = n.arg.b;
    if (n.dtype != from) return Fail(n, "the type is not that of the accumulator");
    if (rows < 1 || n.dtype.lanes % rows != 0 || n.source(1).lanes % rows != 0 ||
        n.source(2).lanes != n.source(1).lanes / rows * (n.dtype.lanes / rows)) {
      return Fail(n, Concat("the matrices do not fit for ", rows, " rows"));
    }
    const int bytes = ByteSize(n.source(1).scalar);
    return bytes >= 1 && bytes <= 4 ? absl::OkStatus()
                                    : Fail(n, "the factors do not fill groups of 32 bits");
  }
  if (n.op == Op::kMatrix) {
    return n.dtype == from ? absl::OkStatus() : Fail(n, "the type is not that of the accumulator");
  }
  if (n.dtype.scalar != from.scalar || from.scalar == ScalarType::kVoid) {
    return Fail(n, "the element types differ");
  }
  switch (n.op) {
    case Op::kBroadcast:
      if (from.lanes != 1) return Fail(n, "the source is not a scalar");
      return absl::OkStatus();
    case Op::kExtract:
      if (n.arg.a < 0 || n.arg.a + n.dtype.lanes > from.lanes) {
        return Fail(n, Concat("there is no lane ", n.arg.a + n.dtype.lanes - 1));
      }
      return absl::OkStatus();
    case Op::kInterleave:
      for (size_t i = 0; i < n.sources.size(); ++i) {
        if (n.source(i) != from) return Fail(n, "the sources differ in type");
      }
      if (n.dtype.lanes != from.lanes * static_cast<int>(n.sources.size())) {
        return Fail(n, "has not the lanes of all its sources");
      }
      if (n.arg.a < 0 || (n.arg.a > 0 && from.lanes % n.arg.a != 0)) {
        return Fail(n, Concat("cannot cut ", from.lanes, " lanes into groups of ", n.arg.a));
      }
      return absl::OkStatus();
    default:
      if (!IsCombining(n.arg.a)) return Fail(n, "combines with add, mul, max or min only");
      if (n.arg.b != n.dtype.lanes || n.dtype.lanes < 1 || from.lanes % n.dtype.lanes != 0) {
        return Fail(n, Concat("cannot combine ", from.lanes, " lanes to ", n.arg.b));
      }
      return absl::OkStatus();
  }
}

absl::Status VerifyStatement(const Node& n) {
  if (n.op == Op::kGuard) {
    return n.sources[0]->dtype == kBoolType ? absl::OkStatus() : Fail(n, "needs one bool");
  }
  size_t first = 0;
  if (n.op == Op::kLoop) {
    if (n.sources[0]->op != Op::kRange) return Fail(n, "source 0 is not a range");
    first = 1;
  }
  for (size_t i = first; i < n.sources.size(); ++i) {
    const Op op = n.sources[i]->op;
    if (!GetOpInfo(op).statement) return Fail(n, Concat("source ", i, " is no statement"));
    // A kernel in several parts: each is a sink of stores, or a phase of statements.
    if ((op == Op::kSink || op == Op::kPhase) && n.op != Op::kSink) {
      return Fail(n, Concat("a ", OpName(op), " does not stand inside"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyNode(Op op, DType dtype, std::span<const UOp* const> sources, Arg arg) {
  const Node n{op, dtype, sources, arg};
  if (absl::Status s = VerifySourceCount(n); !s.ok()) return s;
  if (dtype.lanes < 1) return Fail(n, "has no lanes");
  if (GetOpInfo(op).statement != (dtype == kVoidType)) {
    return Fail(n, "statements, and nothing else, have the type void");
  }
  switch (op) {
    case Op::kConst:
      return VerifyConst(n);
    case Op::kParam:
    case Op::kScratch:
    case Op::kRegister:
      return VerifyBuffer(n);
    case Op::kRange:
      return VerifyRange(n);
    case Op::kLanes:
      return IsWhole(dtype) ? absl::OkStatus() : Fail(n, "lanes are indices or integers");
    case Op::kIndex:
      return VerifyIndex(n);
    case Op::kLoad:
    case Op::kStore:
      return VerifyMemory(n);
    case Op::kReduce:
    case Op::kStage:
      return VerifyReduce(n);
    case Op::kScan:
    case Op::kPrefix:
      return VerifyScan(n);
    case Op::kBroadcast:
    case Op::kHorizontal:
    case Op::kExtract:
    case Op::kInterleave:
    case Op::kMatrix:
    case Op::kTile:
      return VerifyVector(n);
    case Op::kLoop:
    case Op::kBlock:
    case Op::kGuard:
    case Op::kPhase:
    case Op::kSink:
      return VerifyStatement(n);
    default:
      return VerifyElementwise(n);
  }
}

}  // namespace quern
