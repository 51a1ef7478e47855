#include "bench/sizes.h"

#include <fmt/format.h>

#include <charconv>

namespace farandole::bench {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 40;

int shiftOf(std::string_view unit) {
  if (unit.empty() || unit == "B") return 0;
  if (unit == "K" || unit == "k" || unit == "KiB" || unit == "KB") return 10;
  if (unit == "M" || unit == "m" || unit == "MiB" || unit == "MB") return 20;
  if (unit == "G" || unit == "g" || unit == "GiB" || unit == "GB") return 30;
  return -1;
}

}  // namespace

Result<std::size_t> parseSize(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const int shift = shiftOf(text.substr(static_cast<std::size_t>(end - text.data())));
  if (error != std::errc() || shift < 0) {
    return Status::invalid(fmt::format("'{}' is not a size; write 4, 16K, 1M or 1G", text));
  }
  if (number == 0 || number > (kMost >> shift)) {
    return Status::invalid(fmt::format("size '{}' is not between 1 byte and 1024G", text));
  }
  return number << shift;
}

Result<std::vector<std::size_t>> parseSizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  while (true) {
    const std::size_t comma = text.find(',');
    auto size = parseSize(text.substr(0, comma));
    if (!size.ok()) return size.status();
    sizes.push_back(*size);
    if (comma == std::string_view::npos) return sizes;
    text.remove_prefix(comma + 1);
  }
}

std::string sizeText(std::size_t bytes) {
  constexpr std::string_view kUnits = " KMG";
  std::size_t unit = 0;
  while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, kUnits[unit]);
}

std::string timeText(double seconds) {
  const auto digits = [](double value) { return value < 10 ? 2 : value < 100 ? 1 : 0; };
  if (seconds < 1e-3) return fmt::format("{:.{}f} us", seconds * 1e6, digits(seconds * 1e6));
  if (seconds < 1) return fmt::format("{:.{}f} ms", seconds * 1e3, digits(seconds * 1e3));
  return fmt::format("{:.{}f} s", seconds, digits(seconds));
}

}  // namespace farandole::bench
