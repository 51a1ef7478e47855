// The addresses on which this process listens for TCP, as the kernel sees them.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <string>
#include <vector>

#include "transport/link_address.h"

namespace farandole::test {

inline std::vector<transport::LinkAddress> listeningAddresses() {
  std::vector<transport::LinkAddress> found;
  std::vector<int> fds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    fds.push_back(std::stoi(entry.path().filename()));
  }
  for (const int fd : fds) {
    int listening = 0;
    socklen_t length = sizeof listening;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || listening == 0) {
      continue;
    }
    sockaddr_storage storage{};
    length = sizeof storage;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length);
    auto address =
        transport::LinkAddress::fromSockaddr(reinterpret_cast<const sockaddr*>(&storage));
    if (address.ok()) found.push_back(*address);
  }
  return found;
}

}  // namespace farandole::test
