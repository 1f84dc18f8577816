#ifndef QUERN_RUNTIME_BYTE_STREAM_H_
#define QUERN_RUNTIME_BYTE_STREAM_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace quern {

// Numbers and texts as bytes, little-endian on every machine: for files and pipes.

inline void PutInt(std::string& out, int64_t value) {
  for (int i = 0; i < 8; ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}
inline void PutDouble(std::string& out, double value) {
  PutInt(out, std::bit_cast<int64_t>(value));
}
inline void PutText(std::string& out, std::string_view text) {
  PutInt(out, static_cast<int64_t>(text.size()));
  out.append(text);
}

/// Reads what was put, in the same order. After a failure everything reads as 0 or "" and `ok`
/// stays false, so a caller checks once, at the end.
struct ByteReader {
  std::string_view bytes;
  bool ok = true;

  int64_t Int() {
    if (bytes.size() < 8) ok = false;
    if (!ok) return 0;
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    bytes.remove_prefix(8);
    return static_cast<int64_t>(value);
  }
  double Double() { return std::bit_cast<double>(Int()); }
  /// A number of things that take at least one byte each, so a damaged count cannot be huge.
  int64_t Count() {
    const int64_t count = Int();
    if (count < 0 || static_cast<uint64_t>(count) > bytes.size()) ok = false;
    return ok ? count : 0;
  }
  std::string Text() {
    const int64_t size = Count();
    if (!ok) return "";
    std::string text(bytes.substr(0, static_cast<size_t>(size)));
    bytes.remove_prefix(static_cast<size_t>(size));
    return text;
  }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BYTE_STREAM_H_
