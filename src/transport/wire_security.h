// What protects the bytes between two machines once both sides have proved that they know the job's
// secret. Both sides must have been given the same value.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace farandole::transport {

enum class WireSecurity : std::uint16_t {
  kEncrypt = 1,  // TLS records: others can neither read nor alter anything
  kIntegrity =
      2,  // contents in clear, a MAC over every frame: others cannot alter, repeat or reorder
  kHandshake = 3,  // contents in clear: only for networks that are trusted
};

// "encrypt", "integrity", "handshake"
std::string_view wireSecurityName(WireSecurity mode);
Result<WireSecurity> parseWireSecurity(std::string_view name);

}  // namespace farandole::transport
