#include "init/ssh_files.h"

#include <sstream>

#include "base/text.h"

namespace farandole::init {
namespace {

// '%' begins a token of ssh's own in these paths.
std::string sshPath(const std::string& path) {
  std::string out = "\"";
  for (const char c : path) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string sshConfigText(const ClusterSpec& spec, const std::string& launcherFolder,
                          const std::string& identityName) {
  constexpr const char* kHead =
      "# Written by farandole init. The launcher's container has it as ~/.ssh/config;\n"
      "# on the machine itself: ssh -F ssh_launcher/config WORKER\n";
  constexpr const char* kLauncher =
      "\n# The launcher starts its own ranks without ssh: nothing listens here.\n"
      "Host launcher\n    HostName @HOST@\n    Port @PORT@\n";
  constexpr const char* kWorker = "\nHost @NAME@\n    HostName @ADDRESS@\n    Port @PORT@\n";
  constexpr const char* kAll =
      "    User @USER@\n"
      "    IdentityFile @FOLDER_KEY@\n"
      "    IdentityFile ~/.ssh/@KEY@\n"
      "    IdentitiesOnly yes\n"
      "    UserKnownHostsFile @FOLDER_KNOWN@ ~/.ssh/known_hosts\n"
      "    StrictHostKeyChecking yes\n"
      "    UpdateHostKeys no\n"
      "    PreferredAuthentications publickey\n"
      "    BatchMode yes\n"
      "    ConnectTimeout 10\n"
      "    ServerAliveInterval 15\n"
      "    ServerAliveCountMax 4\n"
      "    # One of the two identity files is always absent; that is no news.\n"
      "    LogLevel ERROR\n";
  const bool named = spec.launcher != "localhost";
  std::string out = kHead;
  std::string names = named ? " launcher" : "";
  if (named) {
    out += fillTemplate(kLauncher, {{"HOST", spec.launcher}, {"PORT", std::to_string(spec.port)}});
  }
  for (const Worker& worker : spec.workers) {
    out += fillTemplate(kWorker, {{"NAME", worker.name},
                                  {"ADDRESS", worker.address},
                                  {"PORT", std::to_string(worker.port)}});
    names += " " + worker.name;
  }
  return out + "\nHost" + names + "\n" +
         fillTemplate(kAll, {{"USER", spec.user},
                             {"FOLDER_KEY", sshPath(launcherFolder + "/" + identityName)},
                             {"KEY", identityName},
                             {"FOLDER_KNOWN", sshPath(launcherFolder + "/known_hosts")}});
}

std::string sshdConfigText(const ClusterSpec& spec, const Worker& worker,
                           const std::vector<std::string>& keyNames) {
  constexpr const char* kHead =
      "# Written by farandole init for worker @NAME@. Absolute paths: to sshd ~ is the home of "
      "whoever starts it.\n"
      "Port @PORT@\n";
  constexpr const char* kBody =
      "AuthorizedKeysFile @AUTHORIZED@\n"
      "PidFile \"@FOLDER@/sshd.pid\"\n"
      "AuthenticationMethods publickey\n"
      "PubkeyAuthentication yes\n"
      "PasswordAuthentication no\n"
      "KbdInteractiveAuthentication no\n"
      "# An sshd without root's rights cannot ask PAM about accounts.\n"
      "UsePAM no\n"
      "AllowUsers @USER@\n"
      "PermitRootLogin @ROOT@\n"
      "StrictModes yes\n"
      "X11Forwarding no\n"
      "PrintMotd no\n"
      "PrintLastLog no\n"
      "# Many connections may come at the same moment.\n"
      "MaxStartups 100:30:400\n"
      "# A launcher that vanished is noticed within a minute.\n"
      "ClientAliveInterval 15\n"
      "ClientAliveCountMax 4\n"
      "LogLevel @LEVEL@\n"
      "AcceptEnv LANG LC_*\n";
  const std::string& folder = spec.sshFolder;
  std::string out =
      fillTemplate(kHead, {{"NAME", worker.name}, {"PORT", std::to_string(worker.port)}});
  for (const std::string& name : keyNames) out += "HostKey \"" + folder + "/" + name + "\"\n";
  out += fillTemplate(kBody, {{"AUTHORIZED", sshPath(folder + "/authorized_keys")},
                              {"FOLDER", folder},
                              {"USER", spec.user},
                              {"ROOT", spec.user == "root" ? "prohibit-password" : "no"},
                              {"LEVEL", spec.debug ? "DEBUG3" : "INFO"}});
  if (const auto variables = interfaceVariables(spec); !variables.empty()) {
    // What a container is given with -e does not reach processes that its sshd starts; this does.
    // One line, because sshd heeds only the first.
    out += "SetEnv";
    for (const std::string& variable : variables) out += " " + variable;
    out += "\n";
  }
  return out + "Subsystem sftp internal-sftp\n";
}

std::string knownHostsText(const std::vector<HostKey>& keys) {
  std::string out;
  for (const HostKey& entry : keys) {
    const Worker& worker = *entry.worker;
    out += knownHostsName(worker.address, worker.port);
    if (worker.name != worker.address) out += "," + knownHostsName(worker.name, worker.port);
    out += " " + entry.key + "\n";
  }
  return out;
}

std::string hostfileText(const ClusterSpec& spec) {
  std::string out = spec.launcher + " slots=" + std::to_string(spec.launcherSlots) + "\n";
  for (const Worker& worker : spec.workers) {
    out += worker.name + " slots=" + std::to_string(worker.slots) + "\n";
  }
  return out;
}

std::vector<std::string> interfaceVariables(const ClusterSpec& spec) {
  if (spec.interface.empty()) return {};
  std::vector<std::string> out;
  for (const char* name : {"I_MPI_HYDRA_IFACE", "FI_SOCKETS_IFACE", "FI_TCP_IFACE",
                           "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    out.push_back(name + ("=" + spec.interface));
  }
  out.emplace_back("UCX_TLS=all");
  return out;
}

std::string publicKeyOf(const std::string& text) {
  std::istringstream words(text.substr(0, text.find('\n')));
  std::string type;
  std::string body;
  words >> type >> body;
  const bool known =
      type.starts_with("ssh-") || type.starts_with("ecdsa-") || type.starts_with("sk-");
  return known && body.starts_with("AAAA") ? type + " " + body : std::string();
}

std::string withAuthorizedKey(const std::string& content, const std::string& publicKeyLine) {
  const std::string key = publicKeyOf(publicKeyLine);
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    // Options may stand before the key, a comment after it.
    const auto at = line.find(key);
    if (line.starts_with('#') || at == std::string::npos) continue;
    const auto end = at + key.size();
    if ((at == 0 || line[at - 1] == ' ') && (end == line.size() || line[end] == ' ')) {
      return content;
    }
  }
  std::string out = content;
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out + publicKeyLine.substr(0, publicKeyLine.find('\n')) + "\n";
}

}  // namespace farandole::init
