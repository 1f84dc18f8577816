#include "rewrite/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/evaluate.h"
#include "rewrite/text.h"
#include "tests/unit/node_value.h"

namespace quern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Nodes = std::vector<const UOp*>;

const double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

MATCHER(IsNaN, "") { return std::isnan(arg); }

template <typename T>
BufferView View(int64_t slot, std::vector<T>& data) {
  return {slot, data.data(), static_cast<int64_t>(data.size() * sizeof(T))};
}

TEST(InterpretTest, VectorOps) {
  UOpGraph g;
  const DType index4 = kIndexType.WithLanes(4);
  const UOp* lanes = g.Make(Op::kLanes, index4, {});
  const UOp* two = g.Make(Op::kBroadcast, index4, {IndexConst(g, 2)});
  const UOp* doubled = Mul(g, lanes, two);  // 0 2 4 6
  EXPECT_EQ(ValueOf(g, g.Make(Op::kExtract, kIndexType, {doubled}, {3, 0})).i, 6);
  EXPECT_EQ(ValueOf(g, g.Make(Op::kHorizontal, kIndexType, {doubled},
                              {static_cast<int64_t>(Op::kAdd), 1}))
                .i,
            12);
  const UOp* pairs = g.Make(Op::kHorizontal, kIndexType.WithLanes(2), {doubled},
                            {static_cast<int64_t>(Op::kAdd), 2});
  EXPECT_EQ(ValueOf(g, g.Make(Op::kExtract, kIndexType, {pairs}, {0, 0})).i, 2);
  EXPECT_EQ(ValueOf(g, g.Make(Op::kExtract, kIndexType, {pairs}, {1, 0})).i, 10);
}

TEST(InterpretTest, IndexOverflowIsAnError) {
  UOpGraph g;
  const UOp* big = IndexConst(g, INT64_MAX);
  const UOp* store = Store(g, Index(g, Param(g, kI64Type, 0, 1), IndexConst(g, 0)),
                           Cast(g, Add(g, big, big), kI64Type));
  std::vector<int64_t> out(1);
  const BufferView view = View(0, out);
  const absl::Status status = Interpret(Sink(g, Nodes{store}), std::span(&view, 1));
  EXPECT_THAT(Concat(status.message()), HasSubstr("leaves 64 bits"));
}

absl::Status RunText(std::string_view text, std::initializer_list<BufferView> views) {
  UOpGraph g;
  const absl::StatusOr<const UOp*> sink = ParseText(g, text);
  if (!sink.ok()) return sink.status();
  return Interpret(*sink, std::vector<BufferView>(views));
}

TEST(InterpretTest, SoftmaxReadsItsRowOncePerPass) {
  // 2,000 × 2,000 would take minutes if the maximum were computed for each element.
  UOpGraph g;
  const int64_t n = 2;
  const int64_t m = 2000;
  const UOp* x = Param(g, kF32Type, 0, n * m);
  // The output loop over columns stands outside the one over rows on purpose.
  const UOp* j = Range(g, m, 0, AxisType::kLoop);
  const UOp* i = Range(g, n, 1, AxisType::kLoop);
  const UOp* a = Range(g, m, 2, AxisType::kReduce);
  const UOp* b = Range(g, m, 3, AxisType::kReduce);
  const auto at = [&](const UOp* column) {
    return Load(g, Index(g, x, Add(g, Mul(g, i, IndexConst(g, m)), column)));
  };
  const UOp* top = Reduce(g, Op::kMax, at(a), Nodes{a});
  const UOp* sum = Reduce(g, Op::kAdd, Unary(g, Op::kExp, Sub(g, at(b), top)), Nodes{b});
  const UOp* y = Binary(g, Op::kDiv, Unary(g, Op::kExp, Sub(g, at(j), top)), sum);
  const UOp* out = Index(g, Param(g, kF32Type, 1, n * m), Add(g, Mul(g, i, IndexConst(g, m)), j));
  std::vector<float> in(n * m);
  std::vector<float> result(n * m);
  for (int64_t e = 0; e < n * m; ++e) in[e] = static_cast<float>(e % 7);
  ASSERT_TRUE(Interpret(Sink(g, Nodes{Store(g, out, y)}),
                        std::vector<BufferView>{View(0, in), View(1, result)})
                  .ok());
  for (int64_t row = 0; row < n; ++row) {
    double total = 0;
    for (int64_t e = 0; e < m; ++e) total += std::exp(in[row * m + e] - 6.0);
    for (int64_t e = 0; e < m; ++e) {
      EXPECT_NEAR(result[row * m + e], std::exp(in[row * m + e] - 6.0) / total, 1e-9);
    }
  }
}

// CASES: softmax([-inf, 0]) is [0, 1], and of nothing but -inf it is NaN.
TEST(InterpretTest, SoftmaxOfInfinities) {
  const std::string_view text =
      "%x = param.f32 slot=0 size=4\n%i = range.index size=2 axis=0 type=LOOP\n"
      "%j = range.index size=2 axis=1 type=LOOP\n%k = range.index size=2 axis=2 type=REDUCE\n"
      "%two = const.index 2\n%row = mul.index %i, %two\n%ij = add.index %row, %j\n"
      "%ik = add.index %row, %k\n%xik = index.f32 %x, %ik\n%a = load.f32 %xik\n"
      "%xij = index.f32 %x, %ij\n%b = load.f32 %xij\n%m = reduce.f32 op=max %a, %k\n"
      "%am = sub.f32 %a, %m\n%ae = exp.f32 %am\n%s = reduce.f32 op=add %ae, %k\n"
      "%bm = sub.f32 %b, %m\n%be = exp.f32 %bm\n%y = div.f32 %be, %s\n"
      "%o = param.f32 slot=1 size=4\n%oij = index.f32 %o, %ij\n%w = store %oij, %y\n%z = sink %w\n";
  const auto inf = static_cast<float>(kInf);
  std::vector<float> x = {-inf, 0, -inf, -inf};
  std::vector<float> y(4);
  const absl::Status status = RunText(text, {View(0, x), View(1, y)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(y, ElementsAre(0, 1, IsNaN(), IsNaN()));
}

// Reduces `values` with every combining op.
std::vector<double> Reductions(DType type, const std::vector<double>& values) {
  std::vector<double> results;
  for (Op op : {Op::kAdd, Op::kMul, Op::kMax, Op::kMin}) {
    UOpGraph g;
    const auto n = static_cast<int64_t>(values.size());
    const UOp* k = Range(g, n, 0, AxisType::kReduce);
    const UOp* x = Load(g, Index(g, Param(g, type, 0, n), k));
    std::vector<uint8_t> memory(n * ByteSize(type.scalar));
    for (int64_t i = 0; i < n; ++i) {
      const Scalar s = IsFloat(type) ? Scalar{.f = RoundFloat(type.scalar, values[i])}
                                     : Scalar{.i = static_cast<int64_t>(values[i])};
      const uint64_t bits = ScalarToBits(type.scalar, s);
      std::memcpy(&memory[i * ByteSize(type.scalar)], &bits, ByteSize(type.scalar));
    }
    uint64_t out = 0;
    const UOp* store =
        Store(g, Index(g, Param(g, type, 1, 1), IndexConst(g, 0)), Reduce(g, op, x, Nodes{k}));
    const absl::Status status =
        Interpret(Sink(g, Nodes{store}),
                  std::vector<BufferView>{View(0, memory), {1, &out, ByteSize(type.scalar)}});
    EXPECT_TRUE(status.ok()) << status;
    const Scalar s = ScalarFromBits(type.scalar, out);
    results.push_back(IsFloat(type) ? s.f : static_cast<double>(s.i));
  }
  return results;
}

TEST(InterpretTest, ReducingNothingGivesTheIdentity) {
  EXPECT_THAT(Reductions(kF32Type, {}), ElementsAre(0, 1, -kInf, kInf));
  EXPECT_THAT(Reductions(kF16Type, {}), ElementsAre(0, 1, -kInf, kInf));
  EXPECT_THAT(Reductions(kI8Type, {}), ElementsAre(0, 1, -128, 127));
  EXPECT_THAT(Reductions(ScalarType::kU8, {}), ElementsAre(0, 1, 0, 255));
  EXPECT_THAT(Reductions(kBoolType, {}), ElementsAre(0, 1, 0, 1));
}

TEST(InterpretTest, ReductionsOfEveryKind) {
  EXPECT_THAT(Reductions(kF32Type, {1, 2, 4}), ElementsAre(7, 8, 4, 1));
  EXPECT_THAT(Reductions(kI8Type, {100, 100, -3}), ElementsAre(-59, -48, 100, -3));
  EXPECT_THAT(Reductions(kBoolType, {0, 1, 0}), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(Reductions(ScalarType::kU8, {200, 100}), ElementsAre(44, 32, 200, 100));
  for (const std::vector<double>& v :
       {std::vector<double>{1, kNaN, 3}, {kNaN, 1, 3}, {1, 3, kNaN}}) {
    EXPECT_THAT(Reductions(kF32Type, v), ElementsAre(IsNaN(), IsNaN(), IsNaN(), IsNaN()));
  }
  // 4096 ones in f16: a running f16 sum would stop at 2048.
  EXPECT_EQ(Reductions(kF16Type, std::vector<double>(4096, 1))[0], 4096);
}

// CASES: the mean of a large f16 array, summed in f32.
TEST(InterpretTest, MeanOfLargeHalves) {
  UOpGraph g;
  const UOp* i = Range(g, 256, 0, AxisType::kReduce);
  const UOp* j = Range(g, 256, 1, AxisType::kReduce);
  const UOp* offset = Add(g, Mul(g, i, IndexConst(g, 256)), j);
  const UOp* x = Cast(g, Load(g, Index(g, Param(g, kF16Type, 0, 65536), offset)), kF32Type);
  const UOp* mean =
      Cast(g, Mul(g, Reduce(g, Op::kAdd, x, Nodes{i, j}), FloatConst(g, kF32Type, 1.0 / 65536)),
           kF16Type);
  const UOp* out = Index(g, Param(g, kF16Type, 1, 1), IndexConst(g, 0));
  std::vector<uint16_t> in(65536, FloatToHalfBits(60000));
  std::vector<uint16_t> result(1);
  ASSERT_TRUE(Interpret(Sink(g, Nodes{Store(g, out, mean)}),
                        std::vector<BufferView>{View(0, in), View(1, result)})
                  .ok());
  EXPECT_EQ(HalfBitsToFloat(result[0]), 60000);
}

// y[i] = f(x[i]).
template <typename F>
std::vector<float> Map(std::vector<float> x, F f) {
  UOpGraph g;
  const auto n = static_cast<int64_t>(x.size());
  const UOp* i = Range(g, n, 0, AxisType::kLoop);
  const UOp* y = f(g, Load(g, Index(g, Param(g, kF32Type, 0, n), i)));
  std::vector<float> out(x.size());
  const absl::Status status =
      Interpret(Sink(g, Nodes{Store(g, Index(g, Param(g, kF32Type, 1, n), i), y)}),
                std::vector<BufferView>{View(0, x), View(1, out)});
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

TEST(InterpretTest, NothingIsAssumedOfFloats) {
  const auto inf = static_cast<float>(kInf);
  const auto nan = static_cast<float>(kNaN);
  const std::vector<float> zero = Map({inf, nan, -1}, [](UOpGraph& g, const UOp* x) {
    return Mul(g, x, FloatConst(g, kF32Type, 0));
  });
  EXPECT_THAT(zero, ElementsAre(IsNaN(), IsNaN(), 0));
  EXPECT_TRUE(std::signbit(zero[2]));
  EXPECT_THAT(Map({0, 1, inf}, [](UOpGraph& g, const UOp* x) { return Binary(g, Op::kDiv, x, x); }),
              ElementsAre(IsNaN(), 1, IsNaN()));
  EXPECT_THAT(Map({nan, 1},
                  [](UOpGraph& g, const UOp* x) {
                    return Where(g, Binary(g, Op::kNe, x, x), FloatConst(g, kF32Type, 0), x);
                  }),
              ElementsAre(0, 1));
}

TEST(InterpretTest, GatherKeepsInfinitiesAndClosedGatesTouchNothing) {
  const std::string_view text =
      "%i = range.index size=4 axis=0 type=LOOP\n%p = param.i32 slot=1 size=3\n"
      "%three = const.index 3\n%gate = lt.bool %i, %three\n%pi = index.i32 %p, %i, %gate\n"
      "%j32 = load.i32 %pi\n%j = cast.index %j32\n%x = param.f32 slot=0 size=3\n"
      "%xj = index.f32 %x, %j, %gate\n%v = load.f32 %xj\n%o = param.f32 slot=2 size=4\n"
      "%oi = index.f32 %o, %i\n%s = store %oi, %v\n%z = sink %s\n";
  const auto inf = static_cast<float>(kInf);
  std::vector<float> x = {inf, -inf, static_cast<float>(kNaN)};
  std::vector<int32_t> p = {0, 1, 2};
  std::vector<float> o(4, 9);
  const absl::Status status = RunText(text, {View(0, x), View(1, p), View(2, o)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(o, ElementsAre(inf, -inf, IsNaN(), 0));

  p[1] = 3;
  EXPECT_EQ(Concat(RunText(text, {View(0, x), View(1, p), View(2, o)}).message()),
            "load of param 0 (f32, 3 elements): offset 3 is outside [0, 3)");
}

TEST(InterpretTest, GatedStoresLeaveTheRest) {
  const std::string_view text =
      "%i = range.index size=4 axis=0 type=LOOP\n%two = const.index 2\n%gate = lt.bool %i, %two\n"
      "%o = param.f32 slot=0 size=2\n%oi = index.f32 %o, %i, %gate\n%v = const.f32 1\n"
      "%s = store %oi, %v\n%z = sink %s\n";
  std::vector<float> o(3, 9);
  ASSERT_TRUE(RunText(text, {View(0, o)}).ok());
  EXPECT_THAT(o, ElementsAre(1, 1, 9));
}

// CASES: [1] expanded to 2^31 + 3 and gathered at both ends needs no memory.
TEST(InterpretTest, HugeExpandIsNotAllocated) {
  UOpGraph g;
  const UOp* i = Range(g, 2, 0, AxisType::kLoop);
  const UOp* at = Cast(g, Load(g, Index(g, Param(g, kI64Type, 1, 2), i)), kIndexType);
  const int64_t size = (int64_t{1} << 31) + 3;
  const UOp* inside =
      And(g, Binary(g, Op::kLe, IndexConst(g, 0), at), Lt(g, at, IndexConst(g, size)));
  const UOp* x = Load(g, Index(g, Param(g, kF32Type, 0, 1), Mul(g, at, IndexConst(g, 0)), inside));
  std::vector<float> one = {1};
  std::vector<int64_t> indices = {0, size - 1};
  std::vector<float> out(2);
  ASSERT_TRUE(Interpret(Sink(g, Nodes{Store(g, Index(g, Param(g, kF32Type, 2, 2), i), x)}),
                        std::vector<BufferView>{View(0, one), View(1, indices), View(2, out)})
                  .ok());
  EXPECT_THAT(out, ElementsAre(1, 1));
}

// CASES: (3,0)·(0,2), and a store over an empty range.
TEST(InterpretTest, EmptyAxes) {
  UOpGraph g;
  const UOp* i = Range(g, 3, 0, AxisType::kLoop);
  const UOp* j = Range(g, 2, 1, AxisType::kLoop);
  const UOp* k = Range(g, 0, 2, AxisType::kReduce);
  const UOp* a = Load(g, Index(g, Param(g, kF32Type, 0, 0), k));
  const UOp* b =
      Load(g, Index(g, Param(g, kF32Type, 1, 0), Add(g, Mul(g, k, IndexConst(g, 2)), j)));
  const UOp* c = Index(g, Param(g, kF32Type, 2, 6), Add(g, Mul(g, i, IndexConst(g, 2)), j));
  const UOp* product = Store(g, c, Reduce(g, Op::kAdd, Mul(g, a, b), Nodes{k}));
  const UOp* empty = Range(g, 0, 3, AxisType::kLoop);
  const UOp* nothing = Store(g, Index(g, Param(g, kF32Type, 3, 0), empty),
                             Load(g, Index(g, Param(g, kF32Type, 1, 0), IndexConst(g, 5))));
  std::vector<float> none;
  std::vector<float> out(6, 9);
  const absl::Status status =
      Interpret(Sink(g, Nodes{product, nothing}),
                std::vector<BufferView>{View(0, none), View(1, none), View(2, out), View(3, none)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out, ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(InterpretTest, InPlaceReadsBeforeItWrites) {
  const std::string_view text =
      "%i = range.index size=2 axis=0 type=LOOP\n%b = param.f32 slot=0 size=2\n"
      "%bi = index.f32 %b, %i\n%x = load.f32 %bi\n%h = const.f32 0.5\n%y = mul.f32 %x, %h\n"
      "%s = store %bi, %y\n%c = param.f32 slot=1 size=2\n%ci = index.f32 %c, %i\n"
      "%t = store %ci, %x\n%z = sink %s, %t\n";
  std::vector<float> b = {1, 2};
  std::vector<float> c(2);
  ASSERT_TRUE(RunText(text, {View(0, b), View(1, c)}).ok());
  EXPECT_THAT(b, ElementsAre(0.5, 1));
  EXPECT_THAT(c, ElementsAre(1, 2));
}

TEST(InterpretTest, MissingMemoryIsAnError) {
  const std::string_view text =
      "%i = range.index size=2 axis=0 type=LOOP\n%b = param.f32 slot=7 size=2\n"
      "%bi = index.f32 %b, %i\n%h = const.f32 0.5\n%s = store %bi, %h\n%z = sink %s\n";
  EXPECT_EQ(Concat(RunText(text, {}).message()), "param 7 (f32, 2 elements) has no memory");
  std::vector<float> one(1);
  EXPECT_EQ(Concat(RunText(text, {View(7, one)}).message()),
            "param 7 (f32, 2 elements) needs 8 bytes of memory, not 4");
}

// Sums of rows as lowering writes them: vector accumulators, a loop, lanes combined at the end.
TEST(InterpretTest, LoweredRowSums) {
  const std::string_view text =
      "%t = range.index size=3 axis=0 type=THREAD\n%k = range.index size=2 axis=1 type=REDUCE\n"
      "%lanes = lanes.indexx4\n%acc = register.f32 slot=0 size=4\n%at = index.f32x4 %acc, %lanes\n"
      "%zero = const.f32x4 0\n%init = store %at, %zero\n%eight = const.index 8\n"
      "%four = const.index 4\n%row = mul.index %t, %eight\n%k4 = mul.index %k, %four\n"
      "%base = add.index %row, %k4\n%wide = broadcast.indexx4 %base\n"
      "%offset = add.indexx4 %wide, %lanes\n%x = param.f32 slot=0 size=24\n"
      "%xi = index.f32x4 %x, %offset\n%xv = load.f32x4 %xi\n%old = load.f32x4 %at\n"
      "%new = add.f32x4 %old, %xv\n%step = store %at, %new\n%loop = loop %k, %step\n"
      "%sum = horizontal.f32 op=add lanes=1 %old\n%p = scratch.f32 slot=0 size=3\n"
      "%pt = index.f32 %p, %t\n%keep = store %pt, %sum\n%b = block %init, %loop, %keep\n"
      "%threads = loop %t, %b\n%one = phase %threads\n"
      "%r = range.index size=3 axis=0 type=LOOP\n%pr = index.f32 %p, %r\n%pv = load.f32 %pr\n"
      "%y = param.f32 slot=1 size=3\n%yr = index.f32 %y, %r\n%w = store %yr, %pv\n"
      "%out = loop %r, %w\n%two = phase %out\n%z = sink %one, %two\n";
  std::vector<float> x(24);
  for (int i = 0; i < 24; ++i) x[i] = static_cast<float>(i);
  std::vector<float> y(3);
  const absl::Status status = RunText(text, {View(0, x), View(1, y)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(y, ElementsAre(28, 92, 156));
}

// Private memory does not carry over from one thread to the next.
TEST(InterpretTest, ThreadsBeginWithNonsense) {
  const std::string_view text =
      "%t = range.index size=2 axis=0 type=THREAD\n%p = scratch.f32 slot=0 size=1\n"
      "%zero = const.index 0\n%p0 = index.f32 %p, %zero\n%old = load.f32 %p0\n"
      "%y = param.f32 slot=0 size=2\n%yt = index.f32 %y, %t\n%w = store %yt, %old\n"
      "%five = const.f32 5\n%s = store %p0, %five\n%b = block %w, %s\n%l = loop %t, %b\n"
      "%f = phase %l\n%z = sink %f\n";
  std::vector<float> y(2);
  ASSERT_TRUE(RunText(text, {View(0, y)}).ok());
  EXPECT_THAT(y, ElementsAre(IsNaN(), IsNaN()));
}

TEST(InterpretTest, UnboundRangesOfStatementsAreLooped) {
  // As between linearization and the expansion of register axes.
  const std::string_view text =
      "%i = range.index size=2 axis=0 type=LOOP\n%u = range.index size=3 axis=1 type=UPCAST\n"
      "%three = const.index 3\n%i3 = mul.index %i, %three\n%at = add.index %i3, %u\n"
      "%y = param.i32 slot=0 size=6\n%yi = index.i32 %y, %at\n%v = cast.i32 %at\n"
      "%w = store %yi, %v\n%l = loop %i, %w\n%f = phase %l\n%z = sink %f\n";
  std::vector<int32_t> y(6);
  ASSERT_TRUE(RunText(text, {View(0, y)}).ok());
  EXPECT_THAT(y, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(InterpretTest, DeepExpressionsNeedNoStack) {
  UOpGraph g;
  const UOp* x = IntConst(g, kI32Type, 1);
  for (int i = 0; i < 200000; ++i) x = Add(g, x, IntConst(g, kI32Type, i % 3));
  EXPECT_EQ(ValueOf(g, x).i, 200000);
}

TEST(InterpretTest, RefusesWhatIsNoKernel) {
  UOpGraph g;
  EXPECT_FALSE(Interpret(IndexConst(g, 1), {}).ok());
  const UOp* broken = g.Make(Op::kAdd, kF32Type, {IndexConst(g, 1), IndexConst(g, 2)});
  const UOp* store = Store(g, Index(g, Param(g, kF32Type, 0, 1), IndexConst(g, 0)), broken);
  EXPECT_FALSE(Interpret(Sink(g, Nodes{store}), {}).ok());
}

}  // namespace
}  // namespace quern
