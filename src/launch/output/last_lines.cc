#include "launch/output/last_lines.h"

namespace farandole::launch::output {
namespace {

constexpr std::size_t kLongest = 1000;
constexpr std::size_t kKeptText = 32 << 10;

}  // namespace

void LastLines::add(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.size() > kLongest) {
    text_ += line.substr(0, kLongest / 2);
    text_ += " … ";
    line.remove_prefix(line.size() - kLongest / 2);
  }
  text_ += line;
  text_ += '\n';
  // Seldom, and then by half: constant cost per byte.
  if (text_.size() > 2 * kKeptText) text_.erase(0, text_.find('\n', text_.size() - kKeptText) + 1);
}

std::string LastLines::get(int count) const {
  std::size_t begin = text_.size();
  for (; count > 0 && begin > 0; --count) {
    const auto newline = begin < 2 ? std::string::npos : text_.rfind('\n', begin - 2);
    begin = newline == std::string::npos ? 0 : newline + 1;
  }
  return text_.substr(begin);
}

}  // namespace farandole::launch::output
