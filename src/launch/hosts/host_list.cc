#include "launch/hosts/host_list.h"

#include <algorithm>

#include "base/slurm_notation.h"

namespace farandole::launch::hosts {
namespace {

std::string keyOf(const HostSpec& host) {
  return host.user + "@" + host.name + "/" + std::to_string(host.port);
}

}  // namespace

std::optional<HostList::Clash> HostList::add(HostSpec host, int line) {
  const Entry fresh{hosts_.size(), line, host.slots == 0};
  const auto [position, added] = entries_.emplace(keyOf(host), fresh);
  if (added) {
    hosts_.push_back(std::move(host));
    return std::nullopt;
  }
  HostSpec& known = hosts_[position->second.index];
  const int together = std::max(known.slots, 1) + std::max(host.slots, 1);
  if (!position->second.counted || host.slots != 0) {
    host.slots = together;
    return Clash{std::move(host), position->second.line};
  }
  known.slots = std::min(together, kMostSlots + 1);
  tooManySlots_ |= together > kMostSlots;
  return std::nullopt;
}

void HostList::addSlots(HostSpec host, int slots) {
  const auto [position, added] = entries_.emplace(keyOf(host), Entry{hosts_.size(), 0, false});
  if (added) {
    host.slots = 0;
    hosts_.push_back(std::move(host));
  }
  HostSpec& known = hosts_[position->second.index];
  tooManySlots_ |= slots > kMostSlots - known.slots;
  known.slots = std::min(known.slots + std::min(slots, kMostSlots + 1), kMostSlots + 1);
}

Status HostList::check() const {
  if (hosts_.size() > static_cast<std::size_t>(kMostHosts)) {
    return Status::invalid("more than " + std::to_string(kMostHosts) + " hosts; name fewer");
  }
  if (tooManySlots_) {
    return Status::invalid("a host has more than " + std::to_string(kMostSlots) +
                           " slots; give it fewer");
  }
  return {};
}

}  // namespace farandole::launch::hosts
