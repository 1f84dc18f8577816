#include "runtime/kernel_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quern {
namespace {

KernelImage Sample() {
  KernelImage image;
  image.object = std::string(
      "\x7f"
      "ELF\0 code",
      10);
  image.params = {{.slot = 0, .dtype = kF32Type, .elements = 64, .written = true},
                  {.slot = 3, .dtype = kBF16Type, .elements = 0, .read = true},
                  {.slot = int64_t{1} << 20,
                   .dtype = kI64Type,
                   .elements = int64_t{1} << 40,
                   .written = true,
                   .read = true,
                   .temporary = true,
                   .kept = true}};
  image.phases = {{.symbol = "phase0", .threads = 4, .scratch_bytes = 4096, .part_by_part = true},
                  {.symbol = "", .threads = 1, .scratch_bytes = 0, .once = true}};
  return image;
}

TEST(KernelImageTest, ReadsBackWhatItWrote) {
  for (const KernelImage& image : {Sample(), KernelImage{}}) {
    const absl::StatusOr<KernelImage> read = ParseImage(SerializeImage(image));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, image);
  }
}

// Caches outlive programs: the bytes are part of the format.
TEST(KernelImageTest, TheBytesAreFixed) {
  KernelImage image;
  image.object = "o";
  image.phases = {
      {.symbol = "s", .threads = 258, .scratch_bytes = 0, .once = true, .part_by_part = true}};
  const auto number = [](int value) {
    return std::string(
        {static_cast<char>(value & 255), static_cast<char>(value >> 8), 0, 0, 0, 0, 0, 0});
  };
  EXPECT_EQ(SerializeImage(image), "QKI3" + number(0) + number(1) + number(1) + "s" + number(258) +
                                       number(0) + number(3) + number(1) + "o");
}

TEST(KernelImageTest, EveryTruncationIsAnError) {
  const std::string bytes = SerializeImage(Sample());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const absl::StatusOr<KernelImage> read = ParseImage(bytes.substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_FALSE(ParseImage(bytes + "x").ok());
}

// A changed byte may give another image, but neither a crash nor one with impossible numbers.
TEST(KernelImageTest, ChangedBytesAreHarmless) {
  const std::string bytes = SerializeImage(Sample());
  int refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int value : {0x00, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      if (changed == bytes) continue;
      const absl::StatusOr<KernelImage> read = ParseImage(changed);
      if (!read.ok()) {
        ++refused;
        continue;
      }
      for (const ImageParam& p : read->params) {
        EXPECT_GE(p.elements, 0);
        EXPECT_LT(p.elements, int64_t{1} << 59);  // Times the size of an element.
      }
      for (const ImagePhase& p : read->phases) {
        EXPECT_GE(p.threads, 1);
        EXPECT_GE(p.scratch_bytes, 0);
        EXPECT_LT(static_cast<double>(p.threads) * static_cast<double>(p.scratch_bytes), 0x1p62);
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(KernelImageTest, OtherBytesAreNoImage) {
  for (const char* bytes : {"", "QKI", "QKI1", "QKI3", "\177ELF", "not an image at all"}) {
    EXPECT_FALSE(ParseImage(bytes).ok()) << bytes;
  }
}

}  // namespace
}  // namespace quern
