// Writer and Reader: the byte form of control messages. Little machinery on purpose: fixed-width
// numbers in the machine's own order (both ends run on one kind of processor), texts and lists with
// a length in front.
//
// Reader never reads past its end: every read is checked, a bad one makes ok() false for good and
// yields zeros. So a decoder reads everything and asks once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace farandole::control {

class Writer {
 public:
  // `memory`: to use again, what it holds is lost.
  explicit Writer(std::vector<std::byte> memory = {}) : bytes_(std::move(memory)) {
    if (bytes_.size() < kUsual) bytes_.resize(kUsual);
  }
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    std::memcpy(placeFor(sizeof value), &value, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    append(value.data(), value.size());
  }
  void numbers(std::span<const std::int64_t> values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const auto value : values) number(value);
  }

  // Without a length: the rest of the message.
  void rest(std::span<const std::byte> bytes) { append(bytes.data(), bytes.size()); }

  // To write something else, into the same memory.
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
  // Apart from the above, which is then a few instructions wherever something is written.
  [[gnu::noinline]] void grow(std::size_t size) { bytes_.resize(2 * bytes_.size() + size); }

  std::vector<std::byte> bytes_;  // longer than what was written
  std::size_t used_ = 0;
};

// What has been written, as a string.
inline std::string stringOf(const Writer& writer) {
  const auto bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (!take(sizeof value)) return value;
    std::memcpy(&value, rest_.data() - sizeof value, sizeof value);
    return value;
  }
  std::string text(std::size_t limit) {
    const auto size = number<std::uint32_t>();
    if (size > limit || !take(size)) return fail(), std::string();
    return {reinterpret_cast<const char*>(rest_.data() - size), size};
  }
  std::vector<std::int64_t> numbers(std::size_t limit) {
    const auto size = number<std::uint32_t>();
    std::vector<std::int64_t> values;
    if (size > limit || size * sizeof(std::int64_t) > rest_.size()) return fail(), values;
    values.resize(size);
    for (auto& value : values) value = number<std::int64_t>();
    return values;
  }

  bool ok() const { return ok_; }
  // All read, nothing left over.
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  bool take(std::size_t bytes) {
    if (!ok_ || bytes > rest_.size()) return fail();
    rest_ = rest_.subspan(bytes);
    return true;
  }
  bool fail() {
    ok_ = false;
    return false;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace farandole::control
