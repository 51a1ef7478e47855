#include "launch/ssh/ssh_settings.h"

#include <cstdlib>
#include <sstream>

#include "base/clock.h"
#include "base/thread.h"
#include "crypto/aes_instructions.h"
#include "launch/ssh/ssh_ciphers.h"
#include "process/bounded_command.h"

namespace farandole::launch::ssh {
namespace {

constexpr auto kTime = std::chrono::seconds(2);
constexpr std::size_t kAtOnce = 8;

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

}  // namespace farandole::launch::ssh
