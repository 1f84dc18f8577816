#include "rewrite/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/prove_access.h"
#include "rewrite/text.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using Nodes = std::vector<const UOp*>;

std::string Verified(absl::Status (*verify)(const UOp*), std::string_view text) {
  UOpGraph g;
  const absl::StatusOr<const UOp*> sink = ParseText(g, text);
  if (!sink.ok()) return Concat("not parsed: ", sink.status().message());
  const absl::Status status = verify(*sink);
  return status.ok() ? "ok" : Concat(status.message());
}
std::string Kernel(std::string_view text) { return Verified(VerifyKernel, text); }
std::string Lowered(std::string_view text) { return Verified(VerifyLowered, text); }

// y[i] = Σ_k x[4·i + k], in pieces of which the tests exchange one.
struct RowSum {
  std::string i = "range.index size=3 axis=0 type=LOOP";
  std::string k = "range.index size=4 axis=1 type=REDUCE";
  std::string x = "param.f32 slot=0 size=12";
  std::string y = "param.f32 slot=1 size=3";
  std::string xi = "index.f32 %x, %at";
  std::string yi = "index.f32 %y, %i";
  std::string sum = "reduce.f32 op=add %v, %k";
  std::string sink = "sink %s";

  std::string Text() const {
    return Concat("%i = ", i, "\n%k = ", k, "\n%x = ", x, "\n%y = ", y,
                  "\n%four = const.index 4\n%row = mul.index %i, %four\n%at = add.index %row, %k\n",
                  "%three = const.index 3\n%some = lt.bool %i, %three\n", "%xi = ", xi,
                  "\n%yi = ", yi, "\n%v = load.f32 %xi\n%r = ", sum,
                  "\n%s = store %yi, %r\n%z = ", sink, "\n");
  }
};

TEST(VerifyTest, AcceptsAKernel) { EXPECT_EQ(Kernel(RowSum().Text()), "ok"); }

TEST(VerifyTest, RefusesWhatIsNoKernel) {
  EXPECT_THAT(Kernel("%0 = const.f32 1"), HasSubstr("a kernel is a sink, not the const.f32"));
  EXPECT_THAT(Kernel(RowSum{.sink = "block %s\n%t = sink %z"}.Text()),
              HasSubstr("the block.void does not stand in a kernel AST"));
  EXPECT_EQ(Kernel(RowSum{.sink = "phase %s\n%t = sink %z"}.Text()), "ok");
  EXPECT_THAT(Kernel(RowSum{.x = "register.f32 slot=0 size=12"}.Text()),
              HasSubstr("register 0 (f32, 12 elements) does not stand in a kernel AST"));
  EXPECT_THAT(Kernel(RowSum{.x = "scratch.f32 slot=0 size=12"}.Text()),
              HasSubstr("scratch 0 (f32, 12 elements) is loaded before it is stored"));
}

TEST(VerifyTest, NothingIsReadAfterItIsOverwritten) {
  const auto kernel = [](std::string_view sink) {
    return Kernel(
        Concat("%i = range.index size=3 axis=0 type=LOOP\n%b = param.f32 slot=0 size=3\n"
               "%y = param.f32 slot=1 size=3\n%bi = index.f32 %b, %i\n%yi = index.f32 %y, %i\n"
               "%v = load.f32 %bi\n%w = add.f32 %v, %v\n%s = store %bi, %w\n%t = store %yi, %v\n"
               "%z = sink ",
               sink, "\n"));
  };
  EXPECT_EQ(kernel("%t, %s"), "ok");
  EXPECT_EQ(kernel("%s, %t"), "param 0 (f32, 3 elements) is loaded after the store that writes it");
}

TEST(VerifyTest, AxesHaveNumbersOfTheirOwn) {
  EXPECT_EQ(Kernel(RowSum{.k = "range.index size=4 axis=0 type=REDUCE"}.Text()).substr(0, 19),
            "the range of axis 0");
}

TEST(VerifyTest, ReducesCloseReduceAxes) {
  EXPECT_EQ(Kernel(RowSum{.k = "range.index size=4 axis=1 type=LOOP"}.Text()),
            "the reduce.f32 by add closes the range of axis 1 (size 4, type LOOP)");
  EXPECT_EQ(Kernel(RowSum{.sum = "neg.f32 %v"}.Text()),
            "no reduce closes the range of axis 1 (size 4, type REDUCE) in the store to param 1 "
            "(f32, 3 elements)");
}

TEST(VerifyTest, AccessesAreProved) {
  EXPECT_EQ(Kernel(RowSum{.x = "param.f32 slot=0 size=11"}.Text()),
            "the access of param 0 (f32, 11 elements): the offset is only known to lie in [0, 11], "
            "not in [0, 11)");
  EXPECT_THAT(Kernel(RowSum{.y = "param.f32 slot=1 size=2"}.Text()),
              HasSubstr("[0, 2], not in [0, 2)"));
  // A gate that says nothing, one that bounds the loop, and an empty loop.
  RowSum gated;
  gated.i = "range.index size=5 axis=0 type=LOOP";
  EXPECT_THAT(Kernel(gated.Text()), HasSubstr("not in [0, "));
  gated.xi = "index.f32 %x, %at, %some";
  gated.yi = "index.f32 %y, %i, %some";
  EXPECT_EQ(Kernel(gated.Text()), "ok");
  RowSum empty{.k = "range.index size=0 axis=1 type=REDUCE", .x = "param.f32 slot=0 size=0"};
  EXPECT_EQ(Kernel(empty.Text()), "ok");
}

TEST(VerifyTest, SlotsAndBuffersInPlace) {
  EXPECT_EQ(Kernel(RowSum{.y = "param.f32 slot=0 size=3"}.Text()),
            "param 0 (f32, 12 elements) and param 0 (f32, 3 elements) share a slot");
  EXPECT_EQ(Kernel(RowSum{.y = "param.f32 slot=0 size=12"}.Text()),
            "param 0 (f32, 12 elements) is loaded and stored at different offsets");
  RowSum in_place{.y = "param.f32 slot=0 size=12", .xi = "index.f32 %x, %i"};
  EXPECT_EQ(Kernel(in_place.Text()), "ok");
}

TEST(VerifyTest, TooManyRanges) {
  UOpGraph g;
  const UOp* sum = IndexConst(g, 0);
  for (int axis = 0; axis < 65; ++axis) sum = Add(g, sum, Range(g, 1, axis, AxisType::kLoop));
  const UOp* store = Store(g, Index(g, Param(g, kF32Type, 0, 1), sum), FloatConst(g, kF32Type, 1));
  EXPECT_THAT(Concat(VerifyKernel(Sink(g, Nodes{store})).message()),
              HasSubstr("64 ranges, not 65"));
}

struct LoweredSum {
  std::string t = "range.index size=3 axis=0 type=THREAD";
  std::string k = "range.index size=4 axis=1 type=REDUCE";
  std::string acc = "register.f32 slot=0 size=1";
  std::string y = "param.f32 slot=0 size=3";
  std::string value = "add.f32 %old, %one";
  std::string loop = "loop %k, %step";
  std::string threads = "loop %t, %b";
  std::string sink = "phase %l\n%z = sink %p";

  std::string Text() const {
    return Concat(
        "%t = ", t, "\n%k = ", k, "\n%acc = ", acc, "\n%y = ", y,
        "\n%zero = const.index 0\n%at = index.f32 %acc, %zero\n%old = load.f32 %at\n"
        "%one = const.f32 1\n%clear = store %at, %one\n%v = ",
        value, "\n%step = store %at, %v\n%n = ", loop,
        "\n%yt = index.f32 %y, %t\n%w = store %yt, %old\n%b = block %clear, %n, %w\n%l = ", threads,
        "\n%p = ", sink, "\n");
  }
};

TEST(VerifyTest, AcceptsLoweredForm) { EXPECT_EQ(Lowered(LoweredSum().Text()), "ok"); }

// Register axes are bound by nothing until they are expanded.
TEST(VerifyTest, RegisterAxesMayStayUntilExpansion) {
  LoweredSum free{.k = "range.index size=4 axis=1 type=UPCAST", .loop = "block %step"};
  free.acc = "register.f32 slot=0 size=4";
  std::string text = free.Text();
  text.replace(text.find("index.f32 %acc, %zero"), 21, "index.f32 %acc, %k");
  EXPECT_EQ(Lowered(text), "ok");
  EXPECT_EQ(Verified(VerifyExpanded, text), "the range of axis 1 (size 4, type UPCAST) is left");
  EXPECT_EQ(Verified(VerifyExpanded, LoweredSum().Text()), "ok");
}

TEST(VerifyTest, RefusesUnfinishedLowering) {
  EXPECT_EQ(Lowered(RowSum().Text()), "a lowered kernel has phases, not the store.void");
  EXPECT_EQ(Lowered(LoweredSum{.value = "reduce.f32 op=add %old, %k"}.Text()),
            "the reduce.f32 by add over the range of axis 1 (size 4, type REDUCE) is left");
  EXPECT_EQ(Lowered(LoweredSum{.threads = "block %b"}.Text()),
            "no loop binds the range of axis 0 (size 3, type THREAD)");
  EXPECT_EQ(Lowered(LoweredSum{.loop = "loop %t, %step"}.Text()),
            "the range of axis 0 (size 3, type THREAD) is a loop inside itself");
  EXPECT_EQ(Lowered(LoweredSum{.k = "range.index size=4 axis=1 type=UNROLL"}.Text()),
            "the range of axis 1 (size 4, type UNROLL) is a loop");
  EXPECT_THAT(Lowered(LoweredSum{.y = "param.f32 slot=0 size=2"}.Text()),
              HasSubstr("not in [0, 2)"));
}

// y[i, j] = x[i + k − 1, j + l − 1] where that is inside, with the offset multiplied out so that
// the sums of the gate do not occur in it.
TEST(ProveAccessTest, PaddedConvolution) {
  UOpGraph g;
  const auto c = [&](int64_t v) { return IndexConst(g, v); };
  const UOp* i = Range(g, 4, 0, AxisType::kLoop);
  const UOp* j = Range(g, 4, 1, AxisType::kLoop);
  const UOp* k = Range(g, 3, 2, AxisType::kReduce);
  const UOp* l = Range(g, 3, 3, AxisType::kReduce);
  const auto inside = [&](const UOp* x) { return And(g, Lt(g, c(0), x), Lt(g, x, c(5))); };
  const UOp* rows = inside(Add(g, i, k));
  const UOp* gate = And(g, rows, inside(Add(g, j, l)));
  const UOp* offset = Add(g, Add(g, Add(g, Mul(g, i, c(4)), Mul(g, k, c(4))), Add(g, j, l)), c(-5));
  const UOp* x = Param(g, kF32Type, 0, 16);
  EXPECT_EQ(AccessBounds(Index(g, x, offset, gate)), (Bounds{0, 15}));
  EXPECT_FALSE(ProveAccess(Index(g, x, offset, rows)));
  EXPECT_FALSE(ProveAccess(Index(g, x, offset)));
  EXPECT_FALSE(ProveAccess(Index(g, Param(g, kF32Type, 0, 15), offset, gate)));
}

TEST(ProveAccessTest, GatesOfEveryKind) {
  UOpGraph g;
  const auto c = [&](int64_t v) { return IndexConst(g, v); };
  const UOp* i = Range(g, 5, 0, AxisType::kLoop);
  const UOp* u = Range(g, 4, 1, AxisType::kUpcast);
  const UOp* at = Add(g, Mul(g, i, c(4)), u);
  const auto proved = [&](int64_t size, const UOp* offset, const UOp* gate) {
    return ProveAccess(Index(g, Param(g, kF32Type, 0, size), offset, gate));
  };
  EXPECT_TRUE(proved(17, at, Lt(g, at, c(17))));
  EXPECT_FALSE(proved(16, at, Lt(g, at, c(17))));
  EXPECT_TRUE(proved(17, at, Binary(g, Op::kLe, at, c(16))));
  EXPECT_TRUE(proved(17, at, Unary(g, Op::kNot, Lt(g, c(16), at))));
  EXPECT_TRUE(proved(17, at, Unary(g, Op::kNot, Binary(g, Op::kLe, c(17), at))));
  EXPECT_TRUE(proved(4, at, Binary(g, Op::kEq, i, c(0))));
  EXPECT_FALSE(proved(4, at, Binary(g, Op::kNe, i, c(0))));
  EXPECT_TRUE(proved(4, at, Unary(g, Op::kNot, Binary(g, Op::kNe, i, c(0)))));
  EXPECT_TRUE(proved(0, at, BoolConst(g, false)));
  EXPECT_TRUE(proved(0, at, Lt(g, at, c(0))));
  // The quotient is bounded by what is known of its dividend.
  const UOp* half = Binary(g, Op::kFloorDiv, at, c(2));
  EXPECT_TRUE(proved(9, half, Lt(g, at, c(17))));
  // (5·i + j) floordiv 2 after the even part has been taken out.
  const UOp* j = Range(g, 5, 2, AxisType::kUpcast);
  const UOp* seven = Range(g, 7, 3, AxisType::kLoop);
  const UOp* i5j = Add(g, Mul(g, seven, c(5)), j);
  const UOp* quotient =
      Add(g, Mul(g, seven, c(2)), Binary(g, Op::kFloorDiv, Add(g, seven, j), c(2)));
  EXPECT_TRUE(proved(16, quotient, Lt(g, i5j, c(32))));
  EXPECT_FALSE(proved(15, quotient, Lt(g, i5j, c(32))));
  EXPECT_TRUE(proved(16, Sub(g, c(15), quotient), Lt(g, i5j, c(32))));
  EXPECT_FALSE(proved(16, Sub(g, c(14), quotient), Lt(g, i5j, c(32))));
  // 44·⌊7/2⌋ is less than ⌊44·7/2⌋.
  const UOp* i7j = Add(g, Mul(g, seven, c(7)), j);
  const UOp* half_of_it = Add(g, Mul(g, seven, c(132)),
                              Mul(g, Binary(g, Op::kFloorDiv, Add(g, seven, j), c(2)), c(44)));
  EXPECT_TRUE(proved(133, half_of_it, Lt(g, i7j, c(8))));
  EXPECT_FALSE(proved(132, half_of_it, Lt(g, i7j, c(8))));
  // 128·⌊i/2⌋ + k, where 3·i + j < 4: a single quotient, too, is rounded before it is multiplied.
  const UOp* i3j = Add(g, Mul(g, u, c(3)), Range(g, 3, 2, AxisType::kLocal));
  const UOp* block =
      Add(g, Mul(g, Binary(g, Op::kFloorDiv, u, c(2)), c(128)), Range(g, 128, 3, AxisType::kLoop));
  EXPECT_TRUE(proved(128, block, Lt(g, i3j, c(4))));
  EXPECT_FALSE(proved(128, block, Lt(g, i3j, c(7))));
  // Lanes: 6 + 3·l where l < 1, as an access behind a partial mask.
  const DType index2 = kIndexType.WithLanes(2);
  const auto both = [&](const UOp* x) { return g.Make(Op::kBroadcast, index2, {x}); };
  const UOp* lanes = g.Make(Op::kLanes, index2, {});
  const UOp* third = Add(g, both(c(6)), Mul(g, lanes, both(c(3))));
  EXPECT_TRUE(proved(7, third, Lt(g, Add(g, lanes, both(c(2))), both(c(3)))));
  EXPECT_FALSE(proved(7, third, Lt(g, lanes, both(c(3)))));
  // A loaded index is known by its gate only.
  const UOp* loaded = Cast(g, Load(g, Index(g, Param(g, kI64Type, 1, 5), i)), kIndexType);
  EXPECT_FALSE(proved(8, loaded, Lt(g, loaded, c(8))));
  EXPECT_TRUE(proved(8, loaded, And(g, Binary(g, Op::kLe, c(0), loaded), Lt(g, loaded, c(8)))));
}

}  // namespace
}  // namespace quern
