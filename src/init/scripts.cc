#include "init/scripts.h"

#include "init/fill.h"
#include "init/ssh_files.h"

namespace farandole::init {
namespace {

// Common to both scripts: what is the same for every container.
constexpr const char* kCommon = R"sh(
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
engine=${FARANDOLE_ENGINE:-@ENGINE@}
image=${FARANDOLE_IMAGE:-@IMAGE@}

fail() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit 2
}
command -v "$engine" >/dev/null || fail "$engine is not installed (FARANDOLE_ENGINE names another)"
case $here in *[,:]*) fail "the folder $here has a comma or colon: $engine cannot mount it" ;; esac
)sh";

// --mount and not -v: -v makes an absent folder, empty and root's, and the job fails much later.
constexpr const char* kOptions = R"sh(
options=(
  --rm --init
  --network host
  --user @UID@:@GID@
  --shm-size @SHM@
@MEMLOCK@  --workdir /tests
  --mount "type=bind,source=$here/workload,target=/tests"
)
)sh";

constexpr const char* kMemlock = R"sh(  --ulimit "memlock=${FARANDOLE_MEMLOCK:--1}"
)sh";

constexpr const char* kPodman = R"sh(
# The files' owner on this machine is user @UID@ in the container.
options+=(--security-opt label=disable)
if [[ $(id -u) != 0 ]]; then
  # Without root's rights limits cannot be raised, only handed on.
  options+=(--userns "keep-id:uid=@UID@,gid=@GID@" --ulimit host)
else
  options+=(--ulimit "memlock=${FARANDOLE_MEMLOCK:--1}")
fi
)sh";

constexpr const char* kIntel = R"sh(
# Intel GPUs: the devices, and the groups that may use them.
[[ -d /dev/dri ]] || fail "/dev/dri does not exist: install the GPU driver on this machine"
options+=(--device /dev/dri)
if [[ -d /dev/dri/by-path ]]; then
  options+=(--mount "type=bind,source=/dev/dri/by-path,target=/dev/dri/by-path")
fi
@GROUPS@)sh";

constexpr const char* kDockerGroups = R"sh(for group in render video; do
  number=$(getent group "$group" | cut -d: -f3) || number=
  if [[ -n $number ]]; then options+=(--group-add "$number"); fi
done
)sh";

std::string gpuLines(const ClusterSpec& spec) {
  const bool podman = spec.engine == Engine::kPodman;
  switch (spec.gpu) {
    case Gpu::kNone: return "";
    case Gpu::kIntel:
      return fill(kIntel, {{"GROUPS", podman ? "options+=(--group-add keep-groups)\n"
                                             : std::string(kDockerGroups)}});
    case Gpu::kNvidia:
      return podman ? "\noptions+=(--device nvidia.com/gpu=all)\n" : "\noptions+=(--gpus all)\n";
  }
  return "";
}

std::string interfaceLines(const ClusterSpec& spec) {
  const auto variables = interfaceVariables(spec);
  if (variables.empty()) return "";
  std::string out = "\n# The network interface between the machines.\noptions+=(\n";
  for (const std::string& variable : variables) out += "  --env " + shellWord(variable) + "\n";
  return out + ")\n";
}

std::string optionLines(const ClusterSpec& spec) {
  const std::string uid = std::to_string(spec.uid);
  const std::string gid = std::to_string(spec.gid);
  std::string out = fill(kOptions, {{"UID", uid},
                                    {"GID", gid},
                                    {"SHM", shellWord(spec.shmSize)},
                                    {"MEMLOCK", spec.engine == Engine::kPodman ? "" : kMemlock}});
  if (!spec.dataFolder.empty()) {
    out += "options+=(--mount " +
           shellWord("type=bind,source=" + spec.dataFolder + ",target=" + spec.dataFolder) + ")\n";
  }
  if (spec.engine == Engine::kPodman) out += fill(kPodman, {{"UID", uid}, {"GID", gid}});
  return out + gpuLines(spec) + interfaceLines(spec);
}

std::string commonLines(const ClusterSpec& spec) {
  return fill(kCommon, {{"ENGINE", spec.engine == Engine::kPodman ? "podman" : "docker"},
                        {"IMAGE", shellWord(spec.image)}});
}

}  // namespace

std::string workerScript(const ClusterSpec& spec) {
  constexpr const char* kHead = R"sh(#!/usr/bin/env bash
# Written by farandole init. Starts a worker on this machine: a container whose sshd waits for the
# launcher. It ends with Ctrl-C, or in the background with: @ENGINE@ stop farandole-NAME
#   ./run-worker.sh [-d] [NAME]    -d: in the background
set -euo pipefail
)sh";
  constexpr const char* kTail = R"sh(
detach=()
if [[ ${1:-} == -d ]]; then
  detach=(--detach)
  shift
fi
# The folder that becomes the container's ~/.ssh.
name=${1:-}
if [[ -z $name ]]; then
  found=("$here"/ssh_worker/*/sshd_config)
  if [[ -e $here/ssh_worker/sshd_config ]]; then
    name=worker
  elif (( ${#found[@]} == 1 )) && [[ -e ${found[0]} ]]; then
    name=$(basename "$(dirname "${found[0]}")")
  else
    fail "which worker is this? type: ${0##*/} NAME (the folders in ssh_worker)"
  fi
fi
ssh=$here/ssh_worker/$name
[[ -e $ssh/sshd_config ]] || ssh=$here/ssh_worker
[[ -e $ssh/sshd_config ]] || fail "there is no ssh_worker/$name/sshd_config"
[[ -d $here/workload ]] || fail "there is no folder workload: copy it here with ssh_worker"
owner=$(stat -c %u "$ssh")
if [[ $owner != @UID@ && $engine != podman ]]; then
  fail "$ssh belongs to user $owner, not @UID@; type: sudo chown -R @UID@:@GID@ '$ssh' '$here/workload'"
fi

ssh_in_container=@SSH@
options+=(--name "farandole-$name" --mount "type=bind,source=$ssh,target=$ssh_in_container")
# In the foreground, with its log on stderr ($engine logs).
exec "$engine" run "${detach[@]}" "${options[@]}" @SSHD@
)sh";
  // Root's sshd wants a folder that nobody makes in a container.
  constexpr const char* kUserSshd =
      "--entrypoint /usr/sbin/sshd \"$image\" \\\n  -D -e -f \"$ssh_in_container/sshd_config\"";
  constexpr const char* kRootSshd =
      "--entrypoint sh \"$image\" -c \\\n"
      "  \"mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f '$ssh_in_container/sshd_config'\"";
  const std::string engine = spec.engine == Engine::kPodman ? "podman" : "docker";
  return fill(kHead, {{"ENGINE", engine}}) + commonLines(spec) + optionLines(spec) +
         fill(kTail, {{"UID", std::to_string(spec.uid)},
                      {"GID", std::to_string(spec.gid)},
                      {"SSH", shellWord(spec.sshFolder)},
                      {"SSHD", spec.uid == 0 ? kRootSshd : kUserSshd}});
}

std::string launcherScript(const ClusterSpec& spec) {
  constexpr const char* kHead = R"sh(#!/usr/bin/env bash
# Written by farandole init. Runs a command on all hosts of workload/hostfile.
#   ./run-launcher.sh [options of farandole run] COMMAND [ARGUMENTS...]
#   ./run-launcher.sh -np @NP@ python3 train.py
set -euo pipefail
)sh";
  constexpr const char* kTail = R"sh(
(( $# > 0 )) || fail "what shall be run? type for example: ${0##*/} -np @NP@ python3 train.py"
tree=${FARANDOLE_HOME:-@TREE@}
[[ -x $tree/bin/farandole ]] || fail "there is no $tree/bin/farandole; set FARANDOLE_HOME"
[[ -e $here/ssh_launcher/config ]] || fail "there is no ssh_launcher/config beside this script"
[[ -e $here/workload/hostfile ]] || fail "there is no workload/hostfile beside this script"
if [[ -t 0 && -t 1 ]]; then options+=(--interactive --tty); fi
ssh_in_container=@SSH@
options+=(
  --name farandole-launcher
  --mount "type=bind,source=$here/ssh_launcher,target=$ssh_in_container"
  --mount "type=bind,source=$tree,target=/opt/farandole,readonly"
)
exec "$engine" run "${options[@]}" --entrypoint /opt/farandole/bin/farandole "$image" \
  run --hostfile hostfile@IFACE@ "$@"
)sh";
  int ranks = spec.launcherSlots;
  for (const Worker& worker : spec.workers) ranks += worker.slots;
  const std::string iface =
      spec.interface.empty() ? "" : " --network-interfaces " + shellWord(spec.interface);
  return fill(kHead, {{"NP", std::to_string(ranks)}}) + commonLines(spec) + optionLines(spec) +
         fill(kTail, {{"NP", std::to_string(ranks)},
                      {"TREE", shellWord(spec.programTree)},
                      {"SSH", shellWord(spec.sshFolder)},
                      {"IFACE", iface}});
}

}  // namespace farandole::init
