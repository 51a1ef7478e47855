#include "launch/ssh/ssh_failure.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>

#include "launch/ssh/ssh_scene.h"

namespace farandole::launch::ssh {
namespace {

using Kind = SshFailure::Kind;
constexpr std::size_t kMostText = 64 << 10;
constexpr int kSshItself = 255;

struct Sign {
  std::string_view text;
  Kind kind;
};

// In the order of authority: what stands further up explains what stands further down, because ssh
// tells a consequence ("Permission denied") after its cause ("too open").
constexpr Sign kSigns[] = {
    {"No user exists for uid", Kind::kNoLocalUser},
    {"Bad owner or permissions on", Kind::kBadConfig},
    {"Bad configuration option", Kind::kBadConfig},
    {"bad configuration options", Kind::kBadConfig},
    {"no argument after keyword", Kind::kBadConfig},
    {"missing argument", Kind::kBadConfig},
    {"Can't open user config file", Kind::kBadConfig},
    {"unknown option --", Kind::kBadConfig},
    {"illegal option --", Kind::kBadConfig},
    {"Bad port", Kind::kBadConfig},
    {"hostname contains invalid characters", Kind::kBadHostName},
    {"Could not resolve hostname", Kind::kUnknownHost},
    {"REVOKED HOST KEY", Kind::kHostKeyRevoked},
    {"has changed and you have requested strict checking", Kind::kHostKeyChanged},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", Kind::kHostKeyChanged},
    {"host key is known for", Kind::kHostKeyUnknown},
    {"Host key verification failed", Kind::kHostKeyUnknown},
    {"Unable to negotiate with", Kind::kNoCommonCrypto},
    {"banner line contains invalid characters", Kind::kNotSsh},
    {"client sent invalid protocol identifier", Kind::kNotSsh},
    {"Bad remote protocol version identification", Kind::kNotSsh},
    {"are too open", Kind::kKeyModeTooOpen},
    {"Too many authentication failures", Kind::kTooManyKeys},
    {"sign_and_send_pubkey", Kind::kKeyUnusable},
    {"Load key", Kind::kKeyUnusable},
    {"Permission denied (", Kind::kKeyDenied},  // or kIdentityMissing, or kPasswordOnly: see below
    {"No supported authentication methods", Kind::kKeyDenied},
    {": Connection refused", Kind::kRefused},
    {"during banner exchange", Kind::kTimedOut},
    {": Connection timed out", Kind::kTimedOut},
    {": Operation timed out", Kind::kTimedOut},
    {": No route to host", Kind::kUnreachable},
    {": Network is unreachable", Kind::kUnreachable},
    {": Host is down", Kind::kUnreachable},
    {": Cannot assign requested address", Kind::kBlockedHere},
    {": Address family not supported", Kind::kBlockedHere},
    {": Operation not permitted", Kind::kBlockedHere},
    {": Permission denied", Kind::kBlockedHere},
    {": Invalid argument", Kind::kBlockedHere},
    {"not responding", Kind::kLinkDead},
    {"Not allowed at this time", Kind::kClosed},
    {"Exceeded MaxStartups", Kind::kClosed},
    {"exchange_identification", Kind::kClosed},
    {"Connection closed by", Kind::kClosed},
    {"Connection reset by", Kind::kClosed},
    {"closed by remote host", Kind::kClosed},
    {"Broken pipe", Kind::kClosed},
    {"Received disconnect from", Kind::kClosed},
    {"Disconnected from", Kind::kClosed},
};

// These tell of a connect(2) that failed only on the line that says so; a remote program may say
// the same words of its own.
bool isConnectError(std::string_view text) { return text.starts_with(": "); }

std::string lineTelling(const Sign& sign, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (line.find(sign.text) == line.npos) continue;
    if (isConnectError(sign.text) && line.find("connect to ") == line.npos &&
        line.find("connect(") == line.npos) {
      continue;
    }
    return line;
  }
  return {};
}

Kind refine(Kind kind, std::string_view line, const std::vector<std::string>& lines) {
  if (kind == Kind::kUnknownHost && line.find("Temporary failure") != line.npos) {
    return Kind::kResolverDown;
  }
  if (kind != Kind::kKeyDenied) return kind;
  const auto open = line.find('(');
  if (open != line.npos && line.find("publickey", open) == line.npos) return Kind::kPasswordOnly;
  if (!lineWith("not accessible: ", lines).empty()) return Kind::kIdentityMissing;
  return kind;
}

Kind kindOfExit(int code) {
  if (code == 127) return Kind::kCommandNotFound;
  if (code == 126) return Kind::kNotExecutable;
  return code == kSshItself ? Kind::kUnknown : Kind::kCommandFailed;
}

}  // namespace

SshFailure explainSshFailure(const SshTarget& target, const SshOptions& options, SshEnd end,
                             std::string_view stderrText) {
  if (stderrText.size() > kMostText) stderrText.remove_prefix(stderrText.size() - kMostText);
  const auto lines = cleanLines(stderrText);
  const std::string last = lines.empty() ? "" : lines.back();
  if (end.signal != 0) return advise(Kind::kKilled, makeScene(last, target, options, end, lines));
  if (end.exitCode == kSshItself) {
    for (const Sign& sign : kSigns) {
      const std::string line = lineTelling(sign, lines);
      if (line.empty()) continue;
      const Kind kind = refine(sign.kind, line, lines);
      return advise(kind, makeScene(line, target, options, end, lines));
    }
  }
  return advise(kindOfExit(end.exitCode), makeScene(last, target, options, end, lines));
}

SshFailure explainSshNotStarted(const SshOptions& options, int error) {
  SshFailure failure;
  failure.kind = Kind::kNoClient;
  failure.evidence = options.program + ": " + std::strerror(error);
  if (error == ENOENT) {
    failure.cause = "there is no ssh client '" + options.program + "' on this machine";
    failure.fix =
        "install one (Debian, Ubuntu: apt-get install openssh-client; RHEL, Fedora: dnf install "
        "openssh-clients) or name it with FARANDOLE_SSH=/path/to/ssh";
  } else {
    failure.cause = "the ssh client '" + options.program + "' cannot be started";
    failure.fix = "see that it may be executed: ls -l \"$(command -v " + options.program + ")\"";
  }
  return failure;
}

std::string_view sshFailureName(Kind kind) {
  constexpr std::array kNames = {
      "no-client",        "bad-config",       "bad-host-name",    "no-local-user",
      "unknown-host",     "resolver-down",    "refused",          "timed-out",
      "unreachable",      "blocked-here",     "not-ssh",          "no-common-crypto",
      "host-key-unknown", "host-key-changed", "host-key-revoked", "key-mode",
      "identity-missing", "key-unusable",     "too-many-keys",    "key-denied",
      "password-only",    "closed",           "link-dead",        "command-not-found",
      "not-executable",   "killed",           "command-failed",   "unknown"};
  static_assert(kNames.size() == static_cast<std::size_t>(Kind::kUnknown) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace farandole::launch::ssh
