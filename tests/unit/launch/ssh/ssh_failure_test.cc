// Texts of OpenSSH that a test cannot provoke cheaply, as clients print them.
#include "launch/ssh/ssh_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::launch::ssh {
namespace {

using testing::HasSubstr;
using testing::Not;
using Kind = SshFailure::Kind;

SshFailure explain(const std::string& text, int exitCode = 255, SshTarget target = {"alpha", "", 0},
                   SshOptions options = {}) {
  return explainSshFailure(target, options, {exitCode, 0}, text);
}

struct Known {
  const char* text;
  Kind kind;
};

TEST(SshFailure, EachTextHasItsKind) {
  const Known cases[] = {
      {"ssh: Could not resolve hostname alpha: Name or service not known", Kind::kUnknownHost},
      {"ssh: Could not resolve hostname alpha: Temporary failure in name resolution",
       Kind::kResolverDown},
      {"ssh: connect to host alpha port 22: Connection timed out", Kind::kTimedOut},
      {"Connection timed out during banner exchange\r\n", Kind::kTimedOut},
      {"Connection to 10.0.0.7 port 22 timed out during banner exchange", Kind::kTimedOut},
      {"ssh: connect to host alpha port 22: No route to host", Kind::kUnreachable},
      {"ssh: connect to host alpha port 22: Network is unreachable", Kind::kUnreachable},
      {"ssh: connect to host fe80::1 port 22: Invalid argument", Kind::kBlockedHere},
      {"ssh: connect to host alpha port 22: Permission denied", Kind::kBlockedHere},
      {"kex_exchange_identification: Connection closed by remote host\n"
       "Connection closed by 127.0.0.1 port 22",
       Kind::kClosed},
      {"kex_exchange_identification: read: Connection reset by peer", Kind::kClosed},
      {"kex_exchange_identification: banner line contains invalid characters", Kind::kNotSsh},
      {"Connection closed by 10.0.0.7 port 2222", Kind::kClosed},
      {"Connection to alpha closed by remote host.", Kind::kClosed},
      {"Timeout, server alpha not responding.", Kind::kLinkDead},
      {"Received disconnect from 127.0.0.1 port 29222:2: Too many authentication failures",
       Kind::kTooManyKeys},
      {"dev@alpha: Permission denied (password,keyboard-interactive).", Kind::kPasswordOnly},
      {"Unable to negotiate with 10.0.0.7 port 22: no matching host key type found. Their offer: "
       "ssh-rsa",
       Kind::kNoCommonCrypto},
      {"Load key \"/k\": invalid format\ndev@alpha: Permission denied (publickey).",
       Kind::kKeyUnusable},
      {"sign_and_send_pubkey: signing failed for ED25519 \"/k\" from agent: agent refused "
       "operation\ndev@alpha: Permission denied (publickey).",
       Kind::kKeyUnusable},
      {"command-line: line 0: Bad configuration option: foo", Kind::kBadConfig},
      {"Bad owner or permissions on /home/dev/.ssh/config", Kind::kBadConfig},
      {"hostname contains invalid characters", Kind::kBadHostName},
      {"No user exists for uid 12345", Kind::kNoLocalUser},
      {"something new", Kind::kUnknown},
  };
  for (const Known& known : cases) {
    const SshFailure failure = explain(known.text);
    EXPECT_EQ(sshFailureName(failure.kind), sshFailureName(known.kind)) << known.text;
    EXPECT_FALSE(failure.cause.empty());
    EXPECT_FALSE(failure.fix.empty());
    EXPECT_FALSE(failure.evidence.empty());
    for (const std::string& line : {failure.cause, failure.fix, failure.evidence}) {
      EXPECT_THAT(line, Not(HasSubstr("\n")));
    }
  }
}

TEST(SshFailure, ABannerBeforeTheReasonDoesNotHideIt) {
  const SshFailure failure = explain(
      "Authorised users only. Connection refused to all others.\n"
      "dev@alpha: Permission denied (publickey,password).\n",
      255, {"alpha", "dev", 2222});
  EXPECT_EQ(failure.kind, Kind::kKeyDenied);
  EXPECT_THAT(failure.fix, HasSubstr("ssh-copy-id -p 2222 dev@alpha"));
}

TEST(SshFailure, TheRealAddressOfAnAliasIsUsedInCommands) {
  const SshFailure failure = explain(
      "No ED25519 host key is known for [10.0.0.7]:2200 and you have requested strict "
      "checking.\nHost key verification failed.");
  EXPECT_THAT(failure.fix, HasSubstr("ssh-keyscan -p 2200 10.0.0.7 >> "));
  EXPECT_THAT(failure.cause, HasSubstr("alpha"));
}

TEST(SshFailure, WhatTheHostSaysIsNoShellsBusiness) {
  const SshFailure failure = explain(
      "No RSA host key is known for [$(reboot)]:2;2 and you have requested strict checking.");
  EXPECT_THAT(failure.fix, HasSubstr("ssh-keyscan '$(reboot)' >>"));
}

TEST(SshFailure, TheDefaultPortNeedsNoOption) {
  const SshFailure failure = explain(
      "Offending ED25519 key in /home/dev/.ssh/known_hosts:3\n"
      "Host key for alpha has changed and you have requested strict checking.\n"
      "Host key verification failed.");
  EXPECT_EQ(failure.kind, Kind::kHostKeyChanged);
  EXPECT_THAT(failure.fix, HasSubstr("ssh-keygen -f /home/dev/.ssh/known_hosts -R alpha,"));
}

TEST(SshFailure, OnlyExit255IsTheClientsOwn) {
  const std::string text = "train.py: connect to db: Connection refused";
  EXPECT_EQ(explain(text, 1).kind, Kind::kCommandFailed);
  EXPECT_EQ(explain(text, 1).evidence, text);
  EXPECT_EQ(explain("bash: farandole: command not found", 127).kind, Kind::kCommandNotFound);
}

TEST(SshFailure, AKilledClientIsNamedWithItsSignal) {
  const SshFailure failure = explainSshFailure({"alpha", "", 0}, {}, {0, 9}, "");
  EXPECT_EQ(failure.kind, Kind::kKilled);
  EXPECT_THAT(failure.cause, HasSubstr("signal 9"));
}

TEST(SshFailure, ControlCharactersAndFloodsFromTheHostDoNotReachTheTerminal) {
  const SshFailure failure = explain("\x1b[31mred\x07 " + std::string(5000, 'x'));
  EXPECT_EQ(failure.evidence.find('\x1b'), std::string::npos);
  EXPECT_LE(failure.evidence.size(), 400U);
}

}  // namespace
}  // namespace farandole::launch::ssh
