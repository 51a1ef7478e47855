#include "launch/remote/ssh_advice.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace farandole::ssh_advice {
namespace {

using Kind = SshFailure::Kind;

// The text between two marks of a line; empty if it has not both.
std::string between(std::string_view line, std::string_view before, std::string_view after) {
  const auto begin = line.find(before);
  if (begin == line.npos) return {};
  const auto from = begin + before.size();
  const auto to = after.empty() ? line.size() : line.find(after, from);
  return to == line.npos ? std::string() : std::string(line.substr(from, to - from));
}

std::string lineWith(std::string_view text, const Case& what) {
  for (const std::string_view line : what.lines) {
    if (line.find(text) != line.npos) return std::string(line);
  }
  return {};
}

// Where ssh really went: ssh_config may have changed both.
struct Place {
  std::string host;
  std::string port;  // empty: the default
};

// "[host]:port" or "host", as known_hosts writes it.
Place fromKnownHostsName(const std::string& name) {
  if (!name.starts_with('[')) return {name, ""};
  return {between(name, "[", "]"), between(name, "]:", "")};
}

Place placeOf(std::string_view line, const Case& what) {
  const int asked = portAsked(what.target, what.options);
  Place place{bareHost(what.target.host), asked != 0 ? std::to_string(asked) : ""};
  if (const auto host = between(line, "connect to host ", " port "); !host.empty()) {
    place = {host, between(line, " port ", ":")};
  } else if (const auto known = between(lineWith("host key is known for ", what),
                                        "host key is known for ", " and you have");
             !known.empty()) {
    place = fromKnownHostsName(known);
  } else if (const auto changed =
                 between(lineWith("Host key for ", what), "Host key for ", " has changed");
             !changed.empty()) {
    place = fromKnownHostsName(changed);
  }
  return place;
}

std::string portOption(const Place& place) {
  return place.port.empty() || place.port == "22" ? "" : "-p " + place.port + " ";
}

std::string portText(const Place& place) { return place.port.empty() ? "22" : place.port; }

// user@host for a command: the user whom ssh named, else the one that was asked for.
std::string login(std::string_view line, const Case& what) {
  const std::string denied = between(line, "", ": Permission denied");
  if (denied.find('@') != denied.npos && denied.find(' ') == denied.npos) return denied;
  const std::string& user = what.target.user;
  return (user.empty() ? "" : user + "@") + bareHost(what.target.host);
}

std::string knownHostsFile(const Case& what) {
  const std::string offending = between(lineWith("Offending ", what), " key in ", "");
  return offending.substr(0, offending.rfind(':'));
}

std::string configAdvice(std::string_view line) {
  if (line.find("command-line") != line.npos || line.find("option --") != line.npos) {
    return "this ssh client is older than OpenSSH 7.6 or no OpenSSH; see ssh -V, and name another "
           "one with FARANDOLE_SSH=/path/to/ssh";
  }
  if (const auto file = between(line, "Bad owner or permissions on ", ""); !file.empty()) {
    return "chown \"$(id -u)\" " + shellWord(file) + " && chmod 600 " + shellWord(file);
  }
  if (line.find("Bad port") != line.npos) return "give a port from 1 to 65535";
  return "correct the file and line that ssh names, then try: ssh -G HOST";
}

std::string keyDeniedAdvice(std::string_view line, const Case& what, const Place& place) {
  const std::string who = login(line, what);
  const std::string& key = what.options.identityFile;
  const std::string pub =
      key.empty() ? "" : "-i " + shellWord(key.ends_with(".pub") ? key : key + ".pub") + " ";
  const bool password = line.find("password") != line.npos || line.find("keyboard") != line.npos;
  if (password) return "ssh-copy-id " + portOption(place) + pub + who;
  return "append your public key to ~/.ssh/authorized_keys of " + who +
         " by another way in (then there: chmod 700 ~/.ssh; chmod 600 ~/.ssh/authorized_keys), or "
         "load the right key: ssh-add " +
         (key.empty() ? "KEYFILE" : shellWord(key));
}

}  // namespace

std::vector<std::string_view> cleanLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find_first_of("\r\n");
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) {
      line.remove_suffix(1);
    }
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string shellWord(const std::string& word) {
  bool plain = !word.empty();
  for (const char c : word) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./~@%+=:,", c));
  }
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

SshFailure advise(Kind kind, std::string_view line, const Case& what) {
  SshFailure failure;
  failure.kind = kind;
  for (const char c : line.substr(0, 400)) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) failure.evidence += c;
  }
  const std::string name = bareHost(what.target.host);
  const Place place = placeOf(line, what);
  const std::string port = portText(place);
  const std::string at = name + " (port " + port + ")";
  const std::string& key = what.options.identityFile;
  std::string& cause = failure.cause;
  std::string& fix = failure.fix;
  switch (kind) {
    case Kind::kNoClient:
      cause = "there is no ssh client on this machine";
      fix = "apt-get install openssh-client";
      break;
    case Kind::kBadConfig:
      cause = "ssh refuses its configuration or an option";
      fix = configAdvice(line);
      break;
    case Kind::kBadHostName:
      cause = "'" + name + "' is no name that ssh accepts for a host";
      fix = "correct it in -H or in the hostfile: NAME, USER@NAME or an address";
      break;
    case Kind::kNoLocalUser:
      cause = "this process's user id has no entry in /etc/passwd, without which ssh does not run";
      fix =
          "echo \"me:x:$(id -u):$(id -g)::$HOME:/bin/sh\" >> /etc/passwd (when the image is "
          "built, or with docker run -u of a user that the image has)";
      break;
    case Kind::kUnknownHost:
      cause = "the name " + name + " has no address here";
      fix = "getent hosts " + name + " must print an address: correct the name, add it to " +
            "/etc/hosts, or give it a HostName in ~/.ssh/config";
      break;
    case Kind::kResolverDown:
      cause = "the name server did not answer for " + name;
      fix = "try again in a moment; see /etc/resolv.conf, and: getent hosts " + name;
      break;
    case Kind::kRefused:
      cause = "nothing listens on port " + port + " of " + name;
      fix = "start sshd there, or say its port with -p PORT (or " + name +
            "'s Port in ~/.ssh/config); on the host: ss -ltn | grep :" + port;
      break;
    case Kind::kTimedOut:
      if (line.find("banner") != line.npos) {
        cause = "port " + port + " of " + name + " takes connections, but no ssh server answers";
        fix =
            "see whether sshd runs behind that port (a proxy or a published port may accept for "
            "it), or say the right one with -p PORT";
      } else {
        cause = "no answer from port " + port + " of " + name + ": filtered, or the host is off";
        fix =
            "open the port in the firewall (security group, network policy) or use the address "
            "of a network that both share; try: nc -vz -w 5 " +
            place.host + " " + port;
      }
      break;
    case Kind::kUnreachable:
      cause = "no route from here to " + at;
      fix = "ip route get \"$(getent ahosts " + place.host +
            " | awk 'NR==1{print $1}')\" shows the way taken; use an address of a network that "
            "both share";
      break;
    case Kind::kBlockedHere:
      cause = "this machine does not let ssh connect to " + at;
      fix =
          "use an address of a family this machine has (ip addr), and see sandbox and SELinux "
          "rules: ausearch -m avc -ts recent";
      break;
    case Kind::kNotSsh:
      cause = "what listens on port " + port + " of " + name + " is no ssh server";
      fix = "say sshd's port with -p PORT";
      break;
    case Kind::kNoCommonCrypto:
      cause = name + "'s ssh server and this client have no algorithm in common";
      fix = "update the older one; for a host you trust, ~/.ssh/config: Host " + name +
            " with HostKeyAlgorithms +ssh-rsa and PubkeyAcceptedAlgorithms +ssh-rsa";
      break;
    case Kind::kHostKeyUnknown:
      cause = "the key of " + at + " is not known here, so it could be anybody";
      fix = "ssh-keyscan " + portOption(place) + place.host +
            " >> ~/.ssh/known_hosts and compare ssh-keygen -lf ~/.ssh/known_hosts with the host's "
            "own; or, on a network you trust, --accept-new-host-keys";
      break;
    case Kind::kHostKeyChanged: {
      const std::string file = knownHostsFile(what);
      const std::string entry =
          portOption(place).empty() ? place.host : "[" + place.host + "]:" + port;
      cause = "the key of " + at +
              " is NOT the one known here: the host was reinstalled, or "
              "somebody stands between";
      fix = "find out why first; if it was reinstalled: ssh-keygen " +
            (file.empty() ? "" : "-f " + shellWord(file) + " ") + "-R " + shellWord(entry) +
            ", then ssh-keyscan " + portOption(place) + place.host + " >> ~/.ssh/known_hosts";
      break;
    }
    case Kind::kHostKeyRevoked:
      cause = "the key of " + at + " is marked as revoked here: do not connect";
      fix = "give the host a new key: ssh-keygen -A there after removing the revoked one";
      break;
    case Kind::kKeyModeTooOpen: {
      const std::string file = between(line, " for '", "' are too open");
      cause = "others may read the private key " + file + ", so ssh does not use it for " + name;
      fix = "chmod 600 " + shellWord(file);
      break;
    }
    case Kind::kIdentityMissing: {
      const std::string said =
          between(lineWith("Identity file ", what), "Identity file ", " not accessible");
      const std::string file = said.empty() ? key : said;
      cause = "the private key " + file + " is not there, and " + name + " took no other";
      fix = "correct -i FILE, or make the key: ssh-keygen -t ed25519 -f " + shellWord(file);
      break;
    }
    case Kind::kKeyUnusable: {
      std::string file = between(line, "Load key \"", "\"");
      if (file.empty()) file = between(line, "for ED25519 \"", "\"");
      if (file.empty()) file = key.empty() ? "KEYFILE" : key;
      cause = "the private key for " + name + " cannot be used";
      fix = "ssh-keygen -y -f " + shellWord(file) +
            " must print the public key; one with a passphrase belongs into an agent: ssh-add " +
            shellWord(file);
      break;
    }
    case Kind::kTooManyKeys:
      cause = name + " hung up after too many wrong keys, before the right one was offered";
      fix =
          "name the key: -i KEYFILE (then only that one is offered), or IdentitiesOnly yes in "
          "~/.ssh/config";
      break;
    case Kind::kKeyDenied:
      cause = name + " accepts none of our keys for " + login(line, what);
      fix = keyDeniedAdvice(line, what, place);
      break;
    case Kind::kPasswordOnly:
      cause = name + " does not let anybody in with a key, and a job cannot type passwords";
      fix = "set PubkeyAuthentication yes in " + name +
            "'s /etc/ssh/sshd_config, restart sshd, "
            "then: ssh-copy-id " +
            portOption(place) + login(line, what);
      break;
    case Kind::kClosed:
      cause = at + " closed the connection";
      fix =
          "its sshd knows why (too many at once: MaxStartups; PAM, AllowUsers, a full disk, "
          "nologin): journalctl -u ssh -n 20 there, or docker logs of the container";
      break;
    case Kind::kLinkDead:
      cause = "the connection to " + name + " is dead: no answer for 9 s";
      fix = "see whether the host is up and the network path stands: ping -c 3 " + place.host;
      break;
    case Kind::kCommandNotFound:
      cause = "a command was not found on " + name;
      fix = "install it there, or see the PATH that ssh gives: ssh " + portOption(place) +
            login(line, what) + " env";
      break;
    case Kind::kNotExecutable:
      cause = "a command may not be executed on " + name;
      fix =
          "see its mode (chmod +x), whether its file system is mounted noexec, and that it is "
          "made for that machine (uname -m)";
      break;
    case Kind::kKilled:
      cause = "the ssh client for " + name + " died of signal " + std::to_string(what.end.signal) +
              " (" + ::strsignal(what.end.signal) + ")";
      fix = "see who sent it (out of memory: dmesg | tail), then try again";
      break;
    case Kind::kCommandFailed:
      cause = "the command on " + name + " ended with code " + std::to_string(what.end.exitCode);
      fix = "try it by hand: ssh " + portOption(place) + login(line, what);
      break;
    case Kind::kUnknown:
      cause = line.empty() ? "ssh to " + name +
                                 " ended without a word: the connection was cut, or the command "
                                 "there was killed by a signal"
                           : "ssh to " + name + " failed";
      fix = "see more with: ssh -v -o BatchMode=yes " + portOption(place) + login(line, what) +
            " true";
      break;
  }
  return failure;
}

}  // namespace farandole::ssh_advice
