// The texts of the files that ssh and sshd read. Pure functions of the set-up.
#pragma once

#include <string>
#include <vector>

#include "init/cluster_spec.h"

namespace farandole::init {

// One public host key of a worker: "ssh-ed25519 AAAA…", without comment.
struct HostKey {
  const Worker* worker;
  std::string key;
};

// ssh_launcher/config. The identity and the known hosts are looked for in launcherFolder, for use
// on the machine itself, and then in ~/.ssh, which is where the launcher's container sees them.
std::string sshConfigText(const ClusterSpec& spec, const std::string& launcherFolder,
                          const std::string& identityName);

// ssh_worker/NAME/sshd_config: keyNames are the host keys' file names.
std::string sshdConfigText(const ClusterSpec& spec, const Worker& worker,
                           const std::vector<std::string>& keyNames);

// ssh_launcher/known_hosts.
std::string knownHostsText(const std::vector<HostKey>& keys);

// workload/hostfile: the launcher first, then the workers by the names of the ssh configuration.
std::string hostfileText(const ClusterSpec& spec);

// The variables that keep MPI, libfabric, UCX, NCCL and Gloo on the chosen interface, as
// NAME=VALUE; none if no interface was chosen.
std::vector<std::string> interfaceVariables(const ClusterSpec& spec);

// "type base64" of the first line of a public key file; empty if it is none.
std::string publicKeyOf(const std::string& text);

// The content of authorized_keys with the key added at its end, unchanged if it is there already.
std::string withAuthorizedKey(const std::string& content, const std::string& publicKeyLine);

}  // namespace farandole::init
