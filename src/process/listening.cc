#include "process/listening.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "base/fd.h"

namespace farandole::process {
namespace {

constexpr int kListen = 0x0a;  // TCP_LISTEN

// The answers to one request: whether the port is among them. Nothing if the kernel does not say.
std::optional<bool> readAnswers(int fd, int port) {
  bool found = false;
  alignas(nlmsghdr) char buffer[32 << 10];
  for (;;) {
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    auto left = static_cast<unsigned>(n);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE) return found;
      if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
      if (header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return std::nullopt;
      inet_diag_msg one;
      std::memcpy(&one, NLMSG_DATA(header), sizeof one);
      if (ntohs(one.id.idiag_sport) == port) found = true;
    }
  }
}

// Asks the kernel for listening sockets only: its tables in /proc hold all connections, and it goes
// through room for hundreds of thousands of them, which takes milliseconds.
std::optional<bool> askKernel(int family, int port) {
  const UniqueFd fd(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd) return std::nullopt;
  const timeval limit{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = static_cast<std::uint8_t>(family);
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = 1U << kListen;
  if (::send(fd.get(), &question, sizeof question, 0) != sizeof question) return std::nullopt;
  return readAnswers(fd.get(), port);
}

bool readTable(const char* table, int port) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    // "  0: 0100007F:7148 00000000:0000 0A …": number, own address, other address, state.
    unsigned own = 0;
    unsigned state = 0;
    if (std::sscanf(line.c_str(), " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &own, &state) ==
            2 &&
        own == static_cast<unsigned>(port) && state == kListen) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool isListening(int port) {
  const struct {
    int family;
    const char* table;
  } kWays[] = {{AF_INET, "/proc/self/net/tcp"}, {AF_INET6, "/proc/self/net/tcp6"}};
  for (const auto& [family, table] : kWays) {
    const std::optional<bool> told = askKernel(family, port);
    if (told ? *told : readTable(table, port)) return true;
  }
  return false;
}

}  // namespace farandole::process
