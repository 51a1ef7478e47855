// What `farandole init` is asked to set up: the machines, the user in the containers, the image.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::init {

enum class Gpu { kNone, kIntel, kNvidia };
enum class ContainerRuntime { kDocker, kPodman };

struct Worker {
  std::string name;     // what ssh and the host file call it, and the name of its folder
  std::string address;  // where it is reached: a host name or an IP address without brackets
  int slots = 1;
  int port = 0;
};

struct ClusterSpec {
  std::string launcher = "localhost";
  int launcherSlots = 1;
  std::vector<Worker> workers;
  std::string user = "dev";
  unsigned uid = 1000;
  unsigned gid = 1000;
  int port = 12345;
  std::string image;
  Gpu gpu = Gpu::kNone;
  ContainerRuntime runtime = ContainerRuntime::kDocker;
  std::string interface;  // empty: not pinned
  std::string shmSize = "8g";
  std::string dataFolder;   // mounted at the same path in every container; empty: none
  std::string sshFolder;    // where a container sees its ssh folder, e.g. /home/dev/.ssh
  std::string programTree;  // holds bin/farandole on the launcher's machine
  bool debug = false;       // sshd logs everything
};

// "a:2@10.0.0.5:2222,b" → workers; a port that is not given is defaultPort. Checks names, addresses
// and that no two workers have the same name or listen at the same place.
Result<std::vector<Worker>> parseWorkers(std::string_view text, int defaultPort);

// "host" or "host:slots".
Status parseLauncher(std::string_view text, ClusterSpec& spec);

// Ok for what may stand in a script, an ssh configuration and a YAML file as the named thing.
Status checkHost(std::string_view what, std::string_view text);
Status checkUser(std::string_view text);
Status checkImage(std::string_view text);
Status checkInterface(std::string_view text);
Status checkShmSize(std::string_view text);
// An absolute path that ssh's configuration, docker's mounts and YAML can all carry.
Status checkPath(std::string_view what, std::string_view text);
Result<int> parsePort(std::string_view what, std::string_view text);

// /home/USER/.ssh, or /root/.ssh.
std::string defaultSshFolder(const std::string& user);

// "[host]:port" as known_hosts wants it: without brackets and port where the port is 22.
std::string knownHostsName(const std::string& host, int port);

}  // namespace farandole::init
