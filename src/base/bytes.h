// How messages are encoded: integers are little-endian, and a text follows its length of four
// bytes. They are appended to a string and read from front to back by a ByteReader. Integers at
// fixed places are in base/little_endian.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/little_endian.h"

namespace farandole {

template <typename T>
void appendInteger(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  std::uint8_t bytes[sizeof(T)];
  store(bytes, static_cast<std::make_unsigned_t<T>>(value));
  out.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

inline void appendText(std::string& out, std::string_view text) {
  appendInteger(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

// Never reads past its end: after the first thing that does not fit every further read yields
// nothing, so decoders check once, at the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T integer() {
    static_assert(std::is_integral_v<T>);
    if (rest_.size() < sizeof(T)) return fail<T>();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(rest_.data());
    const auto value = load<std::make_unsigned_t<T>>(bytes);
    rest_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }

  // A text of at most `limit` bytes.
  std::string text(std::size_t limit) {
    const auto length = integer<std::uint32_t>();
    if (length > limit || length > rest_.size()) return fail<std::string>();
    std::string value(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return value;
  }

  // A number of things that follow, each of at least `each` bytes: never more than can be there.
  std::uint32_t count(std::size_t each) {
    const auto value = integer<std::uint32_t>();
    return value > rest_.size() / each ? fail<std::uint32_t>() : value;
  }

  // What has not been read; the message is finished with it.
  std::string_view remainder() {
    const std::string_view rest = rest_;
    rest_ = {};
    return rest;
  }

  bool good() const { return good_; }
  // Everything was well-formed and nothing is left over.
  bool finished() const { return good_ && rest_.empty(); }

 private:
  template <typename T>
  T fail() {
    good_ = false;
    rest_ = {};
    return T();
  }
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace farandole
