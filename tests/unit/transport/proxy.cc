#include "unit/transport/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace farandole::test {
namespace {

sockaddr_in local(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool writeAll(int fd, const std::vector<std::uint8_t>& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

Proxy::Proxy(std::uint16_t port, Tamper tamper) : target_(port), tamper_(std::move(tamper)) {
  listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = local(0);
  socklen_t length = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  stop_ = true;
  thread_.join();
}

void Proxy::run() {
  while (!stop_) {
    pollfd entry{listener_.get(), POLLIN, 0};
    if (::poll(&entry, 1, 10) <= 0) continue;
    const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const UniqueFd server = connectPlain(target_);
    if (client && server) pass(client.get(), server.get());
  }
}

void Proxy::pass(int client, int server) {
  std::array<std::uint64_t, 2> counts{};
  const std::array<int, 2> fds{client, server};
  std::vector<std::uint8_t> bytes;
  while (!stop_) {
    std::array<pollfd, 2> entries{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    if (::poll(entries.data(), entries.size(), 10) <= 0) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (entries[i].revents == 0) continue;
      bytes.resize(65536);
      const ssize_t got = ::recv(fds[i], bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      bytes.resize(static_cast<std::size_t>(got));
      const std::uint64_t offset = counts[i];
      counts[i] += static_cast<std::uint64_t>(got);
      if (tamper_) tamper_(i == 0, offset, bytes);
      if (!writeAll(fds[1 - i], bytes)) return;
    }
  }
}

UniqueFd connectPlain(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = local(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fd.reset();
  }
  return fd;
}

bool hungUp(int fd, int milliseconds) {
  std::array<char, 4096> bytes{};
  pollfd entry{fd, POLLIN, 0};
  while (::poll(&entry, 1, milliseconds) > 0) {
    if (::recv(fd, bytes.data(), bytes.size(), 0) <= 0) return true;
  }
  return false;
}

int openDescriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

void allowDescriptors(unsigned long count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

long residentKiB() {
#if defined(FARANDOLE_ASAN) || defined(FARANDOLE_TSAN)
  return 0;
#else
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  file >> size >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
#endif
}

}  // namespace farandole::test
