// The texts of the installed ssh client, provoked with a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "launch/ssh/ssh_failure.h"
#include "process/bounded_command.h"
#include "unit/launch/ssh/test_sshd.h"

namespace farandole::launch::ssh {
namespace {

using process::CommandEnd;

using testing::HasSubstr;
using testing_ssh::TestSshd;
using Kind = SshFailure::Kind;

class SshReal : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<TestSshd>();
    started_ = server_->start();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!started_) GTEST_SKIP() << "no OpenSSH server on this machine";
    server_->trustHost();
  }

  static CommandEnd run(const SshTarget& target, const SshOptions& options,
                        const std::string& command) {
    return process::runBounded(sshArguments(target, options, command),
                               Deadline::after(std::chrono::seconds(10)));
  }
  static SshFailure fail(const SshTarget& target, const SshOptions& options,
                         const std::string& command = "true") {
    const CommandEnd end = run(target, options, command);
    EXPECT_FALSE(end.succeeded());
    EXPECT_FALSE(end.timedOut);
    return explainSshFailure(target, options, {end.exitCode, end.signal}, end.err);
  }
  static std::string port() { return std::to_string(server_->port()); }

  static std::unique_ptr<TestSshd> server_;
  static bool started_;
};
std::unique_ptr<TestSshd> SshReal::server_;
bool SshReal::started_ = false;

TEST_F(SshReal, AScriptRunsAndItsExitCodeComesBack) {
  auto command = remoteShell("echo \"$((1+1))\"; exit 5");
  ASSERT_TRUE(command.ok());
  const CommandEnd end = run(server_->target(), server_->options(), *command);
  EXPECT_EQ(end.out, "2\n") << end.err;
  EXPECT_EQ(end.exitCode, 5);
}

TEST_F(SshReal, HostKeyUnknownThenAccepted) {
  server_->trustNobody();
  const SshFailure failure = fail(server_->target(), server_->options());
  EXPECT_EQ(failure.kind, Kind::kHostKeyUnknown) << failure.evidence;
  EXPECT_THAT(failure.fix, HasSubstr("ssh-keyscan -p " + port() + " 127.0.0.1 >> "));
  EXPECT_THAT(failure.fix, HasSubstr("--accept-new-host-keys"));
  SshOptions accepting = server_->options();
  accepting.acceptNewHostKeys = true;
  EXPECT_TRUE(run(server_->target(), accepting, "true").succeeded());
  EXPECT_TRUE(run(server_->target(), server_->options(), "true").succeeded()) << "remembered";
}

TEST_F(SshReal, HostKeyChangedAlsoWhenNewOnesAreAccepted) {
  server_->trustWrongKey();
  SshOptions accepting = server_->options();
  accepting.acceptNewHostKeys = true;
  const SshFailure failure = fail(server_->target(), accepting);
  EXPECT_EQ(failure.kind, Kind::kHostKeyChanged) << failure.evidence;
  EXPECT_THAT(failure.fix, HasSubstr("ssh-keygen -f " + server_->folder() +
                                     "/known_hosts -R '[127.0.0.1]:" + port() + "'"));
}

TEST_F(SshReal, PublicKeyDenied) {
  const std::string keys = server_->folder() + "/authorized_keys";
  std::filesystem::rename(keys, keys + ".away");
  const SshFailure failure = fail(server_->target(), server_->options());
  std::filesystem::rename(keys + ".away", keys);
  EXPECT_EQ(failure.kind, Kind::kKeyDenied) << failure.evidence;
  EXPECT_THAT(failure.fix, HasSubstr("authorized_keys"));
}

TEST_F(SshReal, PrivateKeyTooOpen) {
  ::chmod(server_->key().c_str(), 0644);
  const SshFailure failure = fail(server_->target(), server_->options());
  ::chmod(server_->key().c_str(), 0600);
  EXPECT_EQ(failure.kind, Kind::kKeyModeTooOpen) << failure.evidence;
  EXPECT_EQ(failure.fix, "chmod 600 " + server_->key());
}

TEST_F(SshReal, IdentityFileMissing) {
  std::filesystem::rename(server_->key(), server_->key() + ".away");
  SshOptions options = server_->options();
  options.identityFile = server_->folder() + "/no such key";
  const SshFailure failure = fail(server_->target(), options);
  std::filesystem::rename(server_->key() + ".away", server_->key());
  EXPECT_EQ(failure.kind, Kind::kIdentityMissing) << failure.evidence;
  EXPECT_THAT(failure.fix, HasSubstr("'" + options.identityFile + "'"));
}

TEST_F(SshReal, ConnectionRefused) {
  SshTarget target = server_->target();
  target.port = 1;
  const SshFailure failure = fail(target, server_->options());
  EXPECT_EQ(failure.kind, Kind::kRefused) << failure.evidence;
  EXPECT_THAT(failure.cause, HasSubstr("port 1 of 127.0.0.1"));
}

TEST_F(SshReal, CommandNotFoundAndNotExecutable) {
  EXPECT_EQ(fail(server_->target(), server_->options(), "no-such-command-here").kind,
            Kind::kCommandNotFound);
  EXPECT_EQ(fail(server_->target(), server_->options(), "/etc/passwd").kind, Kind::kNotExecutable);
}

TEST_F(SshReal, ACommandThatWasKilledSaysNothing) {
  const SshFailure failure = fail(server_->target(), server_->options(), "kill -9 $$");
  EXPECT_EQ(failure.kind, Kind::kUnknown);
  EXPECT_THAT(failure.cause, HasSubstr("killed by a signal"));
}

TEST_F(SshReal, ABadLineOfTheConfiguration) {
  SshOptions options = server_->options();
  const std::string config = server_->folder() + "/bad_config";
  std::ofstream(config) << "Host *\n  Compresion yes\n";
  options.program = server_->folder() + "/bad_ssh";
  std::ofstream(options.program) << "#!/bin/sh\nexec ssh -F " << config << " \"$@\"\n";
  ::chmod(options.program.c_str(), 0700);
  const SshFailure failure = fail(server_->target(), options);
  EXPECT_EQ(failure.kind, Kind::kBadConfig);
  EXPECT_THAT(failure.evidence, HasSubstr(config + ": line 2: Bad configuration option"));
}

TEST_F(SshReal, NoClientAtAll) {
  SshOptions options;
  options.program = "/no/such/ssh";
  const CommandEnd end = run(server_->target(), options, "true");
  ASSERT_NE(end.startError, 0);
  const SshFailure failure = explainSshNotStarted(options, end.startError);
  EXPECT_EQ(failure.kind, Kind::kNoClient);
  EXPECT_THAT(failure.fix, HasSubstr("FARANDOLE_SSH"));
}

}  // namespace
}  // namespace farandole::launch::ssh
