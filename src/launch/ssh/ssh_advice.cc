#include <cstring>

#include "launch/ssh/ssh_scene.h"

namespace farandole::launch::ssh {
namespace {

using Kind = SshFailure::Kind;

struct Words {
  std::string cause;
  std::string fix;
};

std::string configAdvice(std::string_view line) {
  if (line.find("command-line") != line.npos || line.find("option --") != line.npos) {
    return "this ssh client is older than OpenSSH 7.6 or no OpenSSH; see ssh -V, and name another "
           "one with FARANDOLE_SSH=/path/to/ssh";
  }
  if (const auto file = between(line, "Bad owner or permissions on ", ""); !file.empty()) {
    return "chown \"$(id -u)\" " + fileWord(file) + " && chmod 600 " + fileWord(file);
  }
  if (line.find("Bad port") != line.npos) return "give a port from 1 to 65535";
  return "correct the file and line that ssh names, then try: ssh -G HOST";
}

std::string keyDeniedAdvice(const Scene& scene) {
  const std::string& key = scene.key;
  const std::string pub =
      key.empty() ? "" : "-i " + fileWord(key.ends_with(".pub") ? key : key + ".pub") + " ";
  const bool password = scene.line.find("password") != scene.line.npos ||
                        scene.line.find("keyboard") != scene.line.npos;
  if (password) return "ssh-copy-id " + scene.portOption + pub + scene.login;
  return "append your public key to ~/.ssh/authorized_keys of " + scene.login +
         " by another way in (then there: chmod 700 ~/.ssh; chmod 600 ~/.ssh/authorized_keys), or "
         "load the right key: ssh-add " +
         (key.empty() ? "KEYFILE" : fileWord(key));
}

// This machine, before any connection.
Words adviseHere(Kind kind, const Scene& scene) {
  Words words;
  auto& [cause, fix] = words;
  switch (kind) {
    case Kind::kNoClient:
      cause = "there is no ssh client on this machine";
      fix = "apt-get install openssh-client";
      break;
    case Kind::kBadConfig:
      cause = "ssh refuses its configuration or an option";
      fix = configAdvice(scene.line);
      break;
    case Kind::kBadHostName:
      cause = "'" + scene.name + "' is no name that ssh accepts for a host";
      fix = "correct it in -H or in the hostfile: NAME, USER@NAME or an address";
      break;
    case Kind::kNoLocalUser:
      cause = "this process's user id has no entry in /etc/passwd, without which ssh does not run";
      fix =
          "echo \"me:x:$(id -u):$(id -g)::$HOME:/bin/sh\" >> /etc/passwd (when the image is "
          "built, or with docker run -u of a user that the image has)";
      break;
    case Kind::kUnknownHost:
      cause = "the name " + scene.name + " has no address here";
      fix = "getent hosts " + scene.name + " must print an address: correct the name, add it to " +
            "/etc/hosts, or give it a HostName in ~/.ssh/config";
      break;
    case Kind::kResolverDown:
      cause = "the name server did not answer for " + scene.name;
      fix = "try again in a moment; see /etc/resolv.conf, and: getent hosts " + scene.name;
      break;
    case Kind::kBlockedHere:
      cause = "this machine does not let ssh connect to " + scene.at;
      fix =
          "use an address of a family this machine has (ip addr), and see sandbox and SELinux "
          "rules: ausearch -m avc -ts recent";
      break;
    default: break;
  }
  return words;
}

// Between the machines.
Words adviseNetwork(Kind kind, const Scene& scene) {
  Words words;
  auto& [cause, fix] = words;
  switch (kind) {
    case Kind::kRefused:
      cause = "nothing listens on port " + scene.port + " of " + scene.name;
      fix = "start sshd there, or say its port with -p PORT (or " + scene.name +
            "'s Port in ~/.ssh/config); on the host: ss -ltn | grep :" + scene.port;
      break;
    case Kind::kTimedOut:
      if (scene.line.find("banner") != scene.line.npos) {
        cause = "port " + scene.port + " of " + scene.name +
                " takes connections, but no ssh server answers";
        fix =
            "see whether sshd runs behind that port (a proxy or a published port may accept for "
            "it), or say the right one with -p PORT";
      } else {
        cause = "no answer from port " + scene.port + " of " + scene.name +
                ": filtered, or the host is off";
        fix =
            "open the port in the firewall (security group, network policy) or use the address "
            "of a network that both share; try: nc -vz -w 5 " +
            scene.host + " " + scene.port;
      }
      break;
    case Kind::kUnreachable:
      cause = "no route from here to " + scene.at;
      fix = "ip route get \"$(getent ahosts " + scene.host +
            " | awk 'NR==1{print $1}')\" shows the way taken; use an address of a network that "
            "both share";
      break;
    case Kind::kNotSsh:
      cause = "what listens on port " + scene.port + " of " + scene.name + " is no ssh server";
      fix = "say sshd's port with -p PORT";
      break;
    case Kind::kNoCommonCrypto:
      cause = scene.name + "'s ssh server and this client have no algorithm in common";
      fix = "update the older one; for a host you trust, ~/.ssh/config: Host " + scene.name +
            " with HostKeyAlgorithms +ssh-rsa and PubkeyAcceptedAlgorithms +ssh-rsa";
      break;
    case Kind::kClosed:
      cause = scene.at + " closed the connection";
      fix =
          "its sshd knows why (too many at once: MaxStartups; PAM, AllowUsers, a full disk, "
          "nologin): journalctl -u ssh -n 20 there, or docker logs of the container";
      break;
    case Kind::kLinkDead:
      cause = "the connection to " + scene.name + " is dead: no answer for 9 s";
      fix = "see whether the host is up and the network path stands: ping -c 3 " + scene.host;
      break;
    default: break;
  }
  return words;
}

// Who the host is.
Words adviseHostKey(Kind kind, const Scene& scene) {
  Words words;
  auto& [cause, fix] = words;
  switch (kind) {
    case Kind::kHostKeyUnknown:
      cause = "the key of " + scene.at + " is not known here, so it could be anybody";
      fix = "ssh-keyscan " + scene.portOption + scene.host +
            " >> ~/.ssh/known_hosts and compare ssh-keygen -lf ~/.ssh/known_hosts with the host's "
            "own; or, on a network you trust, --accept-new-host-keys";
      break;
    case Kind::kHostKeyChanged: {
      const std::string file = knownHostsFile(scene);
      const std::string entry =
          scene.portOption.empty() ? scene.host : "[" + scene.host + "]:" + scene.port;
      cause = "the key of " + scene.at +
              " is NOT the one known here: the host was reinstalled, or "
              "somebody stands between";
      fix = "find out why first; if it was reinstalled: ssh-keygen " +
            (file.empty() ? "" : "-f " + fileWord(file) + " ") + "-R " + fileWord(entry) +
            ", then ssh-keyscan " + scene.portOption + scene.host + " >> ~/.ssh/known_hosts";
      break;
    }
    case Kind::kHostKeyRevoked:
      cause = "the key of " + scene.at + " is marked as revoked here: do not connect";
      fix = "give the host a new key: ssh-keygen -A there after removing the revoked one";
      break;
    default: break;
  }
  return words;
}

// Who we are.
Words adviseLogin(Kind kind, const Scene& scene) {
  Words words;
  auto& [cause, fix] = words;
  switch (kind) {
    case Kind::kKeyModeTooOpen: {
      const std::string file = between(scene.line, " for '", "' are too open");
      cause =
          "others may read the private key " + file + ", so ssh does not use it for " + scene.name;
      fix = "chmod 600 " + fileWord(file);
      break;
    }
    case Kind::kIdentityMissing: {
      const std::string said =
          between(lineWith("Identity file ", scene.lines), "Identity file ", " not accessible");
      const std::string file = said.empty() ? scene.key : said;
      cause = "the private key " + file + " is not there, and " + scene.name + " took no other";
      fix = "correct -i FILE, or make the key: ssh-keygen -t ed25519 -f " + fileWord(file);
      break;
    }
    case Kind::kKeyUnusable: {
      std::string file = between(scene.line, "Load key \"", "\"");
      if (file.empty()) file = between(scene.line, "for ED25519 \"", "\"");
      if (file.empty()) file = scene.key.empty() ? "KEYFILE" : scene.key;
      cause = "the private key for " + scene.name + " cannot be used";
      fix = "ssh-keygen -y -f " + fileWord(file) +
            " must print the public key; one with a passphrase belongs into an agent: ssh-add " +
            fileWord(file);
      break;
    }
    case Kind::kTooManyKeys:
      cause = scene.name + " hung up after too many wrong keys, before the right one was offered";
      fix =
          "name the key: -i KEYFILE (then only that one is offered), or IdentitiesOnly yes in "
          "~/.ssh/config";
      break;
    case Kind::kKeyDenied:
      cause = scene.name + " accepts none of our keys for " + scene.login;
      fix = keyDeniedAdvice(scene);
      break;
    case Kind::kPasswordOnly:
      cause = scene.name + " does not let anybody in with a key, and a job cannot type passwords";
      fix = "set PubkeyAuthentication yes in " + scene.name +
            "'s /etc/ssh/sshd_config, restart sshd, "
            "then: ssh-copy-id " +
            scene.portOption + scene.login;
      break;
    default: break;
  }
  return words;
}

// The command at the other end, and all that is not known.
Words adviseCommand(Kind kind, const Scene& scene) {
  Words words;
  auto& [cause, fix] = words;
  switch (kind) {
    case Kind::kCommandNotFound:
      cause = "a command was not found on " + scene.name;
      fix = "install it there, or see the PATH that ssh gives: ssh " + scene.portOption +
            scene.login + " env";
      break;
    case Kind::kNotExecutable:
      cause = "a command may not be executed on " + scene.name;
      fix =
          "see its mode (chmod +x), whether its file system is mounted noexec, and that it is "
          "made for that machine (uname -m)";
      break;
    case Kind::kKilled:
      cause = "the ssh client for " + scene.name + " died of signal " +
              std::to_string(scene.end.signal) + " (" + ::strsignal(scene.end.signal) + ")";
      fix = "see who sent it (out of memory: dmesg | tail), then try again";
      break;
    case Kind::kCommandFailed:
      cause =
          "the command on " + scene.name + " ended with code " + std::to_string(scene.end.exitCode);
      fix = "try it by hand: ssh " + scene.portOption + scene.login;
      break;
    case Kind::kUnknown:
      cause = scene.line.empty()
                  ? "ssh to " + scene.name +
                        " ended without a word: the connection was cut, or the command "
                        "there was killed by a signal"
                  : "ssh to " + scene.name + " failed";
      fix = "see more with: ssh -v -o BatchMode=yes " + scene.portOption + scene.login + " true";
      break;
    default: break;
  }
  return words;
}

}  // namespace

SshFailure advise(Kind kind, const Scene& scene) {
  SshFailure failure;
  failure.kind = kind;
  failure.evidence = scene.line.substr(0, 400);
  for (auto* group : {adviseHere, adviseNetwork, adviseHostKey, adviseLogin, adviseCommand}) {
    Words words = group(kind, scene);
    if (words.cause.empty()) continue;
    failure.cause = std::move(words.cause);
    failure.fix = std::move(words.fix);
  }
  return failure;
}

}  // namespace farandole::launch::ssh
