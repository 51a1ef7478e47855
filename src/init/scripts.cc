#include "init/scripts.h"

#include "base/text.h"
#include "init/ssh_files.h"
#include "init/templates.h"

namespace farandole::init {
namespace {

constexpr const char* kMemlock = R"sh(  --ulimit "memlock=${FARANDOLE_MEMLOCK:--1}"
)sh";

std::string gpuLines(const ClusterSpec& spec) {
  const bool podman = spec.runtime == ContainerRuntime::kPodman;
  switch (spec.gpu) {
    case Gpu::kNone: return "";
    case Gpu::kIntel:
      return fillTemplate(templates::kIntel,
                          {{"GROUPS", podman ? "options+=(--group-add keep-groups)\n"
                                             : std::string(templates::kIntelGroups)}});
    case Gpu::kNvidia:
      return podman ? "\noptions+=(--device nvidia.com/gpu=all)\n" : "\noptions+=(--gpus all)\n";
  }
  return "";
}

std::string interfaceLines(const ClusterSpec& spec) {
  const auto variables = interfaceVariables(spec);
  if (variables.empty()) return "";
  std::string out = "\n# The network interface between the machines.\noptions+=(\n";
  for (const std::string& variable : variables) out += "  --env " + shellQuoted(variable) + "\n";
  return out + ")\n";
}

// --mount and not -v: -v makes an absent folder, empty and root's, and the job fails much later.
std::string optionLines(const ClusterSpec& spec) {
  const std::string uid = std::to_string(spec.uid);
  const std::string gid = std::to_string(spec.gid);
  std::string out =
      fillTemplate(templates::kOptions,
                   {{"UID", uid},
                    {"GID", gid},
                    {"SHM", shellQuoted(spec.shmSize)},
                    {"MEMLOCK", spec.runtime == ContainerRuntime::kPodman ? "" : kMemlock}});
  if (!spec.dataFolder.empty()) {
    out += "options+=(--mount " +
           shellQuoted("type=bind,source=" + spec.dataFolder + ",target=" + spec.dataFolder) +
           ")\n";
  }
  if (spec.runtime == ContainerRuntime::kPodman)
    out += fillTemplate(templates::kPodman, {{"UID", uid}, {"GID", gid}});
  return out + gpuLines(spec) + interfaceLines(spec);
}

std::string commonLines(const ClusterSpec& spec) {
  return fillTemplate(templates::kCommon,
                      {{"ENGINE", spec.runtime == ContainerRuntime::kPodman ? "podman" : "docker"},
                       {"IMAGE", shellQuoted(spec.image)}});
}

}  // namespace

std::string workerScript(const ClusterSpec& spec) {
  // Root's sshd wants a folder that nobody makes in a container.
  constexpr const char* kUserSshd =
      "--entrypoint /usr/sbin/sshd \"$image\" \\\n  -D -e -f \"$ssh_in_container/sshd_config\"";
  constexpr const char* kRootSshd =
      "--entrypoint sh \"$image\" -c \\\n"
      "  \"mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f '$ssh_in_container/sshd_config'\"";
  const std::string runtime = spec.runtime == ContainerRuntime::kPodman ? "podman" : "docker";
  return fillTemplate(templates::kWorker, {{"ENGINE", runtime},
                                           {"COMMON", commonLines(spec)},
                                           {"OPTIONS", optionLines(spec)},
                                           {"UID", std::to_string(spec.uid)},
                                           {"GID", std::to_string(spec.gid)},
                                           {"SSH", shellQuoted(spec.sshFolder)},
                                           {"SSHD", spec.uid == 0 ? kRootSshd : kUserSshd}});
}

std::string launcherScript(const ClusterSpec& spec) {
  int ranks = spec.launcherSlots;
  for (const Worker& worker : spec.workers) ranks += worker.slots;
  const std::string iface =
      spec.interface.empty() ? "" : " --network-interfaces " + shellQuoted(spec.interface);
  return fillTemplate(templates::kLauncher, {{"COMMON", commonLines(spec)},
                                             {"OPTIONS", optionLines(spec)},
                                             {"NP", std::to_string(ranks)},
                                             {"TREE", shellQuoted(spec.programTree)},
                                             {"SSH", shellQuoted(spec.sshFolder)},
                                             {"IFACE", iface}});
}

}  // namespace farandole::init
