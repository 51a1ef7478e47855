#include "base/slurm_notation.h"

#include <utility>

#include "base/text.h"

namespace farandole {
namespace {

Status badRange(std::string_view pattern, const std::string& why) {
  return Status::invalid("bad range in " + quoted(pattern) + ": " + why +
                         "; write for example node[01-16] or node[1,3,5-7]");
}

Status tooMany(std::string_view pattern) {
  return badRange(pattern, "it stands for more than " + std::to_string(kMostHosts) + " hosts");
}

// Appends the numbers of "3" or "01-16".
Status addNumbers(std::string_view pattern, std::string_view part, std::vector<std::string>& out) {
  const auto dash = part.find('-');
  const std::string_view low = part.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : part.substr(dash + 1);
  const auto first = parseDigits(low);
  const auto last = parseDigits(high);
  if (!first || !last) return badRange(pattern, quoted(part) + " is not a number or low-high");
  if (*last < *first) return badRange(pattern, quoted(part) + " runs backwards");
  const bool lowPadded = low.size() > 1 && low[0] == '0';
  const bool highPadded = high.size() > 1 && high[0] == '0';
  if ((lowPadded && high.size() < low.size()) || (highPadded && high.size() != low.size())) {
    return badRange(pattern, "the ends of " + quoted(part) + " are padded differently");
  }
  if (*last - *first >= kMostHosts - static_cast<std::int64_t>(out.size())) return tooMany(pattern);
  for (std::int64_t number = *first; number <= *last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    out.push_back(std::move(digits));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> expandHostRange(std::string_view pattern) {
  std::vector<std::string> names = {""};
  std::string_view rest = pattern;
  while (true) {
    const auto open = rest.find_first_of("[]");
    const std::string_view plain = rest.substr(0, open);
    for (std::string& name : names) name += plain;
    if (open == std::string_view::npos) return names;
    const auto close = rest.find_first_of("[]", open + 1);
    if (rest[open] == ']' || close == std::string_view::npos || rest[close] == '[') {
      return badRange(pattern, "a bracket is missing");
    }
    std::vector<std::string> numbers;
    for (std::string_view part : splitAt(rest.substr(open + 1, close - open - 1), ',')) {
      FARANDOLE_RETURN_IF_ERROR(addNumbers(pattern, trimmed(part), numbers));
    }
    if (names.size() * numbers.size() > static_cast<std::size_t>(kMostHosts)) {
      return tooMany(pattern);
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers.size());
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    rest.remove_prefix(close + 1);
  }
}

Result<std::vector<std::string_view>> splitHostList(std::string_view list) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[' || list[i] == ']') {
      if (inside == (list[i] == '[')) return badRange(list.substr(begin), "a bracket is missing");
      inside = !inside;
    } else if (list[i] == ',' && !inside) {
      items.push_back(trimmed(list.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (inside) return badRange(list.substr(begin), "a bracket is missing");
  items.push_back(trimmed(list.substr(begin)));
  return items;
}

Result<std::vector<int>> expandCounts(std::string_view text) {
  std::vector<int> counts;
  for (std::string_view part : splitAt(text, ',')) {
    part = trimmed(part);
    const auto open = part.find('(');
    const auto count = parseDigits(part.substr(0, open));
    std::optional<std::int64_t> times = 1;
    if (open != std::string_view::npos) {
      const std::string_view repeat = part.substr(open);
      times.reset();
      if (repeat.starts_with("(x") && repeat.ends_with(")")) {
        times = parseDigits(repeat.substr(2, repeat.size() - 3));
      }
    }
    if (!count || !times || *times < 1) {
      return Status::invalid(quoted(part) + " is not of the form 2 or 2(x3)");
    }
    if (*times > kMostHosts - static_cast<std::int64_t>(counts.size()) || *count > kMostHosts) {
      return Status::invalid(quoted(part) + " is too large");
    }
    counts.insert(counts.end(), static_cast<std::size_t>(*times), static_cast<int>(*count));
  }
  return counts;
}

}  // namespace farandole
