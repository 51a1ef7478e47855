#include "transport/congestion.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fstream>
#include <string_view>

#include "base/fd.h"

namespace farandole::transport {
namespace {

bool set(int fd, std::string_view name) {
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                      static_cast<socklen_t>(name.size())) == 0;
}

bool paces(int fd) {
  char name[32] = "";
  socklen_t length = sizeof name - 1;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return false;
  return std::string_view(name).starts_with("bbr");
}

}  // namespace

Status checkCongestion(const std::string& wish) {
  if (wish == kAutoCongestion || wish == kSystemCongestion) return {};
  const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (probe && set(probe.get(), wish)) return {};
  std::string allowed;
  std::ifstream file("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  for (std::string each; file >> each;) allowed += ", " + each;
  return Status::invalid("FARANDOLE_CONGESTION=" + wish +
                         ": this machine does not allow it; possible are auto, system" + allowed);
}

void chooseCongestion(int fd, const std::string& wish) {
  if (wish == kSystemCongestion) return;
  if (wish != kAutoCongestion) {
    set(fd, wish);
  } else if (paces(fd) && !set(fd, "cubic")) {
    set(fd, "reno");
  }
}

}  // namespace farandole::transport
