#include "init/fill.h"

namespace farandole::init {

std::string fill(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string out;
  while (true) {
    const auto begin = text.find('@');
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    text.remove_prefix(begin);
    const auto end = text.find('@', 1);
    const std::string_view name =
        end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
    const auto* found = values.begin();
    while (found != values.end() && (name.empty() || found->first != name)) ++found;
    if (found == values.end()) {
      out += '@';
      text.remove_prefix(1);
    } else {
      out += found->second;
      text.remove_prefix(end + 1);
    }
  }
}

std::string composeString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '$') out += '$';
    out += c;
  }
  return out + "\"";
}

}  // namespace farandole::init
