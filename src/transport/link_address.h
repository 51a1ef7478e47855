// LinkAddress: where a rank listens; LinkCard: what a rank tells the others about itself.
//
// Numeric addresses only: nothing here asks a name server.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::transport {

struct LinkAddress {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};  // IPv4: the first four
  std::uint16_t port = 0;

  bool operator==(const LinkAddress&) const = default;

  // "10.0.0.1:4711", "[2001:db8::1]:4711"; without a port: port 0, and the brackets may be absent.
  static Result<LinkAddress> parse(std::string_view text);
  // An IPv4 address that was mapped into IPv6 comes out as IPv4.
  static Result<LinkAddress> fromSockaddr(const sockaddr* address);
  std::string text() const;
  // The length that bind and connect want.
  socklen_t toSockaddr(sockaddr_storage& out) const;

  bool isAny() const;
  bool isLoopback() const;
  bool isLinkLocal() const;
};

inline constexpr std::size_t kMaxLinkAddresses = 64;

// Exchanged through Bootstrap put and get.
struct LinkCard {
  std::string host;                    // only for messages
  std::vector<LinkAddress> addresses;  // the most useful first

  bool operator==(const LinkCard&) const = default;
};
std::string encodeLinkCard(const LinkCard& card);
Result<LinkCard> decodeLinkCard(std::string_view bytes);

// An address of an interface of this machine.
struct InterfaceAddress {
  std::string interface;
  LinkAddress address;  // port 0
  bool running = true;
};
// The addresses that other ranks should get, the most useful first: ordinary ones, then those of
// bridges that exist on many machines with the same address (docker0, virbr0), loopback only if
// nothing else is there; link-local ones and those of interfaces that are down never. only: if not
// empty, names of interfaces or addresses; the others get no other.
std::vector<LinkAddress> usefulAddresses(const std::vector<InterfaceAddress>& found,
                                         const std::vector<std::string>& only);
Result<std::vector<InterfaceAddress>> interfaceAddresses();

}  // namespace farandole::transport
