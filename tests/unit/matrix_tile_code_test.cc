// The LLVM IR that is made for tiles (AMX), run on any machine: its intrinsics are replaced by
// calls of the functions below, which do what Intel's manual says. So rows, strides, the order of
// the factors and what is kept over loops are those of the code, not only of the lowered form.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "codegen/compile.h"
#include "codegen/lower.h"
#include "optimizer/build_kernel.h"
#include "optimizer/scheduler.h"
#include "tests/fuzz/kernel_runner.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

// A tile register: 16 rows of 64 bytes.
struct TileRegister {
  uint8_t bytes[16][64];

  float F32(int row, int column) const {
    float value;
    std::memcpy(&value, bytes[row] + 4 * column, 4);
    return value;
  }
  float Bf16(int row, int column) const {
    uint16_t half;
    std::memcpy(&half, bytes[row] + 2 * column, 2);
    return std::bit_cast<float>(uint32_t{half} << 16);
  }
  int32_t I32(int row, int column) const {
    int32_t value;
    std::memcpy(&value, bytes[row] + 4 * column, 4);
    return value;
  }
};

void LoadTile(TileRegister* out, int16_t rows, int16_t bytes, const char* from, int64_t stride) {
  std::memset(out, 0, sizeof *out);
  for (int r = 0; r < rows; ++r) {
    std::memcpy(out->bytes[r], from + r * stride, static_cast<size_t>(bytes));
  }
}

// `m` rows, `n` bytes of columns, `k` bytes of depth.
void DotHalves(TileRegister* out, int16_t m, int16_t n, int16_t k, const TileRegister* c,
               const TileRegister* a, const TileRegister* b) {
  const TileRegister sums = *c;
  std::memset(out, 0, sizeof *out);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n / 4; ++j) {
      float sum = sums.F32(i, j);
      for (int s = 0; s < k / 4; ++s) {
        for (int g = 0; g < 2; ++g) sum += a->Bf16(i, 2 * s + g) * b->Bf16(s, 2 * j + g);
      }
      std::memcpy(out->bytes[i] + 4 * j, &sum, 4);
    }
  }
}

template <typename A, typename B>
void DotBytes(TileRegister* out, int16_t m, int16_t n, int16_t k, const TileRegister* c,
              const TileRegister* a, const TileRegister* b) {
  const TileRegister sums = *c;
  std::memset(out, 0, sizeof *out);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n / 4; ++j) {
      int32_t sum = sums.I32(i, j);
      for (int s = 0; s < k / 4; ++s) {
        for (int g = 0; g < 4; ++g) {
          sum += static_cast<A>(a->bytes[i][4 * s + g]) * static_cast<B>(b->bytes[s][4 * j + g]);
        }
      }
      std::memcpy(out->bytes[i] + 4 * j, &sum, 4);
    }
  }
}

std::string Address(auto* function) {
  return Concat("inttoptr (i64 ", reinterpret_cast<int64_t>(function), " to ptr)");
}

std::string DotDefinition(std::string_view name, auto* function) {
  return Concat("define internal <256 x i32> @", name,
                "(i16 %m, i16 %n, i16 %k, <256 x i32> %c, <256 x i32> %a, <256 x i32> %b) {\n"
                "  %o = alloca [4 x <256 x i32>], align 1024\n"
                "  %pc = getelementptr i8, ptr %o, i64 1024\n"
                "  %pa = getelementptr i8, ptr %o, i64 2048\n"
                "  %pb = getelementptr i8, ptr %o, i64 3072\n"
                "  store <256 x i32> %c, ptr %pc\n  store <256 x i32> %a, ptr %pa\n"
                "  store <256 x i32> %b, ptr %pb\n  call void ",
                Address(function),
                "(ptr %o, i16 %m, i16 %n, i16 %k, ptr %pc, ptr %pa, ptr %pb)\n"
                "  %r = load <256 x i32>, ptr %o\n  ret <256 x i32> %r\n}\n");
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string Emulated(const std::string& ir) {
  std::string text;
  std::istringstream lines(ir);
  for (std::string line; std::getline(lines, line);) {
    const bool declares = line.starts_with("declare") && line.find("x86_amx") != line.npos;
    if (!declares) Append(text, line, "\n");
  }
  ReplaceAll(text, "x86_amx", "<256 x i32>");
  for (const char* type : {"f32", "i32"}) {
    const std::string vector = *type == 'f' ? "<256 x float>" : "<256 x i32>";
    ReplaceAll(text, Concat("@llvm.x86.cast.vector.to.tile.v256", type), Concat("@in_", type));
    ReplaceAll(text, Concat("@llvm.x86.cast.tile.to.vector.v256", type), Concat("@out_", type));
    Append(text, "define internal <256 x i32> @in_", type, "(", vector, " %x) {\n  %r = bitcast ",
           vector, " %x to <256 x i32>\n  ret <256 x i32> %r\n}\n", "define internal ", vector,
           " @out_", type, "(<256 x i32> %x) {\n  %r = bitcast <256 x i32> %x to ", vector,
           "\n  ret ", vector, " %r\n}\n");
  }
  ReplaceAll(text, "@llvm.x86.tileloadd64.internal", "@load_tile");
  Append(text,
         "define internal <256 x i32> @load_tile(i16 %rows, i16 %bytes, ptr %p, i64 %stride) {\n"
         "  %o = alloca <256 x i32>, align 1024\n  call void ",
         Address(LoadTile),
         "(ptr %o, i16 %rows, i16 %bytes, ptr %p, i64 %stride)\n"
         "  %r = load <256 x i32>, ptr %o\n  ret <256 x i32> %r\n}\n");
  ReplaceAll(text, "@llvm.x86.tdpbf16ps.internal", "@dot_halves");
  ReplaceAll(text, "@llvm.x86.tdpbusd.internal", "@dot_us");
  ReplaceAll(text, "@llvm.x86.tdpbsud.internal", "@dot_su");
  Append(text, DotDefinition("dot_halves", DotHalves),
         DotDefinition("dot_us", DotBytes<uint8_t, int8_t>),
         DotDefinition("dot_su", DotBytes<int8_t, uint8_t>));
  return text;
}

// Machine code for this machine, by the compiler that builds Quern; "" if it takes no LLVM IR.
std::string Assemble(const std::string& text) {
  const std::string name = Concat(testing::TempDir(), "quern_tiles_", getpid());
  const std::string from = Concat(name, ".ll"), to = Concat(name, ".o");
  std::ofstream(from) << text;
  const std::string command =
      Concat(QUERN_COMPILER, " -w -c -O1 -fPIC -march=native -x ir ", from, " -o ", to);
  const bool done = std::system(command.c_str()) == 0;
  std::ostringstream object;
  if (done) object << std::ifstream(to, std::ios::binary).rdbuf();
  std::remove(from.c_str());
  std::remove(to.c_str());
  return object.str();
}

struct Case {
  const char* formula;
  const char* sizes;
  const char* dtypes;
  const char* schedule;
};

TEST(MatrixTileCodeTest, EmulatedInstructionsComputeTheKernel) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok());
  constexpr const char* kHalves = "C[i,j] = sum[k](f32(A[i,k])*f32(B[k,j]))";
  constexpr const char* kBytes = "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))";
  constexpr const char* kFour =
      "TC(0) UPCAST(1,16) UPCAST(1,2) UPCAST(0,16) UPCAST(0,2) LOCAL(0,0)";
  const Case cases[] = {
      {kHalves, "i=32,j=48,k=64", "A=bf16,B=bf16", "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)"},
      {kHalves, "i=64,j=64,k=160", "A=bf16,B=bf16", kFour},
      {kBytes, "i=64,j=64,k=192", "A=u8,B=i8", kFour},
      {kBytes, "i=64,j=64,k=64", "A=i8,B=u8", kFour},
      // Steps that are left over, and what follows the product.
      {kBytes, "i=32,j=32,k=100", "A=u8,B=i8", "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)"},
      {"C[i,j] = max(sum[k](f32(A[i,k])*f32(B[k,j])) + b[j], 0)", "i=40,j=30,k=70", "A=bf16,B=bf16",
       "TC(0) PADTO(1,16) UPCAST(1,16) PADTO(0,16) UPCAST(0,16) LOCAL(0,0)"},
  };
  Target target = HereWithShapeOf(Avx512Target(1));
  if (!target.Has("avx512bf16") || !target.Has("avx512vnni")) {
    GTEST_SKIP() << "this CPU lacks the instructions for what is left over";
  }
  for (const char* feature : {"amx-bf16", "amx-int8", "amx-tile"}) {
    if (!target.Has(feature)) target.features.push_back(feature);
  }
  for (const Case& c : cases) {
    FormulaKernel k = KernelOf(c.formula, c.sizes, c.dtypes);
    Scheduler s(*k.graph, k.sink, target);
    ASSERT_EQ(s.ApplyAll(*ParseActions(c.schedule)), absl::OkStatus()) << c.schedule;
    absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    CompileOptions options;
    options.verify = true;
    options.keep_llvm_ir = true;
    absl::StatusOr<CompiledKernel> compiled = CompileForCpu(*lowered, target, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_NE(compiled->llvm_ir.find("@llvm.x86.tdp"), std::string::npos) << c.formula;
    compiled->object = Assemble(Emulated(compiled->llvm_ir));
    ASSERT_FALSE(compiled->object.empty());
    absl::StatusOr<std::unique_ptr<CpuKernel>> kernel =
        (*device)->Load(MakeImage(*lowered, *compiled));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const KernelBuffers expected(k.sink);
    const KernelBuffers actual(k.sink);
    ASSERT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
    (*kernel)->Run(actual.For((*kernel)->image()));
    EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << c.formula << " " << c.schedule;
  }
}

}  // namespace
}  // namespace quern
