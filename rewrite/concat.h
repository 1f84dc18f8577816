#ifndef QUERN_REWRITE_CONCAT_H_
#define QUERN_REWRITE_CONCAT_H_

#include <array>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace quern {

inline void AppendPart(std::string& text, std::string_view part) { text.append(part); }
inline void AppendPart(std::string& text, char part) { text.push_back(part); }
template <typename T>
  requires std::integral<T> || std::floating_point<T>
void AppendPart(std::string& text, T part) {
  std::array<char, 64> digits;
  text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), part).ptr);
}
/// String classes with `data` and `size` that are not std::string_view, such as absl::string_view.
template <typename T>
  requires requires(const T& t) { std::string_view(t.data(), t.size()); } &&
           (!std::convertible_to<const T&, std::string_view>)
void AppendPart(std::string& text, const T& part) {
  text.append(part.data(), part.size());
}

/// Appends strings and numbers to `text`. As absl::StrAppend, which cannot read std::string_view in
/// the packaged Abseil (its absl::string_view is a class of its own there).
template <typename... Parts>
void Append(std::string& text, const Parts&... parts) {
  (AppendPart(text, parts), ...);
}

/// Strings and numbers, joined.
template <typename... Parts>
std::string Concat(const Parts&... parts) {
  std::string text;
  Append(text, parts...);
  return text;
}

}  // namespace quern

#endif  // QUERN_REWRITE_CONCAT_H_
