// The generated files against the system's own ssh and sshd.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "init/setup.h"
#include "init/tool.h"
#include "unit/init/scratch.h"

extern char** environ;

namespace farandole::init {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
constexpr const char* kSshd = "/usr/sbin/sshd";

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
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 0;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

bool answers(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(port);
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// An sshd that is ended, by its process number, with the object.
class Sshd {
 public:
  Sshd(const std::string& config, const std::string& log) {
    std::vector<std::string> words{kSshd, "-D", "-f", config, "-E", log};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (::posix_spawn(&pid_, kSshd, nullptr, nullptr, argv.data(), environ) != 0) pid_ = 0;
  }
  Sshd(const Sshd&) = delete;
  Sshd& operator=(const Sshd&) = delete;
  ~Sshd() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    for (int i = 0; i < 200; ++i) {
      if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
      std::this_thread::sleep_for(10ms);
    }
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  bool waitFor(int port) const {
    for (int i = 0; i < 500; ++i) {
      if (answers(port)) return true;
      if (pid_ <= 0 || ::waitpid(pid_, nullptr, WNOHANG) != 0) return false;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

 private:
  mutable pid_t pid_ = 0;
};

// In the home folder: sshd distrusts keys below a folder that others can write, such as /tmp.
std::string home() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_dir : "/nonexistent";
}

class InitSshd : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kSshd, X_OK) != 0) GTEST_SKIP() << "no sshd here";
    if (::access(home().c_str(), W_OK) != 0) GTEST_SKIP() << "the home folder is not writable";
    if (::geteuid() == 0) std::filesystem::create_directories("/run/sshd");
    scratch_ = std::make_unique<Scratch>(home());
    request_ = sampleRequest(scratch_->path());
    const passwd* entry = ::getpwuid(::geteuid());
    ASSERT_NE(entry, nullptr);
    request_.spec.user = entry->pw_name;
    port_ = freePort();
    request_.spec.workers = {{"worker1", "127.0.0.1", 1, port_}};
    request_.spec.sshFolder = file("ssh_worker/worker1");
    request_.spec.interface = "eth7";
    auto done = setUp(request_);
    ASSERT_TRUE(done.ok()) << done.status().message();
  }

  std::string file(const std::string& name) const { return *scratch_ / name; }

  // As a user would type it, with no terminal to ask at.
  ToolResult ssh(std::vector<std::string> more) {
    std::vector<std::string> words{"ssh", "-F", file("ssh_launcher/config")};
    words.insert(words.end(), more.begin(), more.end());
    auto result = runTools({words}, 30s);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : ToolResult{-1, "", ""};
  }

  std::unique_ptr<Scratch> scratch_;
  SetupRequest request_;
  int port_ = 0;
};

TEST_F(InitSshd, TheLauncherGetsInAndNobodyElse) {
  Sshd sshd(file("ssh_worker/worker1/sshd_config"), file("log"));
  ASSERT_TRUE(sshd.waitFor(port_)) << slurp(file("log"));

  auto result = ssh({"worker1", "true"});
  EXPECT_EQ(result.exitCode, 0) << result.errors << slurp(file("log"));
  EXPECT_EQ(result.errors, "");
  result = ssh({"worker1", "echo $FI_TCP_IFACE"});
  EXPECT_EQ(result.output, "eth7\n");

  // Another key.
  const std::string stranger = file("stranger");
  ASSERT_TRUE(
      runTools({{"ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", stranger}}, 10s).ok());
  auto refused = runTools({{"ssh", "-F", "/dev/null", "-i", stranger, "-o", "IdentitiesOnly=yes",
                            "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o",
                            "UserKnownHostsFile=" + file("ssh_launcher/known_hosts"), "-p",
                            std::to_string(port_), request_.spec.user + "@127.0.0.1", "true"}},
                          30s);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->exitCode, 255);
  EXPECT_THAT(refused->errors, HasSubstr("Permission denied (publickey)"));

  // A server with other host keys than the set-up's.
  auto keys = slurp(file("ssh_launcher/id_ed25519.pub"));
  spill(file("ssh_launcher/known_hosts"),
        "[127.0.0.1]:" + std::to_string(port_) + " " + keys.substr(0, keys.rfind(' ')) + "\n");
  result = ssh({"worker1", "true"});
  EXPECT_EQ(result.exitCode, 255);
  EXPECT_THAT(result.errors, HasSubstr("Host key verification failed"));
}

TEST_F(InitSshd, AServerThatIsNotThereIsNoHang) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = ssh({"worker1", "true"});
  EXPECT_EQ(result.exitCode, 255);
  EXPECT_THAT(result.errors, HasSubstr("refused"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
}

TEST_F(InitSshd, TheConfigurationIsValidWithDebugToo) {
  request_.spec.debug = true;
  request_.force = true;
  ASSERT_TRUE(setUp(request_).ok());
  auto result = runTools({{kSshd, "-t", "-f", file("ssh_worker/worker1/sshd_config")}}, 10s);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exitCode, 0) << result->errors;
  EXPECT_EQ(result->errors, "");
}

}  // namespace
}  // namespace farandole::init
