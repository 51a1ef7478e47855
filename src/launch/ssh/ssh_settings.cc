#include "launch/ssh/ssh_settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "base/clock.h"
#include "base/thread.h"
#include "crypto/aes_instructions.h"
#include "process/bounded_command.h"

namespace farandole::launch::ssh {
namespace {

constexpr auto kTime = std::chrono::seconds(2);
constexpr std::size_t kAtOnce = 8;

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

SshRoute sshRoute(const std::string& settings, const std::string& name) {
  SshRoute route;
  route.host = name;
  std::istringstream lines(settings);
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    const std::string key = line.substr(0, space);
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "hostname") route.host = value;
    if (key == "port") route.port = std::atoi(value.c_str());
    if (key == "proxyjump" || key == "proxycommand") route.proxied = value != "none";
  }
  return route;
}

void learnSettings(const std::vector<SshTarget*>& targets, const SshOptions& options) {
  const Deadline deadline = Deadline::after(kTime);
  inParallel(targets.size(), kAtOnce, [&](std::size_t i) {
    SshTarget& target = *targets[i];
    if (!checkSshTarget(target, options).ok()) return;
    const process::CommandEnd settings =
        process::runBounded(sshQuestion(target, options), deadline);
    if (!settings.succeeded()) return;
    target.reachedAt = sshRoute(settings.out, bareHost(target.host)).host;
    if (crypto::hasAesInstructions()) target.ciphers = fasterCiphers(settings.out);
  });
}

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
