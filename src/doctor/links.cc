#include "doctor/links.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/mutex.h"
#include "base/thread.h"
#include "launch/facts/fact_access.h"
#include "launch/hosts/host_spec.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;
constexpr std::size_t kLinksAtOnce = 64;
constexpr Duration kAddressTime = std::chrono::seconds(3);

struct Listening {
  int port = 0;
  Status why;
};

// What came of one pair: the best address, or why none works.
struct Link {
  std::string misled;  // the first address that led to another host, and to which
  std::string address;
  double roundTrip = 0;
  double large = 0;
  std::string failures;
  bool tried = false;
  bool sizeTrouble = false;
};

// Whom an address led to, where it should have led to another.
std::string wrongHost(const std::vector<LinkEnd>& ends, const LinkEnd& from,
                      const std::string& who) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (who != std::to_string(i)) continue;
    return ends[i].name + (&ends[i] == &from ? " itself, which has that address too" : "");
  }
  return "a host that is not visited now";
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Link tryLink(const std::vector<LinkEnd>& ends, std::size_t i, std::size_t j, int port,
             const std::string& secret, Deadline deadline) {
  const LinkEnd& from = ends[i];
  const LinkEnd& to = ends[j];
  Link link;
  std::vector<std::string> addresses = to.addresses;
  if (!to.outside.empty()) addresses.push_back(to.outside);
  for (const std::string& address : addresses) {
    if (deadline.passed() || (address == to.outside && !link.address.empty())) break;
    link.tried = true;
    auto times = from.probe->echoTo({address, port, secret, launch::facts::kEchoLargeBytes},
                                    Deadline::after(deadline.left(kAddressTime)));
    // Its port may be another one here, where nobody listens.
    const bool itself = !times.ok() && from.network != to.network && has(from.own, address);
    const std::string who = times.ok() ? times->who : itself ? std::to_string(i) : "";
    if (!who.empty() && who != std::to_string(j)) {
      const std::string where = address + " leads to " + wrongHost(ends, from, who);
      link.failures += (link.failures.empty() ? "" : "; ") + where;
      if (link.misled.empty()) link.misled = where;
    } else if (!times.ok()) {
      link.failures += (link.failures.empty() ? "" : "; ") + times.status().message();
      link.sizeTrouble = link.sizeTrouble ||
                         times.status().message().find("small messages pass") != std::string::npos;
    } else if (link.address.empty() || times->roundTripMicroseconds < link.roundTrip) {
      link.address = address;
      link.roundTrip = times->roundTripMicroseconds;
      link.large = times->largeMicroseconds;
    }
  }
  return link;
}

// advertise: "h1=203.0.113.5,h2=ADDRESS", for all hosts that some host did not reach.
Finding failed(const LinkEnd& from, const LinkEnd& to, const Link& link,
               launch::facts::PortRange range, const std::string& advertise) {
  const std::string pair = from.name + " → " + to.name;
  if (to.addresses.empty()) {
    return {Severity::kError,
            "links",
            from.name,
            pair + ": " + to.name + " has no address",
            "",
            "connect it to a network, or run the container with --network host"};
  }
  if (&from == &to && link.tried) {
    return {Severity::kError, "links",
            from.name,        from.name + " cannot connect to itself",
            link.failures,    "ip link set lo up, or see its firewall: nft list ruleset"};
  }
  if (!link.tried) {
    return {Severity::kWarning,
            "links",
            from.name,
            pair + " was not tried: the time was over",
            "",
            "farandole doctor --timeout 120"};
  }
  if (link.sizeTrouble) {
    return {Severity::kError, "links",
            from.name,        pair + ": large messages do not pass",
            link.failures,    "ip link set IFACE mtu 1400 on both, or let ICMP pass on the way"};
  }
  const std::string given =
      range.first == 0 ? launch::hosts::kPortsToPass : launch::facts::describe(range);
  const std::string ports =
      range.first == 0 ? "all TCP ports between the hosts, or a range such as " + given : given;
  const std::string run = "farandole run --advertise " + advertise + " --data-ports " + given;
  if (!link.misled.empty()) {
    return {Severity::kError,
            "links",
            from.name,
            pair + ": " + link.misled,
            link.failures,
            "run the containers with --network host, or pass ports on to them (docker run -p " +
                given + ":" + given + "), see whether that works (farandole doctor --port-range " +
                given + " …), and name where they are reached: " + run};
  }
  return {
      Severity::kError,
      "links",
      from.name,
      pair + ": no address can be reached",
      link.failures,
      "open " + ports +
          " (ufw allow from SUBNET; security group; docker run --network host or docker run -p " +
          given + ":" + given +
          "); if ports are passed on under another address: farandole doctor --port-range " +
          given + " …, then " + run};
}

json described(const LinkEnd& from, const LinkEnd& to, const Link& link) {
  json one = {{"from", from.name}, {"to", to.name}, {"ok", !link.address.empty()}};
  if (!link.address.empty()) {
    one["address"] = link.address;
    one["round_trip_us"] = link.roundTrip;
    one["large_us"] = link.large;
  }
  if (!link.failures.empty()) one["failures"] = link.failures;
  return one;
}

// What has become of all links. Each host's links are tried by a thread of its own, which adds
// them.
class LinkTally {
 public:
  struct Failure {
    std::size_t from;
    std::size_t to;
    Link link;
  };
  struct Links {
    json described = json::array();
    std::vector<Failure> failures;
    std::size_t good = 0;
    double best = 0;  // round trips, in microseconds
    double worst = 0;
  };

  void add(const std::vector<LinkEnd>& ends, std::size_t from, std::size_t to, const Link& link) {
    const MutexLock lock(mutex_);
    links_.described.push_back(described(ends[from], ends[to], link));
    if (link.address.empty()) {
      links_.failures.push_back({from, to, link});
      return;
    }
    links_.best = links_.good == 0 ? link.roundTrip : std::min(links_.best, link.roundTrip);
    links_.worst = std::max(links_.worst, link.roundTrip);
    ++links_.good;
  }
  Links take() {
    const MutexLock lock(mutex_);
    return std::move(links_);
  }

 private:
  Mutex mutex_;
  Links links_ GUARDED_BY(mutex_);
};

}  // namespace

std::string onlyOutside(const std::vector<LinkEnd>& ends, const json& links) {
  std::string list;
  for (const LinkEnd& end : ends) {
    const bool outside = std::any_of(links.begin(), links.end(), [&end](const json& link) {
      return launch::facts::factText(link, "/to") == end.name && !end.outside.empty() &&
             launch::facts::factText(link, "/address") == end.outside;
    });
    if (outside) list += (list.empty() ? "" : ",") + end.name + "=" + end.outside;
  }
  return list;
}

Findings checkLinks(const std::vector<LinkEnd>& ends, launch::facts::PortRange range,
                    Deadline deadline, json& links) {
  links = json::array();
  if (ends.empty()) return {};
  auto secret = launch::facts::makeEchoSecret();
  if (!secret.ok()) {
    return {{Severity::kError, "links", "", secret.status().message(), "", "try again"}};
  }
  std::vector<Listening> listening(ends.size());
  inParallel(ends.size(), kLinksAtOnce, [&](std::size_t i) {
    auto port = ends[i].probe->openEcho(*secret, range, std::to_string(i),
                                        Deadline::after(deadline.left(kAddressTime)));
    listening[i] = port.ok() ? Listening{*port, {}} : Listening{0, port.status()};
  });
  Findings findings;
  LinkTally tally;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (listening[i].port != 0) continue;
    findings.push_back({Severity::kError, "ports", ends[i].name,
                        ends[i].name + " cannot listen for the others", listening[i].why.message(),
                        std::string("give another range: --port-range ") +
                            launch::hosts::kPortsToPass + "; ss -ltnp shows who has it"});
  }
  inParallel(ends.size(), kLinksAtOnce, [&](std::size_t i) {
    // Each begins with its neighbour, so that not all visit the same host at the same time.
    const std::size_t first = ends.size() == 1 ? 0 : 1;
    const std::size_t last = ends.size() == 1 ? 0 : ends.size() - 1;
    for (std::size_t step = first; step <= last; ++step) {
      const std::size_t j = (i + step) % ends.size();
      if (listening[j].port == 0) continue;
      const Link link = tryLink(ends, i, j, listening[j].port, *secret, deadline);
      tally.add(ends, i, j, link);
    }
  });
  inParallel(ends.size(), kLinksAtOnce, [&](std::size_t i) { ends[i].probe->closeEcho(); });
  const LinkTally::Links tried = tally.take();
  links = tried.described;
  const std::vector<LinkTally::Failure>& failures = tried.failures;
  std::string advertise;
  for (std::size_t j = 0; j < ends.size(); ++j) {
    const bool lost = std::any_of(failures.begin(), failures.end(),
                                  [j](const auto& failure) { return failure.to == j; });
    if (!lost) continue;
    advertise += (advertise.empty() ? "" : ",") + ends[j].name + "=" +
                 (ends[j].outside.empty() ? "ADDRESS" : ends[j].outside);
  }
  for (const LinkTally::Failure& failure : failures) {
    findings.push_back(
        failed(ends[failure.from], ends[failure.to], failure.link, range, advertise));
  }
  if (const std::size_t good = tried.good; findings.empty() && good > 0) {
    char times[96];
    if (good == 1) {
      std::snprintf(times, sizeof(times), "round trip %.0f µs", tried.best);
    } else {
      std::snprintf(times, sizeof(times), "round trips %.0f to %.0f µs", tried.best, tried.worst);
    }
    findings.push_back({Severity::kOk, "links", "",
                        ends.size() == 1 ? "this host reaches its own address"
                                         : std::to_string(good) + " of " + std::to_string(good) +
                                               " directions work, with large messages too",
                        times, ""});
  }
  return findings;
}

}  // namespace farandole::doctor
