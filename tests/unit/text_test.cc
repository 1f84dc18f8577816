#include "rewrite/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rewrite/build.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

// Text read back into the same graph is the same node, and into another graph has the same hash.
void ExpectRoundTrip(UOpGraph& g, const UOp* root) {
  const std::string text = ToText(root);
  const absl::StatusOr<const UOp*> same = ParseText(g, text);
  ASSERT_TRUE(same.ok()) << same.status() << "\n" << text;
  EXPECT_EQ(*same, root) << text << "\nbecame\n" << ToText(*same);
  UOpGraph other;
  const absl::StatusOr<const UOp*> again = ParseText(other, text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->hash, root->hash);
  EXPECT_EQ(ToText(*again), text);
}

std::string ErrorOf(std::string_view text) {
  UOpGraph g;
  const absl::StatusOr<const UOp*> parsed = ParseText(g, text);
  return parsed.ok() ? "no error" : Concat(parsed.status().message());
}

TEST(TextTest, MatrixVectorProduct) {
  UOpGraph g;
  const UOp* i = Range(g, 2, 0, AxisType::kLoop);
  const UOp* k = Range(g, 4, 1, AxisType::kReduce);
  const UOp* offset = Add(g, Mul(g, i, IndexConst(g, 4)), k);
  const UOp* sum = Reduce(g, Op::kAdd, Load(g, Index(g, Param(g, kF32Type, 0, 8), offset)),
                          std::vector<const UOp*>{k});
  const UOp* store = Store(g, Index(g, Param(g, kF32Type, 1, 2), i), sum);
  const UOp* sink = Sink(g, std::vector<const UOp*>{store});
  EXPECT_EQ(ToText(sink),
            "%0 = param.f32 slot=1 size=2\n"
            "%1 = range.index size=2 axis=0 type=LOOP\n"
            "%2 = index.f32 %0, %1\n"
            "%3 = param.f32 slot=0 size=8\n"
            "%4 = const.index 4\n"
            "%5 = mul.index %1, %4\n"
            "%6 = range.index size=4 axis=1 type=REDUCE\n"
            "%7 = add.index %5, %6\n"
            "%8 = index.f32 %3, %7\n"
            "%9 = load.f32 %8\n"
            "%10 = reduce.f32 op=add %9, %6\n"
            "%11 = store %2, %10\n"
            "%12 = sink %11\n");
  ExpectRoundTrip(g, sink);
}

TEST(TextTest, ConstantsOfEveryType) {
  UOpGraph g;
  const double inf = std::numeric_limits<double>::infinity();
  for (int s = 1; s < kScalarTypeCount; ++s) {
    const DType t(static_cast<ScalarType>(s));
    if (IsFloat(t)) {
      for (double v : {0.0, -0.0, 1.5, 0.1, -1e-7, 3e38, 1e300, 5e-324, inf, -inf, std::nan("")}) {
        ExpectRoundTrip(g, FloatConst(g, t, v));
      }
    } else if (IsIndex(t)) {
      for (int64_t v : {int64_t{0}, int64_t{-7}, INT64_MAX, INT64_MIN}) {
        ExpectRoundTrip(g, IndexConst(g, v));
      }
    } else {
      ExpectRoundTrip(g, IntConst(g, t, MinInteger(t.scalar)));
      ExpectRoundTrip(g, IntConst(g, t, MaxInteger(t.scalar)));
    }
  }
  EXPECT_EQ(ToText(FloatConst(g, kF32Type, 0.1)), "%0 = const.f32 0.1\n");
  EXPECT_EQ(ToText(FloatConst(g, kF64Type, -inf)), "%0 = const.f64 -inf\n");
  EXPECT_EQ(ToText(BoolConst(g, true)), "%0 = const.bool true\n");
  EXPECT_EQ(ToText(IntConst(g, ScalarType::kU64, -1)), "%0 = const.u64 18446744073709551615\n");
  ExpectRoundTrip(g, FloatConst(g, kF32Type.WithLanes(8), 0.1));
}

TEST(TextTest, EveryElementwiseOp) {
  UOpGraph g;
  for (int o = 0; o < kOpCount; ++o) {
    const Op op = static_cast<Op>(o);
    if (!IsElementwise(op)) continue;
    for (ScalarType s : {ScalarType::kI32, ScalarType::kF32, ScalarType::kBool}) {
      for (int lanes : {1, 8}) {
        const DType t(s, lanes);
        const UOp* x = NumberConst(g, t, 1);
        const UOp* condition = NumberConst(g, kBoolType.WithLanes(lanes), 1);
        std::vector<const UOp*> sources(GetOpInfo(op).min_sources, x);
        if (op == Op::kWhere) sources[0] = condition;
        const DType result = GetOpInfo(op).comparison ? condition->dtype : t;
        const UOp* u = g.Make(op, result, sources);
        UOpGraph other;
        if (const auto parsed = ParseText(other, ToText(u)); parsed.ok()) {
          EXPECT_EQ((*parsed)->hash, u->hash);
        } else {  // Each op has a meaning for some of the types.
          EXPECT_THAT(Concat(parsed.status().message()), HasSubstr("is not defined for this type"));
        }
      }
    }
  }
}

TEST(TextTest, LoweredForm) {
  UOpGraph g;
  const DType f32x8 = kF32Type.WithLanes(8);
  const DType index8 = kIndexType.WithLanes(8);
  const UOp* t = Range(g, 2, 0, AxisType::kThread);
  const UOp* k = Range(g, 3, 1, AxisType::kReduce);
  const UOp* lanes = g.Make(Op::kLanes, index8, {});
  const UOp* accumulator = Index(g, Register(g, kF32Type, 0, 8), lanes);
  const UOp* x = g.Make(Op::kBroadcast, f32x8,
                        {Load(g, Index(g, Param(g, kF32Type, 0, 3), k, BoolConst(g, true)))});
  const UOp* zero = Store(g, accumulator, FloatConst(g, f32x8, 0));
  const UOp* step = Store(g, accumulator, g.Make(Op::kMulAdd, f32x8, {x, x, Load(g, accumulator)}));
  const UOp* loop = g.Make(Op::kLoop, kVoidType, {k, step});
  const UOp* sum = g.Make(Op::kHorizontal, kF32Type, {Load(g, accumulator)},
                          {static_cast<int64_t>(Op::kAdd), 1});
  const UOp* lane = g.Make(Op::kExtract, kF32Type, {Load(g, accumulator)}, {3, 0});
  const UOp* out = Store(g, Index(g, Scratch(g, kF32Type, 1, 2), t), Add(g, sum, lane));
  const UOp* block = g.Make(Op::kBlock, kVoidType, {zero, loop, out});
  const UOp* phase = g.Make(Op::kPhase, kVoidType, {g.Make(Op::kLoop, kVoidType, {t, block})});
  ExpectRoundTrip(g, Sink(g, std::vector<const UOp*>{phase}));
  ExpectRoundTrip(g, g.Make(Op::kStage, kF32Type, {sum, k}));
  ExpectRoundTrip(g, g.Make(Op::kStage, kF32Type, {sum, k}, {2, 7}));
  ExpectRoundTrip(g, g.Make(Op::kMatrix, f32x8, {x, x, x}, {2, 0}));
  ExpectRoundTrip(g, g.Make(Op::kRange, kI32Type, {}, RangeArg(5, 3, AxisType::kGroupTop)));
}

TEST(TextTest, ReadsNamesCommentsAndBlankLines) {
  UOpGraph g;
  const auto parsed = ParseText(g,
                                "# a sum\r\n\n  %one = const.i32 1   # one\n"
                                "\t%sum=add.i32 %one,%one\n\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, Add(g, IntConst(g, kI32Type, 1), IntConst(g, kI32Type, 1)));
}

TEST(TextTest, ErrorsNameLineAndColumn) {
  EXPECT_EQ(ErrorOf(""), "line 1, column 1: there is no node");
  EXPECT_EQ(ErrorOf("%0 = const.f32 1\n%1 = frob.f32 %0"), "line 2, column 6: 'frob' is no op");
  EXPECT_EQ(ErrorOf("%0 = const.f31 1"), "line 1, column 12: 'f31' is no dtype");
  EXPECT_EQ(ErrorOf("%0 = const.f32 x"), "line 1, column 16: 'x' is no number of type f32");
  EXPECT_EQ(ErrorOf("%0 = const.i8 128"), "line 1, column 15: '128' is no value of type i8");
  EXPECT_EQ(ErrorOf("%0 = const.u64 -1"), "line 1, column 16: '-1' is no value of type u64");
  EXPECT_EQ(ErrorOf("%0 = neg.f32 %1"), "line 1, column 14: %1 is not defined above");
  EXPECT_EQ(ErrorOf("%0 = const.f32 1\n%0 = const.f32 2"), "line 2, column 1: %0 is defined twice");
  EXPECT_EQ(ErrorOf("%0 = const.f32 1 2"), "line 1, column 18: expected a source: %name");
  EXPECT_EQ(ErrorOf("x"), "line 1, column 1: expected %name =");
  EXPECT_EQ(ErrorOf("%0 const.f32 1"), "line 1, column 4: expected =");
  EXPECT_EQ(ErrorOf("%0 = range.index size=4 axis=0 type=SIDEWAYS"),
            "line 1, column 37: 'SIDEWAYS' is no axis type");
  EXPECT_EQ(ErrorOf("%0 = range.index size=4 axis=0"), "line 1, column 31: expected type=…");
  EXPECT_EQ(ErrorOf("%0 = param.f32 slot=0 size=four"), "line 1, column 28: 'four' is no integer");
}

// Text that would break an invariant further on is refused here.
TEST(TextTest, RefusesWhatHasNoMeaning) {
  const std::string begin =
      "%f = const.f32 1\n%i = const.i32 1\n%b = const.bool true\n%x = const.index 1\n"
      "%v = const.f32x4 1\n%p = param.f32 slot=0 size=4\n%r = range.index size=4 axis=0 type=LOOP\n"
      "%e = index.f32 %p, %x\n%s = store %e, %f\n";
  for (std::string_view line : {"add.f32 %f",
                                "add.f32 %f, %i",
                                "add.i32 %f, %f",
                                "lt.f32 %f, %f",
                                "sub.bool %b, %b",
                                "shl.index %x, %x",
                                "div.i32 %i, %i",
                                "floordiv.f32 %f, %f",
                                "exp.i32 %i",
                                "where.f32 %i, %f, %f",
                                "where.f32 %b, %f, %v",
                                "load.f32 %f",
                                "store %f, %f",
                                "store %e, %i",
                                "index.f32 %f, %x",
                                "index.f32 %p, %f",
                                "index.f32 %p, %x, %x",
                                "index.i32 %p, %x",
                                "reduce.f32 op=sub %f, %r",
                                "reduce.f32 op=add %f, %x",
                                "reduce.f32 op=add %f, %r, %r",
                                "reduce.index op=max %x, %r",
                                "bitcast.f64 %f",
                                "bitcast.i32x2 %f",
                                "broadcast.f32x8 %v",
                                "extract.f32 lane=4 %v",
                                "horizontal.f32 op=add lanes=2 %v",
                                "horizontal.f32x3 op=add lanes=3 %v",
                                "loop %f, %s",
                                "loop %r, %f",
                                "block %f",
                                "sink.f32 %s",
                                "param.index slot=0 size=4",
                                "param.f32 slot=0 size=-1",
                                "param.f32x4 slot=0 size=4",
                                "range.f32 size=4 axis=0 type=LOOP",
                                "add.f32x0 %f, %f",
                                "range.index size=-4 axis=0 type=LOOP",
                                "neg %s",
                                "cast.void %f",
                                "add.f32 %p, %p, %p",
                                "lanes.f32x4",
                                "not.f32 %f",
                                "const.void 1"}) {
    EXPECT_THAT(ErrorOf(Concat(begin, "%0 = ", line)), HasSubstr("line 10, column ")) << line;
  }
}

// Any damage to a sound text gives a node or an error, never a crash.
TEST(TextTest, SurvivesDamage) {
  const std::string text =
      "%0 = param.f32 slot=1 size=2\n%1 = range.index size=2 axis=0 type=LOOP\n"
      "%2 = index.f32 %0, %1\n%3 = const.f32 1.5\n%4 = reduce.f32 op=add %3, %1\n"
      "%5 = store %2, %4\n%6 = sink %5\n";
  const std::string_view letters = "%=., #0123456789abcdefx-\n\t";
  for (size_t i = 0; i < text.size(); ++i) {
    for (char c : letters) {
      std::string damaged = text;
      damaged[i] = c;
      UOpGraph g;
      if (const auto parsed = ParseText(g, damaged); parsed.ok()) ExpectRoundTrip(g, *parsed);
    }
    UOpGraph g;
    ParseText(g, text.substr(0, i)).IgnoreError();
    ParseText(g, text.substr(i)).IgnoreError();
  }
}

}  // namespace
}  // namespace quern
