#include "conductor/operation_groups.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "conductor/point_to_point.h"

namespace farandole::conductor {
namespace {

std::uint64_t hashNames(const std::vector<Request*>& requests) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const auto* each : requests) {
    for (const char c : each->name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    hash = (hash ^ 0xffu) * 1099511628211u;
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace

Status checkGroup(const Request& request, std::span<const EntryPtr> entries) {
  if (entries.size() <= control::kMaxGroupPlans || request.group == 0 ||
      !control::othersDecideSize(request.meta.kind)) {
    return {};
  }
  const auto together = std::count_if(entries.begin(), entries.end(), [&](const auto& other) {
    return other->request.group == request.group;
  });
  if (static_cast<std::size_t>(together) <= control::kMaxGroupPlans) return {};
  return Status::invalid("a group of " + std::to_string(together) + " operations with " +
                         std::string(control::name(request.meta.kind)) + " among them: at most " +
                         std::to_string(control::kMaxGroupPlans) + " are possible");
}

void identifyGroups(std::span<const EntryPtr> entries) {
  std::unordered_map<std::uint64_t, std::vector<Request*>> groups;
  for (const auto& entry : entries) {
    Request& request = entry->request;
    const bool named =
        !isPointToPoint(request.meta.kind) && request.meta.kind != control::Kind::kJoin;
    if (request.group != 0 && named) groups[request.group].push_back(&request);
  }
  for (const auto& [user, members] : groups) {
    const std::uint64_t group = hashNames(members);
    for (auto* each : members) {
      each->meta.group = group;
      each->meta.groupSize = static_cast<std::int32_t>(members.size());
    }
  }
}

}  // namespace farandole::conductor
