#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "launch/facts/fact_items.h"

namespace farandole::launch::facts::fact_items {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

int prefixLength(const sockaddr* mask, int family) {
  if (mask == nullptr) return -1;
  const auto* bytes = family == AF_INET
                          ? reinterpret_cast<const unsigned char*>(
                                &reinterpret_cast<const sockaddr_in*>(mask)->sin_addr)
                          : reinterpret_cast<const unsigned char*>(
                                &reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr);
  int bits = 0;
  for (int i = 0; i < (family == AF_INET ? 4 : 16); ++i) bits += std::popcount(bytes[i]);
  return bits;
}

std::string numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

// Interfaces that lead to other machines, and those that only look like it.
std::string kindOf(const std::string& name, unsigned flags) {
  if ((flags & IFF_LOOPBACK) != 0) return "loopback";
  const fs::path folder = fs::path("/sys/class/net") / name;
  for (const char* prefix : {"docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "lxc"}) {
    if (name.starts_with(prefix)) return "container-bridge";
  }
  std::error_code error;
  if (fs::exists(folder / "bridge", error)) return "bridge";
  if (fs::exists(folder / "device", error)) return "card";
  if ((flags & IFF_POINTOPOINT) != 0) return "tunnel";
  const std::string own = std::string(trimmed(readSmall((folder / "ifindex").string())));
  const std::string peer = std::string(trimmed(readSmall((folder / "iflink").string())));
  return own != peer ? "container" : "virtual";
}

long mtuOf(const std::string& name) {
  const std::string text = readSmall("/sys/class/net/" + name + "/mtu");
  return std::strtol(text.c_str(), nullptr, 10);
}

}  // namespace

json interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return json::array();
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::map<std::string, json> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::string name = entry->ifa_name;
    json& one = found[name];
    if (one.is_null()) {
      one = {{"name", name},
             {"up", (entry->ifa_flags & IFF_UP) != 0},
             {"running", (entry->ifa_flags & IFF_RUNNING) != 0},
             {"kind", kindOf(name, entry->ifa_flags)},
             {"mtu", mtuOf(name)},
             {"addresses", json::array()}};
    }
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    one["addresses"].push_back({{"address", numeric(entry->ifa_addr, size)},
                                {"prefix", prefixLength(entry->ifa_netmask, family)}});
  }
  json result = json::array();
  for (auto& [name, one] : found) result.push_back(std::move(one));
  return result;
}

json resolved(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    return {{"name", name}, {"error", ::gai_strerror(error)}, {"again", error == EAI_AGAIN}};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  json addresses = json::array();
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const std::string text = numeric(entry->ai_addr, entry->ai_addrlen);
    if (std::find(addresses.begin(), addresses.end(), json(text)) == addresses.end()) {
      addresses.push_back(text);
    }
  }
  return {{"name", name}, {"addresses", addresses}};
}

}  // namespace farandole::launch::facts::fact_items
