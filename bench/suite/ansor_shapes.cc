// The shapes of the single operators in the evaluation of Ansor, at batch 1. Layouts are the
// paper's, channels last. Softmax is not among them; its shapes are those of TVM's MetaSchedule and
// a few with short batches of rows.

#include "bench/suite/workload.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

struct Shape {
  const char* name;
  int axes;
  int64_t depth;  ///< size of the first axis of three
  int64_t size, in, out, kernel, stride, pad;
  int64_t dilation = 1, groups = 1;
  bool transposed = false;
};

constexpr Shape kShapes[] = {
    {"C1D", 1, 0, 256, 64, 128, 3, 2, 1},
    {"C1D", 1, 0, 128, 128, 256, 1, 2, 0},
    {"C1D", 1, 0, 64, 256, 256, 5, 1, 2},
    {"C1D", 1, 0, 32, 512, 512, 3, 1, 1},
    {"C2D", 2, 0, 224, 3, 64, 7, 2, 3},
    {"C2D", 2, 0, 56, 64, 64, 1, 1, 0},
    {"C2D", 2, 0, 14, 256, 256, 3, 1, 1},
    {"C2D", 2, 0, 7, 512, 512, 3, 1, 1},
    {"C3D", 3, 16, 224, 3, 64, 7, 2, 3},
    {"C3D", 3, 16, 56, 64, 64, 1, 1, 0},
    {"C3D", 3, 16, 14, 256, 256, 3, 1, 1},
    {"C3D", 3, 16, 7, 512, 512, 3, 1, 1},
    {"GRP", 2, 0, 56, 64, 128, 3, 2, 1, 1, 4},
    {"GRP", 2, 0, 56, 64, 64, 1, 1, 0, 1, 4},
    {"GRP", 2, 0, 14, 256, 256, 3, 1, 1, 1, 4},
    {"GRP", 2, 0, 7, 512, 512, 3, 1, 1, 1, 4},
    {"DIL", 2, 0, 224, 3, 64, 7, 2, 3, 2},
    {"DIL", 2, 0, 56, 64, 64, 1, 1, 0, 2},
    {"DIL", 2, 0, 14, 256, 256, 3, 1, 1, 2},
    {"DIL", 2, 0, 7, 512, 512, 3, 1, 1, 2},
    {"DEP", 2, 0, 112, 32, 32, 3, 1, 1, 1, 32},
    {"DEP", 2, 0, 112, 64, 64, 3, 2, 1, 1, 64},
    {"DEP", 2, 0, 14, 512, 512, 3, 2, 1, 1, 512},
    {"DEP", 2, 0, 7, 1024, 1024, 3, 1, 1, 1, 1024},
    {"T2D", 2, 0, 4, 512, 256, 4, 2, 1, 1, 1, true},
    {"T2D", 2, 0, 8, 256, 128, 4, 2, 1, 1, 1, true},
    {"T2D", 2, 0, 16, 128, 64, 4, 2, 1, 1, 1, true},
    {"T2D", 2, 0, 32, 64, 3, 4, 2, 1, 1, 1, true},
};

struct CapsuleShape {
  int64_t size, in, out, kernel, stride, pad;
};

constexpr CapsuleShape kCapsules[] = {
    {16, 32, 32, 3, 2, 1}, {8, 32, 32, 3, 1, 1}, {16, 8, 16, 3, 2, 1}, {8, 16, 16, 3, 1, 1}};

Workload RowOf(const Shape& s) {
  Convolution c;
  c.in = s.in;
  c.out = s.out;
  c.groups = s.groups;
  c.channels_last = true;
  c.transposed = s.transposed;
  c.axes.assign(
      s.axes,
      {.in = s.size, .kernel = s.kernel, .stride = s.stride, .pad = s.pad, .dilation = s.dilation});
  if (s.axes == 3) c.axes[0].in = s.depth;
  return ConvolutionRow(
      Concat("ansor ", s.name, " ", s.size, " ", s.in, ">", s.out, " k", s.kernel, " s", s.stride),
      c);
}

// Each channel of each pixel is a matrix of four by four, and so is each weight. With the rows of
// the pixel's matrices as a third axis this is a convolution whose channels are pairs of a column
// and a channel.
Workload Capsule(const CapsuleShape& s) {
  constexpr int64_t kMatrix = 4;
  const ConvolutionAxis axis{
      .in = s.size, .kernel = s.kernel, .stride = s.stride, .pad = s.pad, .dilation = 1};
  Convolution c;
  c.in = kMatrix * s.in;
  c.out = kMatrix * s.out;
  c.channels_last = true;
  c.axes = {axis, axis, {.in = kMatrix}};
  Workload w =
      ConvolutionRow(Concat("ansor CAP ", s.size, " ", s.in, ">", s.out, " s", s.stride), c);
  w.capsule = kMatrix;
  const int64_t out = OutputSize(c, axis);
  const std::string step = s.stride == 1 ? "" : Concat(s.stride, "*");
  w.formula = Concat("Y[n,h,w,i,j,o] = sum[p,q,k,c](pad(X[n,", step, "h+p-", s.pad, ",", step,
                     "w+q-", s.pad, ",i,k,c])*W[p,q,k,j,c,o])");
  w.sizes = Concat("n=1,h=", out, ",w=", out, ",i=4,j=4,k=4,o=", s.out, ",p=", s.kernel,
                   ",q=", s.kernel, ",c=", s.in);
  w.shapes = {Concat("X=1,", s.size, ",", s.size, ",4,4,", s.in)};
  return w;
}

Workload Norm(int64_t m, int64_t n) {
  Workload w;
  w.name = Concat("ansor NRM ", m, "x", n);
  w.kind = WorkloadKind::kNorm;
  w.m = m;
  w.n = n;
  w.formula = "s[b] = sqrt(sum[i,j](X[b,i,j]*X[b,i,j]))";
  w.sizes = Concat("b=1,i=", m, ",j=", n);
  w.output = "s";
  w.bytes = 4 * static_cast<double>(m) * static_cast<double>(n);
  return w;
}

}  // namespace

void AddAnsor(std::vector<Workload>& list) {
  struct Sizes {
    int64_t m, n, k = 1;
  };
  for (const Sizes& s :
       {Sizes{128, 128, 128}, {512, 32, 512}, {512, 512, 512}, {1024, 1024, 1024}}) {
    list.push_back(Gemm(Concat("ansor GMM ", s.m, "x", s.n, "x", s.k), s.m, s.n, s.k));
  }
  for (const Shape& shape : kShapes) list.push_back(RowOf(shape));
  for (const CapsuleShape& shape : kCapsules) list.push_back(Capsule(shape));
  for (const Sizes& s : {Sizes{256, 256}, {512, 512}, {1024, 1024}, {4096, 1024}}) {
    list.push_back(Norm(s.m, s.n));
  }
  for (const Sizes& s : {Sizes{256, 256},
                         {512, 512},
                         {1024, 1024},
                         {2048, 2048},
                         {1, 1024},
                         {16, 1024},
                         {64, 1024},
                         {256, 1024}}) {
    list.push_back(SoftmaxRows(Concat("ansor SFM ", s.m, "x", s.n), s.m, s.n));
  }
}

}  // namespace quern
