#include "launch/hosts/placement.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace farandole::launch::hosts {
namespace {

constexpr std::size_t kMostNamed = 8;  // hosts in an error

// "a:2,b:2,… (30 hosts)"
std::string listHosts(const std::vector<HostSpec>& hosts) {
  if (hosts.size() <= kMostNamed) return formatHosts(hosts);
  const std::vector<HostSpec> first(hosts.begin(), hosts.begin() + kMostNamed);
  return formatHosts(first) + ",… (" + countOf(static_cast<int>(hosts.size()), "host") + ")";
}

// The hosts with as many slots as np needs: the missing ones spread evenly.
std::vector<HostSpec> withMoreSlots(std::vector<HostSpec> hosts, std::int64_t missing) {
  const auto count = static_cast<std::int64_t>(hosts.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t more = missing / count + (i < missing % count ? 1 : 0);
    auto& host = hosts[static_cast<std::size_t>(i)];
    host.slots = static_cast<int>(host.slots + more);
  }
  return hosts;
}

Status tooFewSlots(const std::vector<HostSpec>& hosts, int np, std::int64_t total) {
  const std::string have = countOf(np, "rank") + " wanted, but there " +
                           (total == 1 ? "is " : "are ") + countOf(total, "slot") + " on " +
                           listHosts(hosts);
  const auto enough = withMoreSlots(hosts, np - total);
  if (std::any_of(enough.begin(), enough.end(),
                  [](const HostSpec& host) { return host.slots > kMostSlots; })) {
    return Status::invalid(have + "; give -n " + std::to_string(total) + " or name more hosts");
  }
  const std::string example =
      hosts.size() > kMostNamed ? " to each host" : ", for example -H " + formatHosts(enough);
  return Status::invalid(have + "; give more slots" + example + ", or -n " + std::to_string(total));
}

// The host of each rank.
std::vector<int> hostsInOrder(const std::vector<HostSpec>& hosts, int np, MapBy mapBy) {
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(np));
  if (mapBy == MapBy::kSlot) {
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      const int left = np - static_cast<int>(order.size());
      order.insert(order.end(), static_cast<std::size_t>(std::min(hosts[host].slots, left)),
                   static_cast<int>(host));
    }
    return order;
  }
  for (int round = 0; static_cast<int>(order.size()) < np; ++round) {
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      if (hosts[host].slots > round && static_cast<int>(order.size()) < np) {
        order.push_back(static_cast<int>(host));
      }
    }
  }
  return order;
}

// Gives the ranks, already in order and on their hosts, their local and cross numbers.
void number(std::vector<PlacedRank>& ranks, std::size_t hosts) {
  std::vector<int> localSize(hosts);
  for (PlacedRank& placed : ranks) {
    placed.localRank = localSize[static_cast<std::size_t>(placed.host)]++;
  }
  // Before[l] counts the hosts so far that have a local rank l: that is the next host's cross rank.
  std::vector<int> before(
      static_cast<std::size_t>(*std::max_element(localSize.begin(), localSize.end())));
  std::vector<std::vector<int>> crossRanks(hosts);
  for (std::size_t host = 0; host < hosts; ++host) {
    const auto size = static_cast<std::size_t>(localSize[host]);
    for (std::size_t local = 0; local < size; ++local) {
      crossRanks[host].push_back(before[local]++);
    }
  }
  for (PlacedRank& placed : ranks) {
    const auto host = static_cast<std::size_t>(placed.host);
    const auto local = static_cast<std::size_t>(placed.localRank);
    placed.localSize = localSize[host];
    placed.crossRank = crossRanks[host][local];
    placed.crossSize = before[local];
  }
}

}  // namespace

Result<std::vector<PlacedRank>> placeRanks(const std::vector<HostSpec>& hosts,
                                           std::optional<int> np, MapBy mapBy) {
  if (hosts.empty()) return Status::invalid("no hosts; name some with -H, for example -H a:2,b:2");
  std::int64_t total = 0;
  for (const HostSpec& host : hosts) {
    if (host.slots < 1) {
      return Status::invalid("host '" + host.name + "' has no slots; write for example " +
                             host.name + ":1");
    }
    total += host.slots;
  }
  if (np && *np < 1) {
    return Status::invalid("-n " + std::to_string(*np) + ": there must be at least 1 rank");
  }
  if (np && *np > total) return tooFewSlots(hosts, *np, total);
  const std::int64_t wanted = np ? *np : total;
  if (wanted > kMostRanks) {
    return Status::invalid(countOf(wanted, "rank") + " are more than the limit of " +
                           std::to_string(kMostRanks) + "; give fewer with -n");
  }
  std::vector<PlacedRank> ranks;
  ranks.reserve(static_cast<std::size_t>(wanted));
  for (int host : hostsInOrder(hosts, static_cast<int>(wanted), mapBy)) {
    ranks.push_back({.host = host, .rank = static_cast<int>(ranks.size())});
  }
  number(ranks, hosts.size());
  return ranks;
}

Result<std::vector<PlacedRank>> placeRanks(const std::vector<int>& slots, std::optional<int> np,
                                           MapBy mapBy) {
  std::vector<HostSpec> hosts;
  for (int count : slots) {
    hosts.push_back({.name = "host" + std::to_string(hosts.size() + 1), .slots = count});
  }
  return placeRanks(hosts, np, mapBy);
}

}  // namespace farandole::launch::hosts
