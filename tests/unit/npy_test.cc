#include "driver/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

namespace quern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> Bytes(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// A file with the given version and header, without padding.
std::vector<std::byte> File(int version, std::string header, std::string_view data) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    text += static_cast<char>(header.size() >> (8 * i));
  }
  return Bytes(text + header + std::string(data));
}

template <typename T>
std::vector<T> Values(const NpyArray& a) {
  std::vector<T> values(a.data.size() / sizeof(T));
  std::memcpy(values.data(), a.data.data(), a.data.size());
  return values;
}

std::string ErrorOf(std::span<const std::byte> bytes) {
  const absl::StatusOr<NpyArray> a = ParseNpy(bytes, "a.npy");
  return a.ok() ? "no error" : std::string(a.status().message());
}

TEST(NpyTest, EveryTypeSurvivesBothOrders) {
  for (int s = 0; s < kScalarTypeCount; ++s) {
    const DType dtype(static_cast<ScalarType>(s));
    const int item = ByteSize(dtype.scalar);
    if (item == 0) continue;
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {5}, {2, 3}, {2, 3, 4}, {3, 0, 2}, {1, 1, 7}}) {
      int64_t size = item;
      for (int64_t n : shape) size *= n;
      std::vector<std::byte> data(static_cast<size_t>(size));
      for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(IsBool(dtype) ? i % 2 : i * 7);
      for (NpyOrder order : {NpyOrder::kC, NpyOrder::kFortran}) {
        const std::vector<std::byte> file = FormatNpy(dtype, shape, data, order);
        EXPECT_EQ((file.size() - data.size()) % 64, 0u);
        const absl::StatusOr<NpyArray> a = ParseNpy(file, "a.npy");
        ASSERT_TRUE(a.ok()) << a.status();
        EXPECT_EQ(a->dtype, dtype);
        EXPECT_EQ(a->shape, shape);
        EXPECT_EQ(a->data, data);
      }
    }
  }
}

TEST(NpyTest, AllVersionsAndByteOrders) {
  for (int version : {1, 2, 3}) {
    const auto a =
        ParseNpy(File(version, "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n",
                      {"\1\0\2\0", 4}),
                 "a");
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_THAT(Values<int16_t>(*a), ElementsAre(1, 2));
  }
  const auto big = ParseNpy(File(1, "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 2)}",
                                 {"\0\0\0\1\0\0\0\2\0\0\0\3\0\0\1\0", 16}),
                            "a");
  ASSERT_TRUE(big.ok()) << big.status();
  EXPECT_THAT(Values<int32_t>(*big), ElementsAre(1, 3, 2, 256));
  const auto bf = ParseNpy(
      File(1, "{'shape': (), 'descr': 'bfloat16', 'fortran_order': False}", {"\x80\x3f", 2}), "a");
  ASSERT_TRUE(bf.ok()) << bf.status();
  EXPECT_EQ(bf->dtype, kBF16Type);
  EXPECT_TRUE(bf->shape.empty());
  const auto flags = ParseNpy(
      File(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", {"\0\1\5", 3}), "a");
  EXPECT_THAT(Values<uint8_t>(*flags), ElementsAre(0, 1, 1));
}

TEST(NpyTest, DamagedFilesAreRefused) {
  const std::vector<std::byte> good =
      FormatNpy(kF32Type, std::vector<int64_t>{2, 3}, std::vector<std::byte>(24));
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_NE(ErrorOf(std::span(good).first(cut)), "no error") << cut;
  }
  EXPECT_THAT(ErrorOf(std::span(good).first(good.size() - 1)),
              HasSubstr("a.npy: the file is cut off: its shape needs 24 bytes of data, 23 are"));
  EXPECT_THAT(ErrorOf(Bytes("PK\3\4 zip file")), HasSubstr("not an .npy file"));
  EXPECT_THAT(ErrorOf(File(9, "{}", "")), HasSubstr("unknown .npy version 9"));
  EXPECT_THAT(ErrorOf(File(1, "{}", "")), HasSubstr("lacks"));
  EXPECT_THAT(ErrorOf(File(1, "nonsense", "")), HasSubstr("not a dictionary"));
  EXPECT_THAT(ErrorOf(File(1, "{'descr': '<c8', 'fortran_order': False, 'shape': ()}", "")),
              HasSubstr("type '<c8' is not supported"));
  EXPECT_THAT(ErrorOf(File(1, "{'descr': [('a', '<f4')], 'fortran_order': False}", "")),
              HasSubstr("structured"));
  EXPECT_THAT(ErrorOf(File(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "")),
              HasSubstr("something else than sizes"));
  EXPECT_THAT(ErrorOf(File(1,
                           "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,"
                           " 16)}",
                           "")),
              HasSubstr("cut off"));
  EXPECT_THAT(ErrorOf(File(2, std::string(1 << 21, ' '), "")), HasSubstr("header of"));
}

TEST(NpyTest, FilesOnDisk) {
  const std::string path = ::testing::TempDir() + "/quern_npy_test.npy";
  const std::vector<int64_t> shape = {300, 500};
  std::vector<std::byte> data(300 * 500 * 4);
  for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i * 31 >> 3);
  ASSERT_TRUE(WriteNpy(path, kF32Type, shape, data, NpyOrder::kFortran).ok());
  const absl::StatusOr<NpyArray> a = ReadNpy(path);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->data, data);
  std::remove(path.c_str());
  EXPECT_THAT(std::string(ReadNpy(path).status().message()), HasSubstr("No such file"));
  EXPECT_FALSE(WriteNpy("/no/such/folder/a.npy", kF32Type, shape, data).ok());
}

}  // namespace
}  // namespace quern
