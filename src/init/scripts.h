// The texts of the files that start containers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "init/cluster_spec.h"

namespace farandole::init {

// run-worker.sh [-d] [NAME]: sshd in a container, in the foreground.
std::string workerScript(const ClusterSpec& spec);

// run-launcher.sh [options of farandole run] COMMAND...
std::string launcherScript(const ClusterSpec& spec);

// The groups that may use Intel GPUs, as numbers; found on the machine that writes the file.
struct GpuGroups {
  std::optional<unsigned> render;
  std::optional<unsigned> video;
};
GpuGroups gpuGroupsHere();

// The text as a double-quoted YAML scalar in which docker compose replaces no variables.
std::string composeString(std::string_view text);

// docker-compose.yml: one service per worker and one for the launcher.
std::string composeText(const ClusterSpec& spec, const GpuGroups& groups);

// README.md: the exact commands for these machines.
std::string readmeText(const ClusterSpec& spec, const std::string& identityName);

}  // namespace farandole::init
