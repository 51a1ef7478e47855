#include "unit/launch/ssh/test_sshd.h"

#include <arpa/inet.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "process/bounded_command.h"

extern char** environ;

namespace farandole::testing_ssh {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int freePort() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

bool answers(int port) {
  for (int i = 0; i < 200; ++i) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return true;
    }
    ::usleep(10'000);
  }
  return false;
}

}  // namespace

TestSshd::~TestSshd() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void TestSshd::write(const std::string& name, const std::string& text, int mode) const {
  const std::string path = folder_ + "/" + name;
  std::ofstream(path) << text;
  ::chmod(path.c_str(), static_cast<mode_t>(mode));
}

std::string TestSshd::read(const std::string& name) const {
  std::stringstream text;
  text << std::ifstream(folder_ + "/" + name).rdbuf();
  return text.str();
}

bool TestSshd::makeKey(const std::string& name) {
  return process::runBounded(
             {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder_ + "/" + name},
             Deadline::after(std::chrono::seconds(5)))
      .succeeded();
}

bool TestSshd::start(const std::string& settings) {
  if (::access("/usr/sbin/sshd", X_OK) != 0) return false;
  char folder[] = "/tmp/farandole-sshd-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return false;
  folder_ = folder;
  if (::geteuid() == 0) ::mkdir("/run/sshd", 0755);  // where root's sshd separates its privileges
  if (!makeKey("host_key") || !makeKey("other_key") || !makeKey("user_key")) return false;
  write("authorized_keys", read("user_key.pub"));
  write("known_hosts", "");
  port_ = freePort();
  // First values count, so that the test's own come first.
  write("sshd_config", settings + "\nListenAddress 127.0.0.1\nPort " + std::to_string(port_) +
                           "\nHostKey " + folder_ + "/host_key\nPidFile none\nStrictModes no\n" +
                           "UsePAM no\nPasswordAuthentication no\n" +
                           "KbdInteractiveAuthentication no\nPermitRootLogin yes\n" +
                           "AuthorizedKeysFile " + folder_ + "/authorized_keys\n");
  write("client_config", "UserKnownHostsFile " + folder_ +
                             "/known_hosts\nGlobalKnownHostsFile /dev/null\nIdentityAgent none\n" +
                             "IdentityFile " + folder_ + "/user_key\n");
  write("ssh", "#!/bin/sh\nexec ssh -F " + folder_ + "/client_config \"$@\"\n", 0700);

  const std::string config = folder_ + "/sshd_config";
  const std::string log = folder_ + "/sshd.log";
  const char* argv[] = {"/usr/sbin/sshd", "-D", "-f", config.c_str(), "-E", log.c_str(), nullptr};
  if (::posix_spawn(&pid_, argv[0], nullptr, nullptr, const_cast<char**>(argv), environ) != 0) {
    pid_ = -1;
    return false;
  }
  return answers(port_);
}

launch::ssh::SshOptions TestSshd::options() const {
  launch::ssh::SshOptions options;
  options.program = folder_ + "/ssh";
  options.connectTimeoutSeconds = 5;
  return options;
}

void TestSshd::trustHost() {
  write("known_hosts", "[127.0.0.1]:" + std::to_string(port_) + " " + read("host_key.pub"));
}
void TestSshd::trustWrongKey() {
  write("known_hosts", "[127.0.0.1]:" + std::to_string(port_) + " " + read("other_key.pub"));
}
void TestSshd::trustNobody() { write("known_hosts", ""); }

}  // namespace farandole::testing_ssh
