// How much memory this process may still use: /proc/meminfo and the memory controllers (cgroup v2
// and v1) of every enclosing group.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "machine/arena.h"

namespace farandole::machine {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> parseNumber(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> readNumber(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return parseNumber(line);  // "max", which means no limit, is not a number
}

// Returns the value of the first line that starts with the key.
std::optional<std::uint64_t> readField(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key)) return parseNumber(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

// Returns what is left below the limit of one group. Clean file pages count as free, because the
// kernel drops them.
std::uint64_t leftInGroup(const std::string& folder, std::string_view limitFile,
                          std::string_view usageFile) {
  const auto limit = readNumber(folder + "/" + std::string(limitFile));
  const auto usage = readNumber(folder + "/" + std::string(usageFile));
  if (!limit || !usage) return kUnlimited;
  const std::string stat = folder + "/memory.stat";
  const std::uint64_t files =
      readField(stat, "inactive_file ").value_or(0) + readField(stat, "active_file ").value_or(0);
  const std::uint64_t used = *usage > files ? *usage - files : 0;
  return *limit > used ? *limit - used : 0;
}

// Returns the least of a group and its ancestors. The path may name folders outside this
// container's view of the hierarchy, which do not exist here.
std::uint64_t leftInGroups(const std::string& root, std::string path, std::string_view limitFile,
                           std::string_view usageFile) {
  std::uint64_t least = kUnlimited;
  for (int depth = 0; depth < 64; ++depth) {
    least = std::min(least, leftInGroup(root + path, limitFile, usageFile));
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) break;
    path.resize(slash);
  }
  return least;
}

std::uint64_t leftInAllGroups() {
  std::ifstream groups("/proc/self/cgroup");
  std::uint64_t least = kUnlimited;
  std::string line;
  while (std::getline(groups, line)) {  // hierarchy-id:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      least = std::min(least, leftInGroups("/sys/fs/cgroup", path, "memory.max", "memory.current"));
    } else if (controllers.find("memory") != std::string::npos) {
      least = std::min(least, leftInGroups("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                                           "memory.usage_in_bytes"));
    }
  }
  return least;
}

}  // namespace

std::size_t availableMemory() {
  const auto kilobytes = readField("/proc/meminfo", "MemAvailable:");
  const std::uint64_t machine = kilobytes ? *kilobytes * 1024 : kUnlimited;
  return static_cast<std::size_t>(std::min(machine, leftInAllGroups()));
}

}  // namespace farandole::machine
