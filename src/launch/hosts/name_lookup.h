// Names to addresses, with a limit for waiting.
//
// The resolver has none of its own: where no name server answers (a container without a network to
// it), it takes ten seconds and more for every name that /etc/hosts does not know, and a
// process that waits for it answers no other meanwhile.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace farandole::launch::hosts {

// What a name server that works needs, with a lost packet or two on a good day.
inline constexpr Duration kNameTime = std::chrono::seconds(3);

struct NameAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text;  // in numbers

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

struct NameAnswer {
  int error = 0;  // of getaddrinfo
  std::vector<NameAddress> addresses;
};

// The addresses for TCP connections to a name, or nothing if there was no answer by the deadline.
// An address in numbers asks nobody.
std::optional<NameAnswer> lookUpName(const std::string& name, int port, Deadline deadline);

// The first address of a name, in numbers; "" if it has none, or none within kNameTime.
std::string numericAddress(const std::string& name);

}  // namespace farandole::launch::hosts
