// --bind-to and --map-by of Open MPI and Hydra.
#include <algorithm>
#include <cctype>

#include "compat/mpirun.h"

namespace farandole::compat {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// ":pe=4" behind a policy: so many cores, hence threads, for each rank.
Status modifiers(const std::string& flag, std::string_view rest, RunWords& run) {
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the colon or comma
    const auto end = rest.find_first_of(":,");
    const std::string_view modifier = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
    if (!modifier.starts_with("pe=")) continue;
    auto threads = wholeNumber(flag + " PE", modifier.substr(3), 1, 1 << 16);
    if (!threads.ok()) return threads.status();
    run.set("--threads", std::to_string(*threads));
  }
  return {};
}

// ppr:2:node → two ranks on each host.
Status ranksPerResource(const std::string& value, RunWords& run) {
  const auto second = value.find(':', 4);
  const std::string count = value.substr(4, second - 4);
  std::string resource = second == std::string::npos ? "" : value.substr(second + 1);
  const auto end = resource.find_first_of(":,");
  const std::string rest = end == std::string::npos ? "" : resource.substr(end);
  resource.resize(std::min(end, resource.size()));
  auto ranks = wholeNumber("--map-by ppr", count, 1, 1 << 20);
  if (!ranks.ok()) return ranks.status();
  if (resource != "node") {
    return Status::invalid("--map-by " + value + ": ranks are counted per host: type ppr:N:node");
  }
  run.set("--ranks-per-host", std::to_string(*ranks));
  return modifiers("--map-by", rest, run);
}

}  // namespace

Status applyBindTo(const std::string& value, RunWords& run) {
  const std::string policy = lower(value);
  const auto colon = std::min(policy.find(':'), policy.size());
  const std::string_view first = std::string_view(policy).substr(0, colon);
  if (first == "none" || first == "board" || first == "machine") {
    run.set("--bind-to", "none");
  } else if (among(first, {"core", "hwthread", "rr", "user"})) {
    run.set("--bind-to", "core");
  } else if (among(first,
                   {"socket", "package", "numa", "l1cache", "l2cache", "l3cache", "cache"})) {
    run.set("--bind-to", "numa");
  } else {
    return Status::invalid("--bind-to takes none, core, socket or numa, not '" + value + "'");
  }
  return {};
}

Status applyMapBy(const std::string& value, RunWords& run) {
  const std::string policy = lower(value);
  if (policy.starts_with("ppr:")) return ranksPerResource(policy, run);
  const auto colon = std::min(policy.find(':'), policy.size());
  const std::string_view first = std::string_view(policy).substr(0, colon);
  if (first == "node") {
    run.set("--map-by", "node");
  } else if (among(first, {"slot", "core", "hwthread", "socket", "package", "numa", "l1cache",
                           "l2cache", "l3cache", "board", ""})) {
    run.set("--map-by", "slot");
  } else {
    return Status::invalid("--map-by takes slot or node, not '" + value + "'");
  }
  return modifiers("--map-by", std::string_view(policy).substr(colon), run);
}

}  // namespace farandole::compat
