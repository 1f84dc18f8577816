#include "tensor/notation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "optimizer/work.h"
#include "rewrite/interpret.h"
#include "rewrite/range_sets.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"

namespace quern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<double>;

double Get(const TensorInfo& t, const std::vector<char>& bytes, int64_t i) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (t.dtype.scalar) {
    case ScalarType::kF64:
      return as(double{});
    case ScalarType::kF32:
      return as(float{});
    case ScalarType::kF16:
      return HalfBitsToFloat(as(uint16_t{}));
    case ScalarType::kBF16:
      return BFloatBitsToFloat(as(uint16_t{}));
    case ScalarType::kI8:
      return as(int8_t{});
    case ScalarType::kU8:
    case ScalarType::kBool:
      return as(uint8_t{});
    case ScalarType::kU32:
      return as(uint32_t{});
    case ScalarType::kI64:
      return static_cast<double>(as(int64_t{}));
    default:
      return as(int32_t{});
  }
}

void Set(const TensorInfo& t, std::vector<char>& bytes, int64_t i, double value) {
  const auto put = [&](auto v) { std::memcpy(bytes.data() + i * sizeof(v), &v, sizeof(v)); };
  switch (t.dtype.scalar) {
    case ScalarType::kF64:
      return put(value);
    case ScalarType::kF32:
      return put(static_cast<float>(value));
    case ScalarType::kF16:
      return put(FloatToHalfBits(static_cast<float>(value)));
    case ScalarType::kBF16:
      return put(FloatToBFloatBits(static_cast<float>(value)));
    case ScalarType::kI8:
      return put(static_cast<int8_t>(value));
    case ScalarType::kU8:
    case ScalarType::kBool:
      return put(static_cast<uint8_t>(value));
    default:
      return put(static_cast<int32_t>(value));
  }
}

// Interprets all kernels of a program on given inputs.
class Results {
 public:
  explicit Results(const Program& program, const std::map<std::string, Numbers>& inputs = {}) {
    for (const TensorInfo& t : program.tensors) {
      std::vector<char>& bytes = memory_[t.name];
      bytes.assign(std::max<int64_t>(t.bytes(), 8), 0x5a);
      const auto given = inputs.find(t.name);
      for (int64_t i = 0; i < t.elements(); ++i) {
        if (given != inputs.end()) {
          Set(t, bytes, i, given->second.at(i));
        } else if (t.role != TensorRole::kOutput && t.role != TensorRole::kIntermediate) {
          Set(t, bytes, i, 1 + (i * 7 + t.slot) % 5);
        }
      }
      tensors_[t.name] = t;
      views_.push_back({t.slot, bytes.data(), t.bytes()});
    }
    for (const KernelInfo& k : program.kernels) {
      const absl::Status s = Interpret(k.sink, views_);
      EXPECT_TRUE(s.ok()) << s << "\n" << ToText(k.sink);
    }
  }
  Numbers operator[](const std::string& name) const {
    const TensorInfo& t = tensors_.at(name);
    Numbers numbers;
    for (int64_t i = 0; i < t.elements(); ++i) numbers.push_back(Get(t, memory_.at(name), i));
    return numbers;
  }

 private:
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::vector<char>> memory_;
  std::vector<BufferView> views_;
};

NotationOptions Options(const std::string& sizes, const std::string& dtypes = "",
                        const std::vector<std::string>& shapes = {}) {
  NotationOptions options;
  if (!sizes.empty()) EXPECT_TRUE(ParseSizes(sizes, options).ok());
  if (!dtypes.empty()) EXPECT_TRUE(ParseDTypes(dtypes, options).ok());
  for (const std::string& s : shapes) EXPECT_TRUE(ParseShape(s, options).ok());
  return options;
}

Program Parse(const std::string& formula, const NotationOptions& options) {
  absl::StatusOr<Program> p = ParseNotation(formula, options);
  EXPECT_TRUE(p.ok()) << formula << "\n" << p.status();
  if (!p.ok()) return {.graph = nullptr, .tensors = {}, .kernels = {}};
  for (const KernelInfo& k : p->kernels) {
    EXPECT_TRUE(VerifyKernel(k.sink).ok()) << formula << "\n" << VerifyKernel(k.sink);
    std::set<int> axes;
    const RangeSets sets(k.sink);
    for (const UOp* r : sets.ranges()) {
      EXPECT_TRUE(axes.insert(r->range_axis()).second) << formula;
    }
    if (!axes.empty()) EXPECT_EQ(*axes.rbegin() + 1, static_cast<int>(axes.size())) << formula;
  }
  return *std::move(p);
}

std::string ErrorOf(const std::string& formula, const NotationOptions& options) {
  const absl::StatusOr<Program> p = ParseNotation(formula, options);
  if (p.ok()) return "no error";
  return std::string(p.status().message());
}

TEST(NotationTest, MatrixProduct) {
  const Program p = Parse("C[i,j] = sum[k](A[i,k]*B[k,j])", Options("i=2,j=3,k=2"));
  ASSERT_EQ(p.kernels.size(), 1u);
  const Results results(p, {{"A", {1, 2, 3, 4}}, {"B", {1, 0, 2, 0, 1, 3}}});
  EXPECT_THAT(results["C"], ElementsAre(1, 2, 8, 3, 4, 18));
  EXPECT_EQ(p.tensors[0].name, "A");
  EXPECT_EQ(p.tensors[2].role, TensorRole::kOutput);
  EXPECT_THAT(p.kernels[0].inputs, ElementsAre(0, 1));
  EXPECT_EQ(EstimateWork(p.kernels[0].sink).flops, 2.0 * 2 * 3 * 2);
  EXPECT_EQ(EstimateWork(p.kernels[0].sink).bytes, 4.0 * (4 + 6 + 6));
}

TEST(NotationTest, TheSameFormulaHasTheSameHash) {
  const Program a = Parse("C[i,j] = sum[k](A[i,k]*B[k,j])", Options("i=2,j=3,k=2"));
  const Program b = Parse("Z[x,y] = sum[q]( P[x,q] * R[q,y] )  # same", Options("x=2,y=3,q=2"));
  EXPECT_EQ(a.kernels[0].sink->hash, b.kernels[0].sink->hash);
}

TEST(NotationTest, PaddedConvolution) {
  const Program p = Parse("Y[h,w] = sum[p,q](pad(X[2*h+p-1,2*w+q-1])*W[p,q])",
                          Options("h=2,w=2,p=3,q=3", "", {"X=4,4"}));
  const Results results(
      p, {{"X", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}, {"W", Numbers(9, 1)}});
  EXPECT_THAT(results["Y"], ElementsAre(14, 30, 57, 99));
}

TEST(NotationTest, SoftmaxIsOneKernel) {
  const std::string formula =
      "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])";
  const Program p = Parse(formula, Options("i=2,j=3"));
  EXPECT_EQ(p.kernels.size(), 1u);
  EXPECT_EQ(p.tensors.size(), 2u);
  const Numbers x = {0, 1, 2, 5, 5, 5};
  const Numbers y = Results(p, {{"X", x}})["Y"];
  const double total = std::exp(-2) + std::exp(-1) + 1;
  EXPECT_NEAR(y[0], std::exp(-2) / total, 1e-6);
  EXPECT_NEAR(y[2], 1 / total, 1e-6);
  EXPECT_NEAR(y[5], 1 / 3.0, 1e-6);
  // One maximum, although it is used twice.
  int reductions = 0;
  for (const UOp* u : Toposort(p.kernels[0].sink)) reductions += u->op == Op::kReduce;
  EXPECT_EQ(reductions, 2);

  NotationOptions separate = Options("i=2,j=3");
  separate.fuse = false;
  const Program q = Parse(formula, separate);
  EXPECT_EQ(q.kernels.size(), 3u);
  EXPECT_EQ(Results(q, {{"X", x}})["Y"], y);
}

TEST(NotationTest, EqualReductionsAreOne) {
  const Program p = Parse("Y[i,j] = exp(X[i,j]-max[k](X[i,k]))/sum[l](exp(X[i,l]-max[m](X[i,m])))",
                          Options("i=2,j=3,k=3,l=3,m=3"));
  int reductions = 0;
  for (const UOp* u : Toposort(p.kernels[0].sink)) reductions += u->op == Op::kReduce;
  EXPECT_EQ(reductions, 2);
}

TEST(NotationTest, WhatWouldBeRecomputedStaysAKernel) {
  // T[i,k] would be computed for every j.
  const Program p = Parse("T[i,k] = sum[l](A[i,l]*B[l,k]); C[i,j] = sum[k](T[i,k]*W[k,j])",
                          Options("i=8,j=8,k=8,l=8"));
  EXPECT_EQ(p.kernels.size(), 2u);
  EXPECT_EQ(p.Find("T")->role, TensorRole::kIntermediate);
  // Scaling and adding after a product costs nothing.
  EXPECT_EQ(Parse("T[i,j] = sum[l](A[i,l]*B[l,j]); C[i,j] = max(T[i,j] + b[j], 0)",
                  Options("i=8,j=8,l=8"))
                .kernels.size(),
            1u);
  // A reduction of a whole large tensor would run on one thread.
  EXPECT_EQ(Parse("s[] = sum[i](x[i]); y[i] = x[i]/s[]", Options("i=100000")).kernels.size(), 2u);
  EXPECT_EQ(Parse("s[] = sum[i](x[i]); y[i] = x[i]/s[]", Options("i=100")).kernels.size(), 1u);
  // Inside another reduction there would be nothing to vectorise.
  EXPECT_EQ(Parse("s[i] = sum[j](X[j,i]); t[] = sum[i](s[i]*s[i])", Options("i=500,j=500"))
                .kernels.size(),
            2u);
  // Long chains of stencils do not explode.
  std::string chain = "x0[i] = sin(a[i])";
  for (int s = 1; s < 40; ++s) {
    const std::string from = "x" + std::to_string(s - 1);
    chain += "; x" + std::to_string(s) + "[i] = pad(" + from + "[i-1])+" + from + "[i]+pad(" +
             from + "[i+1])";
  }
  EXPECT_LT(Parse(chain, Options("i=1000")).kernels.size(), 41u);
}

TEST(NotationTest, AttentionKeepsItsScoresAndIsRight) {
  const std::string formula =
      "S[i,j] = sum[d](Q[i,d]*K[j,d]); P[i,j] = exp(S[i,j]-max[l](S[i,l])); "
      "O[i,d] = sum[j](P[i,j]*V[j,d])/sum[l](P[i,l])";
  const Program p = Parse(formula, Options("i=5,j=6,d=64"));
  EXPECT_LE(p.kernels.size(), 3u);
  EXPECT_GE(p.kernels.size(), 2u);
  NotationOptions separate = Options("i=5,j=6,d=64");
  separate.fuse = false;
  const Numbers fused = Results(p)["O"];
  const Numbers plain = Results(Parse(formula, separate))["O"];
  for (size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-5);
}

TEST(NotationTest, AnInlinedStatementReadWithPadReadsNothingOutside) {
  const std::string formula = "e[i] = x[i+1]*2; y[i] = pad(e[i-1]) + pad(e[i+1])";
  const Program p = Parse(formula, Options("i=4"));
  EXPECT_EQ(p.kernels.size(), 1u);
  const Results results(p, {{"x", {100, 1, 2, 3, 4}}});
  EXPECT_THAT(results["y"], ElementsAre(4, 8, 12, 6));
}

TEST(NotationTest, IndexArithmetic) {
  const Program p = Parse(
      "even[i] = x[2*i]; flip[i] = x[7-i]; pair[i] = x[i//2]; ring[i] = x[(i+1)%4];"
      "neg[i] = x[-i+3]; tri[i,j] = where(j <= i, i32(i)*10+i32(j), -1); h[i] = f32(i)*0.5",
      Options("i=4,j=2", "", {"x=8"}));
  const Results results(p, {{"x", {0, 1, 2, 3, 4, 5, 6, 7}}});
  EXPECT_THAT(results["even"], ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(results["flip"], ElementsAre(7, 6, 5, 4));
  EXPECT_THAT(results["pair"], ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(results["ring"], ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(results["neg"], ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(results["tri"], ElementsAre(0, -1, 10, 11, 20, 21, 30, 31));
  EXPECT_THAT(results["h"], ElementsAre(0, 0.5, 1, 1.5));
}

TEST(NotationTest, OperatorsAndFunctions) {
  const Program p = Parse(
      "a[i] = 2 + 3*x[i] - x[i]/4; b[i] = -(x[i])*-2; c[i] = where(x[i] > 1 & !(x[i] >= 3), 1.0, "
      "0);"
      "q[i] = n[i]//2; r[i] = n[i]%2; t[i] = max(x[i], 2, 1); u[i] = min(x[i], 2); v[i] = "
      "abs(-x[i]);"
      "w[i] = where(x[i] == 2 | x[i] != x[i], inf, floor(x[i]+0.5)); l[i] = u8(300) - u8(1)",
      Options("i=4", "n=i32"));
  const Results results(p, {{"x", {0, 1, 2, 3}}, {"n", {-7, 7, -8, 5}}});
  EXPECT_THAT(results["a"], ElementsAre(2, 4.75, 7.5, 10.25));
  EXPECT_THAT(results["b"], ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(results["c"], ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(results["q"], ElementsAre(-4, 3, -4, 2));
  EXPECT_THAT(results["r"], ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(results["t"], ElementsAre(2, 2, 2, 3));
  EXPECT_THAT(results["u"], ElementsAre(0, 1, 2, 2));
  EXPECT_THAT(results["v"], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(results["w"], ElementsAre(0, 1, HUGE_VAL, 3));
  EXPECT_THAT(results["l"], ElementsAre(43, 43, 43, 43));
}

TEST(NotationTest, NarrowSumsAccumulateWide) {
  // 4096 ones in f16 would stop at 2048; 200·200 wraps in u8.
  const Program p = Parse(
      "s[] = sum[i](h[i]); f[] = f32(sum[i](h[i]*h[i]*1.0001)); "
      "n[] = sum[j](u[j]*u[j]); c[] = sum[i](h[i] < 2); m[] = max[i](h[i])",
      Options("i=4096,j=4", "h=f16,u=u8"));
  EXPECT_EQ(p.Find("s")->dtype, kF16Type);
  EXPECT_EQ(p.Find("f")->dtype, kF32Type);
  EXPECT_EQ(p.Find("n")->dtype, DType(ScalarType::kU32));
  EXPECT_EQ(p.Find("c")->dtype, kI32Type);
  EXPECT_EQ(p.Find("m")->dtype, kF16Type);
  const Results results(p, {{"h", Numbers(4096, 1)}, {"u", Numbers(4, 200)}});
  EXPECT_THAT(results["s"], ElementsAre(4096));
  EXPECT_NEAR(results["f"][0], 4096.4, 0.05);
  EXPECT_THAT(results["n"], ElementsAre(160000));
  EXPECT_THAT(results["c"], ElementsAre(4096));
  EXPECT_THAT(results["m"], ElementsAre(1));
}

TEST(NotationTest, OutputTypesCanBeAskedFor) {
  const Program p = Parse("y[i] = x[i]*2", Options("i=2", "y=bf16"));
  EXPECT_EQ(p.Find("y")->dtype, kBF16Type);
  EXPECT_THAT(Results(p, {{"x", {1, 1.5}}})["y"], ElementsAre(2, 3));
}

TEST(NotationTest, EmptyAxesAndScalars) {
  const Program p = Parse("C[i,j] = sum[k](A[i,k]*B[k,j])", Options("i=3,j=2,k=0"));
  EXPECT_THAT(Results(p)["C"], ElementsAre(0, 0, 0, 0, 0, 0));
  const Program q = Parse("m[] = max[k](a[k]); p[] = prod[k](a[k]); z[] = 3*t[]", Options("k=0"));
  const Results results(q, {{"t", {2}}, {"a", {}}});
  EXPECT_THAT(results["m"], ElementsAre(-HUGE_VAL));
  EXPECT_THAT(results["p"], ElementsAre(1));
  EXPECT_THAT(results["z"], ElementsAre(6));
  const Program none = Parse("y[i,j] = x[i+5,j]", Options("i=0,j=3"));
  EXPECT_EQ(Results(none)["y"].size(), 0u);
}

TEST(NotationTest, InPlace) {
  const Program p = Parse("y[i] = b[i]; b[i] = b[i]*0.5; z[i] = b[i]", Options("i=3"));
  EXPECT_EQ(p.Find("b")->role, TensorRole::kInOut);
  const Results results(p, {{"b", {2, 4, 6}}});
  EXPECT_THAT(results["b"], ElementsAre(1, 2, 3));
  EXPECT_THAT(results["z"], ElementsAre(1, 2, 3));
  EXPECT_THAT(ErrorOf("b[i] = b[i+1]", Options("i=3")), HasSubstr("1:8: b is written"));
  EXPECT_THAT(ErrorOf("b[i] = sum[i](b[i])", Options("i=3")), HasSubstr("b is written"));
}

TEST(NotationTest, ShapesAreInferred) {
  EXPECT_THAT(Parse("y[t] = sum[k](x[t+k]*w[k])", Options("t=6", "", {"w=3"})).Find("x")->shape,
              ElementsAre(8));
  // The size of k follows from e, that of e from i and j.
  EXPECT_THAT(Parse("e[i,j] = x[i,j]; y[i] = sum[k](e[i,k])", Options("i=2,k=5")).Find("x")->shape,
              ElementsAre(2, 5));
  EXPECT_THAT(ErrorOf("y[i] = sum[k](a[i,k]*b[k])", Options("", "", {"a=2,3", "b=4"})),
              HasSubstr("k is 3 elsewhere, but axis 0 of b has size 4"));
}

TEST(NotationTest, NestedReductions) {
  const Program p =
      Parse("s[a] = sum[b](sum[c](x[a,b,c]) * max[c](x[a,b,c]))", Options("a=1,b=2,c=2"));
  EXPECT_THAT(Results(p, {{"x", {1, 2, 3, 4}}})["s"], ElementsAre(3 * 2 + 7 * 4));
}

TEST(NotationTest, ErrorsPointIntoTheFormula) {
  const NotationOptions o = Options("i=4,j=4");
  EXPECT_EQ(ErrorOf("y[i] =\n  x[i] $ 2", Options("i=4")),
            "2:8: no part of a formula begins with this character\n    x[i] $ 2\n         ^");
  EXPECT_THAT(ErrorOf("", o), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("y[i] = ", o), HasSubstr("1:8: a value is expected here"));
  EXPECT_THAT(ErrorOf("y[i] x[i]", o), HasSubstr("1:6: `=` is expected"));
  EXPECT_THAT(ErrorOf("y = x[i]", o), HasSubstr("1:3: `[` is expected"));
  EXPECT_THAT(ErrorOf("y[i] = (x[i]", o), HasSubstr("`)` is expected"));
  EXPECT_THAT(ErrorOf("y[i] = x[i] x[i]", o), HasSubstr("1:13: an operator, `;`"));
  EXPECT_THAT(ErrorOf("y[i,i] = x[i]", o), HasSubstr("1:5: i stands twice"));
  EXPECT_THAT(ErrorOf("y[i] = foo(x[i])", o), HasSubstr("1:8: there is no function `foo`"));
  EXPECT_THAT(ErrorOf("y[i] = where(x[i], 1)", o), HasSubstr("takes 3 arguments, not 2"));
  EXPECT_THAT(ErrorOf("y[i] = exp(x[i], 1)", o), HasSubstr("takes 1 argument, not 2"));
  EXPECT_THAT(ErrorOf("y[i] = sum(x[i])", o), HasSubstr("names what it runs over"));
  EXPECT_THAT(ErrorOf("y[i] = sum[](x[i])", o), HasSubstr("names what it runs over"));
  EXPECT_THAT(ErrorOf("exp[i] = x[i]", o), HasSubstr("reserved"));
  EXPECT_THAT(ErrorOf("y[i] = pad(2)", o), HasSubstr("marks one read"));
  EXPECT_THAT(ErrorOf("y[i] = x", o), HasSubstr("x is neither an index of y nor reduced"));
  EXPECT_THAT(ErrorOf("y[i] = x[i,j]", o), HasSubstr("1:12: j is neither an index of y"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]+x[i,i]", o), HasSubstr("x has 1 axis, not 2"));
  EXPECT_THAT(ErrorOf("y[i] = x[x[i]]", o), HasSubstr("an index is made of"));
  EXPECT_THAT(ErrorOf("y[i,j] = x[i*j]", o), HasSubstr("an index is affine"));
  EXPECT_THAT(ErrorOf("y[i] = x[i//0]", Options("i=4")), HasSubstr("positive integer"));
  EXPECT_THAT(ErrorOf("y[i] = i[i]", Options("i=4")), HasSubstr("index variable and a tensor"));
  EXPECT_THAT(ErrorOf("y[i] = z[i]; z[i] = 1", Options("i=4")), HasSubstr("only further on"));
  EXPECT_THAT(ErrorOf("y[i] = 1; y[i] = 2", Options("i=4")), HasSubstr("1:11: y is defined twice"));
  EXPECT_THAT(ErrorOf("y[i] = x[i] < 1 < 2", Options("i=4")), HasSubstr("do not chain"));
  EXPECT_THAT(ErrorOf("y[i] = i", Options("i=4")), HasSubstr("an index is not a value"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]+i", Options("i=4")), HasSubstr("an index meets f32"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]//2", Options("i=4")), HasSubstr("floordiv"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]/2", Options("i=4", "x=i32")), HasSubstr("write `//`"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]+300", Options("i=4", "x=i8")), HasSubstr("300 is not a value"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]+0.5", Options("i=4", "x=i8")), HasSubstr("fraction"));
  EXPECT_THAT(ErrorOf("y[i] = 1.2.3", Options("i=4")), HasSubstr("a number must not run into"));
  EXPECT_THAT(ErrorOf("y[i] = 99999999999999999999", Options("i=4")), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]", Options("i=4,k=3")), HasSubstr("no index variable k"));
  EXPECT_THAT(ErrorOf("y[i] = x[i]", Options("i=4", "q=f16")), HasSubstr("no such tensor"));
  EXPECT_THAT(ErrorOf("y[i] = pad(x[i-1])", Options("i=4")), HasSubstr("give --shape x="));
  EXPECT_THAT(ErrorOf("y[i] = x[i-1]", Options("i=4", "", {"x=9"})),
              HasSubstr("1:10: axis 0 of x has size 9, but this index goes from -1 to 2"));
  EXPECT_THAT(ErrorOf("y[i,j] = x[i,j]", Options("i=4000000000000,j=4000000000000")),
              HasSubstr("too many elements"));
  EXPECT_THAT(ErrorOf("y[i] = " + std::string(100000, '('), Options("i=4")),
              HasSubstr("nested too deep"));
  std::string deep = "y[i] = x[i]";
  for (int n = 0; n < 600; ++n) deep += "+x[i]";
  EXPECT_THAT(ErrorOf(deep, Options("i=4")), HasSubstr("operations deep"));
}

TEST(NotationTest, OptionTextsAreParsedStrictly) {
  NotationOptions o;
  for (const char* bad :
       {"", "i", "i=", "i=a", "=4", "i=-1", "i=4,", "i=4,i=5", "i=1.5", "i=0x2"}) {
    NotationOptions fresh;
    EXPECT_FALSE(ParseSizes(bad, fresh).ok()) << bad;
  }
  EXPECT_TRUE(ParseSizes("i=4, j = 5", o).ok());
  EXPECT_EQ(o.sizes.at("j"), 5);
  EXPECT_FALSE(ParseDTypes("A=float", o).ok());
  EXPECT_FALSE(ParseDTypes("A=f32x4", o).ok());
  EXPECT_FALSE(ParseDTypes("A=index", o).ok());
  EXPECT_FALSE(ParseShape("X=1,,2", o).ok());
  EXPECT_TRUE(ParseShape("s=", o).ok());
  EXPECT_TRUE(o.shapes.at("s").empty());
}

// Every example of docs/index_notation.md: those marked as errors give exactly that error (as far
// as the page shows it), the others run.
TEST(NotationTest, ExamplesOfTheManual) {
  std::ifstream file(QUERN_SOURCE_DIR "/docs/index_notation.md");
  ASSERT_TRUE(file.good());
  int examples = 0;
  for (std::string line; std::getline(file, line);) {
    if (line != "```quern" && line != "```quern-error") continue;
    const bool error = line == "```quern-error";
    std::string formula, expected;
    NotationOptions options;
    bool after = false;
    while (std::getline(file, line) && line != "```") {
      if (line.starts_with("--")) {
        after = true;
        const std::string text = line.substr(line.find(' ') + 1);
        if (line.starts_with("--size")) EXPECT_TRUE(ParseSizes(text, options).ok());
        if (line.starts_with("--dtype")) EXPECT_TRUE(ParseDTypes(text, options).ok());
        if (line.starts_with("--shape")) EXPECT_TRUE(ParseShape(text, options).ok());
      } else {
        (after ? expected : formula) += line + "\n";
      }
    }
    ++examples;
    if (error) {
      EXPECT_EQ((ErrorOf(formula.substr(0, formula.size() - 1), options) + "\n")
                    .substr(0, expected.size()),
                expected);
    } else {
      Results results(Parse(formula, options));
    }
  }
  EXPECT_GE(examples, 14);
}

}  // namespace
}  // namespace quern
