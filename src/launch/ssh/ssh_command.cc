#include "launch/ssh/ssh_command.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "launch/ssh/templates.h"

namespace farandole::launch::ssh {
namespace {

// ssh gives up when this many questions, this many seconds apart, went unanswered and one more
// interval has passed: 9 s.
constexpr int kAliveSeconds = 3;
constexpr int kAliveQuestions = 2;
constexpr std::size_t kLongestHost = 255;
constexpr std::size_t kLongestUser = 255;

bool isPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// '%' only as the zone of an IPv6 address; '@' in users of directory services.
bool consistsOf(std::string_view text, std::string_view alsoAllowed) {
  return std::all_of(text.begin(), text.end(), [alsoAllowed](char c) {
    return isPlain(c) || alsoAllowed.find(c) != std::string_view::npos;
  });
}

Status checkPort(int port) {
  if (port >= 0 && port <= 65535) return {};
  return Status::invalid("an ssh port is a number from 1 to 65535, not " + std::to_string(port));
}

}  // namespace

std::string sshProgram() {
  const char* named = std::getenv("FARANDOLE_SSH");
  return named != nullptr && *named != '\0' ? named : "ssh";
}

std::string sshConfigFile() {
  const char* named = std::getenv("FARANDOLE_SSH_CONFIG");
  return named != nullptr ? named : "";
}

std::string trustedPathFunction() { return joinLines(templates::kTrustedPath); }

std::string bareHost(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

int portAsked(const SshTarget& target, const SshOptions& options) {
  return target.port != 0 ? target.port : options.port;
}

Status checkSshTarget(const SshTarget& target, const SshOptions& options) {
  const std::string host = bareHost(target.host);
  if (host.empty()) return Status::invalid("a host has an empty name");
  if (host.size() > kLongestHost || host.front() == '-' || !consistsOf(host, "._-:%")) {
    return Status::invalid("'" + host + "' cannot be the name of a host");
  }
  if (target.user.size() > kLongestUser || target.user.starts_with('-') ||
      !consistsOf(target.user, "._-+@")) {
    return Status::invalid("'" + target.user + "' cannot be the user on " + host);
  }
  FARANDOLE_RETURN_IF_ERROR(checkPort(target.port));
  return checkPort(options.port);
}

std::vector<std::string> sshArguments(const SshTarget& target, const SshOptions& options,
                                      const std::string& remoteCommand) {
  std::vector<std::string> words{options.program, "-T", "-x", "-e", "none"};
  const auto set = [&words](const std::string& setting) {
    words.push_back("-o");
    words.push_back(setting);
  };
  if (!options.configFile.empty()) words.insert(words.end(), {"-F", options.configFile});
  set("BatchMode=yes");
  set("ConnectTimeout=" + std::to_string(std::max(1, options.connectTimeoutSeconds)));
  set("ConnectionAttempts=1");
  set("ServerAliveInterval=" + std::to_string(kAliveSeconds));
  set("ServerAliveCountMax=" + std::to_string(kAliveQuestions));
  // A master that is there may be used; one that we started would live on as our child.
  set("ControlMaster=no");
  set(std::string("StrictHostKeyChecking=") + (options.acceptNewHostKeys ? "accept-new" : "yes"));
  set("LogLevel=INFO");
  // Settings of a person's interactive sessions that would break ours.
  set("RemoteCommand=none");
  set("ClearAllForwardings=yes");
  if (!target.ciphers.empty()) set("Ciphers=" + target.ciphers);
  if (const int port = portAsked(target, options); port != 0) {
    words.insert(words.end(), {"-p", std::to_string(port)});
  }
  if (!options.identityFile.empty()) {
    words.insert(words.end(), {"-i", options.identityFile});
    // Otherwise an ssh agent full of other keys uses up the attempts that the host allows
    // (MaxAuthTries).
    set("IdentitiesOnly=yes");
  }
  if (!target.user.empty()) words.insert(words.end(), {"-l", target.user});
  words.insert(words.end(), {"--", bareHost(target.host), remoteCommand});
  return words;
}

std::vector<std::string> sshQuestion(const SshTarget& target, const SshOptions& options) {
  std::vector<std::string> words = sshArguments(target, options, "true");
  words.insert(words.begin() + 1, "-G");
  return words;
}

Result<std::string> remoteShell(std::string_view script) {
  const auto refused = [script](std::string_view what) {
    return Status::invalid("a script for a remote shell must not contain " + std::string(what) +
                           ": " + std::string(script.substr(0, 80)));
  };
  if (script.find('\'') != script.npos) return refused("a single quote");
  if (script.find('!') != script.npos) return refused("an exclamation mark");
  if (script.find_first_of(std::string_view("\n\r\0", 3)) != script.npos) {
    return refused("a line end or a zero byte");
  }
  if (script.find("\\\\") != script.npos || script.ends_with('\\')) {
    return refused("two backslashes in a row, or one at its end");
  }
  return "exec /bin/sh -c '" + std::string(script) + "'";
}

}  // namespace farandole::launch::ssh
