// The byte form of messages: integers are little-endian, a text follows its length of four bytes, a
// list the number of its elements. Messages are written to the end of a string, or by a ByteWriter
// where the same memory is used for one message after another. A ByteReader reads both. Integers at
// fixed places are in base/little_endian.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

class ByteWriter {
 public:
  // `memory` is used again; what it holds is lost.
  explicit ByteWriter(std::vector<std::byte> memory = {}) : bytes_(std::move(memory)) {
    if (bytes_.size() < kUsual) bytes_.resize(kUsual);
  }

  template <typename T>
  void integer(T value) {
    static_assert(std::is_integral_v<T>);
    store(reinterpret_cast<std::uint8_t*>(placeFor(sizeof value)),
          static_cast<std::make_unsigned_t<T>>(value));
  }
  void real(double value) { integer(std::bit_cast<std::uint64_t>(value)); }
  void text(std::string_view value) {
    integer(static_cast<std::uint32_t>(value.size()));
    append(value.data(), value.size());
  }
  void integers(std::span<const std::int64_t> values) {
    integer(static_cast<std::uint32_t>(values.size()));
    for (const auto value : values) integer(value);
  }
  // The rest of the message, without a length.
  void remainder(std::span<const std::byte> bytes) { append(bytes.data(), bytes.size()); }

  // The next message is written into the same memory.
  void clear() { used_ = 0; }
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(used_); }
  std::vector<std::byte> take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kUsual = 128;  // most messages are no longer

  void append(const void* from, std::size_t size) {
    if (size > 0) std::memcpy(placeFor(size), from, size);
  }
  std::byte* placeFor(std::size_t size) {
    if (size > bytes_.size() - used_) grow(size);
    return bytes_.data() + std::exchange(used_, used_ + size);
  }
  // Not inlined, so that the above is a few instructions wherever something is written.
  [[gnu::noinline]] void grow(std::size_t size) { bytes_.resize(2 * bytes_.size() + size); }

  std::vector<std::byte> bytes_;  // longer than what was written
  std::size_t used_ = 0;
};

// Never reads past its end: after the first thing that does not fit every further read yields
// nothing, so decoders check once, at the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  explicit ByteReader(std::span<const std::byte> bytes)
      : rest_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

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

  double real() { return std::bit_cast<double>(integer<std::uint64_t>()); }

  // A list of at most `limit` integers.
  std::vector<std::int64_t> integers(std::size_t limit) {
    const auto size = integer<std::uint32_t>();
    if (size > limit || size > rest_.size() / sizeof(std::int64_t)) {
      return fail<std::vector<std::int64_t>>();
    }
    std::vector<std::int64_t> values(size);
    for (auto& value : values) value = integer<std::int64_t>();
    return values;
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
