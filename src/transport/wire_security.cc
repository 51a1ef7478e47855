#include "transport/wire_security.h"

#include <array>
#include <string>

namespace farandole::transport {

std::string_view wireSecurityName(WireSecurity mode) {
  switch (mode) {
    case WireSecurity::kEncrypt: return "encrypt";
    case WireSecurity::kIntegrity: return "integrity";
    case WireSecurity::kHandshake: return "handshake";
  }
  return "unknown";
}

Result<WireSecurity> parseWireSecurity(std::string_view name) {
  for (const WireSecurity mode :
       {WireSecurity::kEncrypt, WireSecurity::kIntegrity, WireSecurity::kHandshake}) {
    if (name == wireSecurityName(mode)) return mode;
  }
  return Status::invalid("wire security \"" + std::string(name) +
                         "\": expected encrypt, integrity or handshake");
}

}  // namespace farandole::transport
