#include "transport/link_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/bytes.h"

namespace farandole::transport {
namespace {

constexpr std::uint32_t kCardMagic = 0x434c5246;  // "FRLC"
constexpr std::uint16_t kCardVersion = 1;
constexpr std::size_t kMaxHost = 255;
constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

Status notAnAddress(std::string_view text) {
  return Status::invalid("\"" + std::string(text) +
                         "\" is not a numeric address such as 10.0.0.1, 10.0.0.1:4711 or "
                         "[2001:db8::1]:4711");
}

bool parsePort(std::string_view text, std::uint16_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

}  // namespace

Result<LinkAddress> LinkAddress::parse(std::string_view text) {
  LinkAddress address;
  std::string_view host = text;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return notAnAddress(text);
    host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && (rest[0] != ':' || !parsePort(rest.substr(1), address.port))) {
      return notAnAddress(text);
    }
    address.v6 = true;
  } else if (std::count(text.begin(), text.end(), ':') > 1) {
    address.v6 = true;
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    if (!parsePort(text.substr(colon + 1), address.port)) return notAnAddress(text);
  }
  const std::string name(host);
  if (name.find('\0') != std::string::npos ||
      ::inet_pton(address.v6 ? AF_INET6 : AF_INET, name.c_str(), address.bytes.data()) != 1) {
    return notAnAddress(text);
  }
  return address;
}

Result<LinkAddress> LinkAddress::fromSockaddr(const sockaddr* from) {
  LinkAddress address;
  if (from != nullptr && from->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, from, sizeof in);
    std::memcpy(address.bytes.data(), &in.sin_addr, 4);
    address.port = ntohs(in.sin_port);
    return address;
  }
  if (from != nullptr && from->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, from, sizeof in);
    address.port = ntohs(in.sin6_port);
    if (std::memcmp(&in.sin6_addr, kMappedPrefix.data(), kMappedPrefix.size()) == 0) {
      std::memcpy(address.bytes.data(), in.sin6_addr.s6_addr + 12, 4);
      return address;
    }
    address.v6 = true;
    std::memcpy(address.bytes.data(), &in.sin6_addr, 16);
    return address;
  }
  return Status::invalid("neither an IPv4 nor an IPv6 address");
}

std::string LinkAddress::text() const {
  char name[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), name, sizeof name);
  const std::string host = v6 ? "[" + std::string(name) + "]" : std::string(name);
  return port == 0 ? (v6 ? std::string(name) : host) : host + ":" + std::to_string(port);
}

socklen_t LinkAddress::toSockaddr(sockaddr_storage& out) const {
  out = {};
  if (v6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, bytes.data(), 16);
    std::memcpy(&out, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  std::memcpy(&in.sin_addr, bytes.data(), 4);
  std::memcpy(&out, &in, sizeof in);
  return sizeof in;
}

bool LinkAddress::isAny() const {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool LinkAddress::isLoopback() const {
  if (!v6) return bytes[0] == 127;
  return bytes[15] == 1 &&
         std::all_of(bytes.begin(), bytes.begin() + 15, [](std::uint8_t b) { return b == 0; });
}

bool LinkAddress::isLinkLocal() const {
  return v6 ? bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 : bytes[0] == 169 && bytes[1] == 254;
}

std::string encodeLinkCard(const LinkCard& card) {
  std::string out;
  appendInteger(out, kCardMagic);
  appendInteger(out, kCardVersion);
  appendText(out, std::string_view(card.host).substr(0, kMaxHost));
  const std::size_t count = std::min(card.addresses.size(), kMaxLinkAddresses);
  appendInteger(out, static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const LinkAddress& address = card.addresses[i];
    appendInteger(out, static_cast<std::uint8_t>(address.v6 ? 6 : 4));
    appendInteger(out, address.port);
    for (std::size_t b = 0; b < (address.v6 ? 16u : 4u); ++b) {
      appendInteger(out, address.bytes[b]);
    }
  }
  return out;
}

Result<LinkCard> decodeLinkCard(std::string_view bytes) {
  ByteReader reader(bytes);
  const Status malformed = Status(Code::kMismatch, "a malformed list of a rank's addresses");
  if (reader.integer<std::uint32_t>() != kCardMagic ||
      reader.integer<std::uint16_t>() != kCardVersion) {
    return malformed;
  }
  LinkCard card;
  card.host = reader.text(kMaxHost);
  const std::uint32_t count = reader.count(1 + 2 + 4);
  if (count > kMaxLinkAddresses) return malformed;
  for (std::uint32_t i = 0; i < count; ++i) {
    LinkAddress address;
    const auto family = reader.integer<std::uint8_t>();
    if (family != 4 && family != 6) return malformed;
    address.v6 = family == 6;
    address.port = reader.integer<std::uint16_t>();
    for (std::size_t b = 0; b < (address.v6 ? 16u : 4u); ++b) {
      address.bytes[b] = reader.integer<std::uint8_t>();
    }
    if (address.port == 0 || address.isAny()) return malformed;
    card.addresses.push_back(address);
  }
  if (!reader.finished()) return malformed;
  return card;
}

}  // namespace farandole::transport
