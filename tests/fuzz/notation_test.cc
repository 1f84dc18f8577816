// Broken formulas: whatever is written, the answer is an error that points into it, or kernels that
// verify.

#include "tensor/notation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "rewrite/verify.h"

namespace quern {
namespace {

constexpr std::string_view kSeeds[] = {
    "C[i,j] = sum[k](A[i,k]*B[k,j])",
    "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])",
    "Y[i,j] = sum[k](pad(X[2*i+k-1,j])*W[j,k])",
    "y[i] = where(i//2 == 0 & x[i] < 1, i32(i%3), -1); b[j] = b[j]*0.5",
    "s[] = f32(sum[i](h[i]*h[i])) + prod[j](x[j]) // 2 | !true[]",
};
constexpr std::string_view kPieces[] = {
    "[",    "]",        "(",    ")",       ",",
    ";",    "=",        "==",   "+",       "-",
    "*",    "/",        "//",   "%",       "<",
    "i",    "j",        "k",    "sum[i](", "pad(",
    "max(", "f16(",     "1e9",  "0.5",     "9223372036854775807",
    "x[i]", "X[i,j]",   "s[]",  "i32(i)",  "where(",
    "inf",  "&",        "|",    "!",       "#",
    "\n",   "\xc3\xa9", "\x01", "i//0",    "i*j",
    "-i",
};

int Rounds() {
  const char* text = std::getenv("FUZZ_ROUNDS");
  return text == nullptr ? 20000 : std::atoi(text);
}

TEST(NotationFuzz, ErrorsOrVerifiedKernels) {
  const char* seed_text = std::getenv("FUZZ_SEED");
  const unsigned seed = seed_text == nullptr ? 1 : static_cast<unsigned>(std::atoi(seed_text));
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int parsed = 0;
  for (int round = 0; round < Rounds(); ++round) {
    std::string text(kSeeds[below(std::size(kSeeds))]);
    for (size_t edits = below(5); edits > 0; --edits) {
      const size_t at = below(text.size() + 1);
      switch (below(3)) {
        case 0:
          text.erase(at, 1 + below(4));
          break;
        case 1:
          text.insert(at, kPieces[below(std::size(kPieces))]);
          break;
        default:
          text.insert(at, text.substr(below(text.size() + 1), below(12)));
          break;
      }
    }
    NotationOptions options;
    for (const char* name : {"i", "j", "k"}) {
      if (below(10) > 0) options.sizes[name] = static_cast<int64_t>(below(6));
    }
    if (below(2) == 0) options.shapes["X"] = {8, 8};
    if (below(3) == 0) options.dtypes["h"] = kF16Type;
    options.fuse = below(4) > 0;
    absl::StatusOr<Program> program = ParseNotation(text, options);
    if (!program.ok() && program.status().message().find("no such tensor") != std::string::npos) {
      options.dtypes.clear();
      options.shapes.clear();
      program = ParseNotation(text, options);
    }
    if (!program.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(program.status())) << text << program.status();
      continue;
    }
    ++parsed;
    for (const KernelInfo& k : program->kernels) {
      const absl::Status s = VerifyKernel(k.sink);
      EXPECT_TRUE(s.ok()) << "seed " << seed << " round " << round << ": " << text << "\n" << s;
    }
    if (::testing::Test::HasFailure()) break;
  }
  std::printf("%d of %d formulas were kernels\n", parsed, Rounds());
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace quern
