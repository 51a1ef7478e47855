// How integers and texts stand in the bodies of frames: little-endian, texts behind a u32 length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace farandole::wire {

template <typename T>
void appendInteger(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * i))));
  }
}

inline void appendText(std::string& out, std::string_view text) {
  appendInteger(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

// Reads a body from front to back. After the first thing that does not fit every further read
// yields nothing, so decoders check once, at the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T integer() {
    if (rest_.size() < sizeof(T)) return fail<T>();
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(rest_[i])) << (8 * i));
    }
    rest_.remove_prefix(sizeof(T));
    return value;
  }

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

  // What has not been read; the body is finished with it.
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

}  // namespace farandole::wire
