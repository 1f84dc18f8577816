#include "driver/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "driver/npy_header.h"
#include "rewrite/check.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 1 << 20;

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

absl::Status FileError(std::string_view what, const std::string& path) {
  const std::string message = Concat(what, " ", path, ": ", std::strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(message) : absl::UnknownError(message);
}

// Copies an array between the two orders: `from` has the axes of `shape` in column-major order if
// `from_fortran`, else `to` has.
void Transpose(std::span<const int64_t> shape, size_t item, bool from_fortran,
               const std::byte* from, std::byte* to) {
  const size_t rank = shape.size();
  size_t count = 1;
  for (int64_t s : shape) count *= static_cast<size_t>(s);
  if (count == 0) return;
  std::vector<size_t> stride(rank, 1);  // column-major
  for (size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * static_cast<size_t>(shape[d - 1]);
  std::vector<int64_t> place(rank, 0);
  size_t column_major = 0;
  for (size_t row_major = 0; row_major < count; ++row_major) {
    const size_t source = from_fortran ? column_major : row_major;
    const size_t target = from_fortran ? row_major : column_major;
    std::memcpy(to + target * item, from + source * item, item);
    for (size_t d = rank; d-- > 0;) {
      column_major += stride[d];
      if (++place[d] < shape[d]) break;
      column_major -= stride[d] * static_cast<size_t>(shape[d]);
      place[d] = 0;
    }
  }
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(std::span<const std::byte> bytes, std::string_view name) {
  const auto error = [&](std::string_view what) {
    return absl::InvalidArgumentError(Concat("reading ", name, ": ", what));
  };
  const char* text = reinterpret_cast<const char*>(bytes.data());
  if (bytes.size() < 8 || std::string_view(text, kMagic.size()) != kMagic) {
    return error("not an .npy file");
  }
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) return error(Concat("unknown .npy version ", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t begin = 8 + length_bytes;
  if (bytes.size() < begin) return error("the file ends inside its header");
  size_t header_size = 0;
  for (size_t i = length_bytes; i-- > 0;) {
    header_size = header_size << 8 | static_cast<unsigned char>(text[8 + i]);
  }
  if (header_size > kMaxHeader) return error(Concat("a header of ", header_size, " bytes"));
  if (bytes.size() - begin < header_size) return error("the file ends inside its header");
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(std::string_view(text + begin, header_size));
  if (!header.ok()) return error(std::string(header.status().message()));
  begin += header_size;

  NpyArray array;
  array.dtype = header->dtype;
  array.shape = header->shape;
  const size_t item = static_cast<size_t>(ByteSize(array.dtype.scalar));
  size_t size = item;
  bool too_large = false;
  for (int64_t s : array.shape) {
    too_large = too_large || __builtin_mul_overflow(size, static_cast<size_t>(s), &size);
  }
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end()) {
    size = 0;
    too_large = false;
  }
  if (too_large || bytes.size() - begin < size) {
    return error(Concat("the file is cut off: its shape needs ",
                        too_large ? std::string("too many") : Concat(size), " bytes of data, ",
                        bytes.size() - begin, " are there"));
  }
  const std::byte* data = bytes.data() + begin;
  array.data.resize(size);
  if (header->fortran_order && array.shape.size() > 1) {
    Transpose(array.shape, item, /*from_fortran=*/true, data, array.data.data());
  } else if (size > 0) {
    std::memcpy(array.data.data(), data, size);
  }
  if (header->big_endian) {
    for (size_t i = 0; i < size; i += item) {
      std::reverse(array.data.begin() + static_cast<ptrdiff_t>(i),
                   array.data.begin() + static_cast<ptrdiff_t>(i + item));
    }
  }
  if (IsBool(array.dtype)) {  // Only 0 and 1 are values of bool.
    for (std::byte& b : array.data) b = b == std::byte{0} ? b : std::byte{1};
  }
  return array;
}

absl::StatusOr<NpyArray> ReadNpy(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError("opening", path);
  std::vector<std::byte> bytes;
  size_t used = 0;
  for (;;) {
    bytes.resize(std::max<size_t>(1 << 16, used * 2));
    const size_t got = std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += got;
    if (used < bytes.size()) break;
  }
  if (std::ferror(file.get()) != 0) return FileError("reading", path);
  return ParseNpy(std::span<const std::byte>(bytes.data(), used), path);
}

std::vector<std::byte> FormatNpy(DType dtype, std::span<const int64_t> shape,
                                 std::span<const std::byte> data, NpyOrder order) {
  NpyHeader header;
  header.dtype = dtype;
  header.fortran_order = order == NpyOrder::kFortran;
  header.shape.assign(shape.begin(), shape.end());
  std::string text = FormatNpyHeader(header);
  // Data begins at a multiple of 64 bytes; the header ends with a line end.
  const bool long_header = text.size() + 64 + 10 > 65535;
  const size_t prefix = long_header ? 12 : 10;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  std::string head(kMagic);
  head += static_cast<char>(long_header ? 2 : 1);
  head += '\0';
  for (size_t i = 0; i < prefix - 8; ++i) head += static_cast<char>(text.size() >> (8 * i));
  head += text;

  std::vector<std::byte> bytes(head.size() + data.size());
  std::memcpy(bytes.data(), head.data(), head.size());
  std::byte* body = bytes.data() + head.size();
  if (header.fortran_order && shape.size() > 1) {
    Transpose(shape, static_cast<size_t>(ByteSize(dtype.scalar)), /*from_fortran=*/false,
              data.data(), body);
  } else if (!data.empty()) {
    std::memcpy(body, data.data(), data.size());
  }
  return bytes;
}

absl::Status WriteNpy(const std::string& path, DType dtype, std::span<const int64_t> shape,
                      std::span<const std::byte> data, NpyOrder order) {
  int64_t size = ByteSize(dtype.scalar);
  for (int64_t s : shape) size *= s;
  QUERN_CHECK(size == static_cast<int64_t>(data.size()));
  const std::vector<std::byte> bytes = FormatNpy(dtype, shape, data, order);
  File file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return FileError("creating", path);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
      std::fclose(file.release()) != 0) {
    return FileError("writing", path);
  }
  return absl::OkStatus();
}

}  // namespace quern
