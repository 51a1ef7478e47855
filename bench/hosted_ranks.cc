#include "bench/hosted_ranks.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "base/fd.h"
#include "bench/launch_peers.h"
#include "launch/hosts/locality.h"
#include "process/command_lookup.h"

namespace farandole::bench {
namespace {

using Words = std::vector<std::string>;

constexpr int kMostHostedRanks = 64;
constexpr const char* kAnyPort = "9";

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// The address of this machine on the way to that host; "" if there is none. Nothing is sent.
std::string ownAddressTowards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), kAnyPort, &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  const UniqueFd probe(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  char text[80] = "";
  if (!probe || connect(probe.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return text;
}

void append(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

std::vector<int> pinsOf(const std::vector<launch::hosts::HostSpec>& hosts, bool byNode,
                        const std::vector<int>& processors) {
  std::vector<std::pair<int, std::size_t>> ranks;  // place on its machine, machine
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (int place = 0; place < hosts[host].slots; ++place) ranks.emplace_back(place, host);
  }
  if (byNode) std::sort(ranks.begin(), ranks.end());
  std::vector<int> pins;
  for (const auto& [place, host] : ranks) {
    if (processors.empty()) break;
    pins.push_back(processors[(static_cast<std::size_t>(place) + host) % processors.size()]);
  }
  return pins;
}

Result<HostedRanks> HostedRanks::of(const HostOptions& options) {
  auto hosts = launch::hosts::parseHosts(options.hosts);
  if (!hosts.ok()) return hosts.status();
  HostedRanks hosted;
  hosted.options_ = options;
  for (launch::hosts::HostSpec& host : *hosts) {
    if (host.slots == 0) host.slots = 1;
    hosted.ranks_ += host.slots;
    if (hosted.address_.empty() && !launch::hosts::isThisMachine(host)) {
      hosted.address_ = ownAddressTowards(host.name);
      if (hosted.address_.empty()) {
        return Status::invalid(
            fmt::format("--hosts: no address of {} is known here: the ranks there could not report",
                        host.name));
      }
    }
  }
  if (hosted.address_.empty()) {
    return Status::invalid("--hosts names no other machine; leave it out to measure this one");
  }
  if (hosted.ranks_ > kMostHostedRanks) {
    return Status::invalid(fmt::format("--hosts: at most {} ranks", kMostHostedRanks));
  }
  hosted.hosts_ = std::move(*hosts);
  return hosted;
}

std::string HostedRanks::describe() const {
  return fmt::format("{} ranks on {} hosts ({}, by {})", ranks_, hosts_.size(), list(true),
                     options_.mapBy);
}

std::string HostedRanks::list(bool slots) const {
  std::string text;
  for (const launch::hosts::HostSpec& host : hosts_) {
    text += (text.empty() ? "" : ",") + host.name;
    if (slots) text += ":" + std::to_string(host.slots);
  }
  return text;
}

Result<std::vector<OwnVariant>> HostedRanks::variants() const {
  std::vector<OwnVariant> variants;
  std::istringstream in(options_.wireSecurity.empty() ? "encrypt" : options_.wireSecurity);
  for (std::string grade; std::getline(in, grade, ',');) {
    if (grade != "encrypt" && grade != "integrity" && grade != "handshake") {
      return Status::invalid(
          fmt::format("--wire-security takes encrypt, integrity, handshake, not '{}'", grade));
    }
    variants.push_back({grade, {"--wire-security", grade}});
    const auto add = [&](const std::string& what, const Words& more) {
      variants.push_back({what + " " + grade, {"--wire-security", grade}});
      append(variants.back().options, more);
    };
    if (options_.flat) add("flat", {"--no-hierarchy"});
    if (options_.gloo) add("on gloo", {"--engine", "gloo"});
    if (options_.flat && options_.gloo) add("flat on gloo", {"--engine", "gloo", "--no-hierarchy"});
  }
  return variants;
}

GroupSpec HostedRanks::empty(const std::string& name, const std::vector<int>& processors) const {
  GroupSpec spec;
  spec.name = name;
  spec.ranks = ranks_;
  spec.processors = pinsOf(hosts_, options_.mapBy == "node", processors);
  spec.address = address_;
  return spec;
}

Words HostedRanks::farandole(const Words& more) const {
  Words words{process::ownProgram(),
              "run",
              "-q",
              "-H",
              launch::hosts::formatHosts(hosts_),
              "--map-by",
              options_.mapBy,
              "--wdir",
              "/",
              "-x",
              "FARANDOLE_BENCH_SOCKET"};
  append(words, {"-x", "FARANDOLE_BENCH_CPUS"});
  if (options_.sshPort != 0) append(words, {"-p", std::to_string(options_.sshPort)});
  if (!options_.identityFile.empty()) append(words, {"-i", options_.identityFile});
  if (!options_.networkInterfaces.empty()) {
    append(words, {"--network-interfaces", options_.networkInterfaces});
  }
  append(words, more);
  return words;
}

GroupSpec HostedRanks::own(const OwnVariant& variant, const std::vector<int>& processors) const {
  GroupSpec spec = empty(variant.name, processors);
  Words words = farandole(variant.options);
  if (!options_.lanes.empty()) append(words, {"--lanes", options_.lanes});
  append(words, {process::kOwnCommand, "bench", "rank"});
  spec.commands = {std::move(words)};
  return spec;
}

Words HostedRanks::openMpi() const {
  Words words{"mpirun.openmpi", "--bind-to", "none",        "-np", std::to_string(ranks_), "-H",
              list(true),       "--map-by",  options_.mapBy};
  append(words, {"-x", "FARANDOLE_BENCH_SOCKET", "-x", "FARANDOLE_BENCH_CPUS"});
  append(words, {"--mca", "btl", "self,vader,tcp"});
  if (options_.sshPort != 0) {
    append(words, {"--mca", "plm_rsh_args", "-p " + std::to_string(options_.sshPort)});
  }
  if (!options_.networkInterfaces.empty()) {
    append(words, {"--mca", "btl_tcp_if_include", options_.networkInterfaces, "--mca",
                   "oob_tcp_if_include", options_.networkInterfaces});
  }
  return words;
}

Words HostedRanks::hydra(const std::string& starter, int perHost) const {
  Words words{starter, "-n", std::to_string(ranks_), "-launcher", "ssh"};
  // With a number per host the list is gone through again and again.
  append(words, {"-hosts", list(perHost == 0)});
  if (perHost != 0) append(words, {"-ppn", std::to_string(perHost)});
  if (!options_.networkInterfaces.empty()) append(words, {"-iface", options_.networkInterfaces});
  return words;
}

Result<GroupSpec> HostedRanks::of(const Peer& peer, const std::vector<int>& processors) const {
  GroupSpec spec = empty(peer.name, processors);
  const std::filesystem::path directory = std::filesystem::absolute(peersDirectory());
  const bool ring = peer.name == "openmpi-ring";
  const std::string program =
      (directory / "bin" / ("peer_" + (ring ? "openmpi" : peer.name))).string();
  const bool byNode = options_.mapBy == "node";
  Words words;
  if (peer.name == "openmpi" || ring) {
    words = openMpi();
    if (ring) append(words, openMpiRing());
    spec.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  } else if (peer.name == "mpich") {
    words = hydra("mpiexec.mpich", byNode ? 1 : 0);
  } else if (peer.name == "intelmpi") {
    // It passes over the slots in a list of hosts.
    const int slots = hosts_.front().slots;
    if (std::any_of(hosts_.begin(), hosts_.end(),
                    [&](auto& host) { return host.slots != slots; })) {
      return Status::invalid("intelmpi takes part only with as many ranks on every host");
    }
    const std::string root = (directory / "intelmpi").string();
    words = hydra(root + "/bin/mpiexec.hydra", byNode ? 1 : slots);
    spec.environment = {{"I_MPI_ROOT", root},
                        {"LD_LIBRARY_PATH", root + "/lib"},
                        {"I_MPI_FABRICS", "shm:ofi"},
                        {"I_MPI_OFI_LIBRARY_INTERNAL", "0"},
                        {"FI_PROVIDER", "tcp"}};
  } else if (peer.name == "gloo") {
    words = farandole({});
  } else {
    return Status::invalid(peer.name + " does not run on several machines");
  }
  words.push_back(program);
  spec.commands = {std::move(words)};
  return spec;
}

}  // namespace farandole::bench
