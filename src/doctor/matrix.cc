#include "doctor/matrix.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "launch/facts/fact_access.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;

constexpr std::size_t kMostHostsShown = 16;

// A character of UTF-8 is one column here.
std::string right(const std::string& text, std::size_t width) {
  const auto columns = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  return columns < width ? std::string(width - columns, ' ') + text : text;
}

// Of the table under this key; nothing if it is not there.
std::optional<double> numberAt(const json& told, const char* key, std::size_t i, std::size_t j) {
  const json& rows = launch::facts::factAt(told, key);
  if (!rows.is_array() || i >= rows.size() || !rows[i].is_array() || j >= rows[i].size() ||
      !rows[i][j].is_number()) {
    return std::nullopt;
  }
  return rows[i][j].get<double>();
}

std::string cell(const json& told, std::size_t i, std::size_t j) {
  const auto way = numberAt(told, "/us", i, j);
  const auto speed = numberAt(told, "/mb_per_s", i, j);
  if (!way || !speed) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.0f µs %.0f MB/s", *way, *speed);
  return text;
}

}  // namespace

std::string matrixText(const std::vector<std::string>& hosts, const json& told) {
  if (!told.contains("us") || hosts.size() < 2 || hosts.size() > kMostHostsShown) return "";
  constexpr std::size_t kColumn = 20;
  std::string text = "a small message's way and a large one's speed, from row to column:\n";
  std::size_t width = 8;
  for (const std::string& host : hosts) width = std::max(width, host.size());
  text += std::string(width, ' ');
  for (const std::string& host : hosts) text += "  " + right(host, kColumn);
  text += "\n";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    text += hosts[i] + std::string(width - hosts[i].size(), ' ');
    for (std::size_t j = 0; j < hosts.size(); ++j) text += "  " + right(cell(told, i, j), kColumn);
    text += "\n";
  }
  return text;
}

}  // namespace farandole::doctor
