#include "launch/ssh/ssh_ciphers.h"

#include <algorithm>
#include <array>

namespace farandole::launch::ssh {
namespace {

struct Order {
  std::string_view usual;
  std::string_view faster;
};

// The defaults of OpenSSH up to 9.8 and from 9.9 on.
constexpr std::array<Order, 2> kOrders{{
    {"chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,"
     "aes128-gcm@openssh.com,aes256-gcm@openssh.com",
     "aes128-gcm@openssh.com,aes256-gcm@openssh.com,"
     "chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr"},
    {"chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes256-gcm@openssh.com,"
     "aes128-ctr,aes192-ctr,aes256-ctr",
     "aes128-gcm@openssh.com,aes256-gcm@openssh.com,"
     "chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr"},
}};
constexpr std::string_view kSetting = "ciphers ";

}  // namespace

std::string fasterCiphers(std::string_view sshSettings) {
  while (!sshSettings.empty()) {
    const auto end = sshSettings.find('\n');
    const std::string_view line = sshSettings.substr(0, end);
    sshSettings.remove_prefix(end == sshSettings.npos ? sshSettings.size() : end + 1);
    if (!line.starts_with(kSetting)) continue;
    const std::string_view list = line.substr(kSetting.size());
    for (const Order& order : kOrders) {
      if (list == order.usual) return std::string(order.faster);
    }
    return {};
  }
  return {};
}

}  // namespace farandole::launch::ssh
