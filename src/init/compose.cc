#include <grp.h>

#include <vector>

#include "base/text.h"
#include "init/scripts.h"
#include "init/ssh_files.h"
#include "init/templates.h"

namespace farandole::init {
namespace {

std::optional<unsigned> groupNumber(const char* name) {
  std::vector<char> buffer(1 << 16);
  group entry{};
  group* found = nullptr;
  const int error = ::getgrnam_r(name, &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? std::optional<unsigned>(entry.gr_gid) : std::nullopt;
}

// A machine may number its groups otherwise, hence the variable.
std::string groupLine(const char* variable, const char* name, std::optional<unsigned> number) {
  const std::string value =
      number ? ":-" + std::to_string(*number)
             : std::string(":?set it to the number of the group ") + name + " on this machine";
  return std::string("    - \"${") + variable + value + "}\"\n";
}

std::string gpuBlock(const ClusterSpec& spec, const GpuGroups& groups) {
  switch (spec.gpu) {
    case Gpu::kNone: return "";
    case Gpu::kIntel:
      return "  devices:\n    - /dev/dri:/dev/dri\n  group_add:\n" +
             groupLine("RENDER_GID", "render", groups.render) +
             groupLine("VIDEO_GID", "video", groups.video);
    case Gpu::kNvidia:
      return "  deploy:\n    resources:\n      reservations:\n        devices:\n"
             "          - driver: nvidia\n            count: all\n"
             "            capabilities: [gpu]\n";
  }
  return "";
}

std::string environmentBlock(const ClusterSpec& spec) {
  const auto variables = interfaceVariables(spec);
  if (variables.empty()) return "";
  std::string out = "  environment:\n";
  for (const std::string& variable : variables) out += "    - " + composeString(variable) + "\n";
  return out;
}

// The long form: docker-compose 1 and older versions of docker compose then refuse an absent
// folder. Newer ones make an empty one of root's; create_host_path, which would keep them from it,
// is refused by docker-compose 1, the one in Debian 12 and Ubuntu 22.04.
std::string mount(const std::string& source, const std::string& target, bool readOnly = false) {
  return "      - type: bind\n        source: " + source +
         "\n        target: " + composeString(target) +
         (readOnly ? "\n        read_only: true" : "") + "\n";
}

std::string volumes(const ClusterSpec& spec, const std::string& sshSource) {
  std::string out = "    volumes:\n" + mount("./workload", "/tests") +
                    mount(composeString(sshSource), spec.sshFolder);
  if (!spec.dataFolder.empty()) out += mount(composeString(spec.dataFolder), spec.dataFolder);
  return out;
}

}  // namespace

std::string composeString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '$') out += '$';
    out += c;
  }
  return out + "\"";
}

GpuGroups gpuGroupsHere() { return {groupNumber("render"), groupNumber("video")}; }

std::string composeText(const ClusterSpec& spec, const GpuGroups& groups) {
  constexpr const char* kUserSshd = "    entrypoint: [/usr/sbin/sshd, -D, -e, -f, @CONFIG@]\n";
  constexpr const char* kRootSshd =
      "    entrypoint: [sh, -c, 'mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f \"$$0\"', "
      "@CONFIG@]\n";
  int ranks = spec.launcherSlots;
  for (const Worker& worker : spec.workers) ranks += worker.slots;
  std::string out = fillTemplate(templates::kCompose, {{"NP", std::to_string(ranks)},
                                                       {"IMAGE", composeString(spec.image)},
                                                       {"UID", std::to_string(spec.uid)},
                                                       {"GID", std::to_string(spec.gid)},
                                                       {"SHM", composeString(spec.shmSize)},
                                                       {"GPU", gpuBlock(spec, groups)},
                                                       {"ENVIRONMENT", environmentBlock(spec)}});
  const std::string sshd =
      fillTemplate(spec.uid == 0 ? kRootSshd : kUserSshd,
                   {{"CONFIG", composeString(spec.sshFolder + "/sshd_config")}});
  for (const Worker& worker : spec.workers) {
    out += fillTemplate(templates::kComposeWorker,
                        {{"NAME", composeString(worker.name)},
                         {"CONTAINER", composeString("farandole-" + worker.name)},
                         {"SSHD", sshd},
                         {"VOLUMES", volumes(spec, "./ssh_worker/" + worker.name)}});
  }
  const std::string iface =
      spec.interface.empty() ? "" : ", --network-interfaces, " + composeString(spec.interface);
  const std::string tree = "\"${FARANDOLE_HOME:-" + spec.programTree + "}\"";
  return out +
         fillTemplate(
             templates::kComposeLauncher,
             {{"IFACE", iface},
              {"VOLUMES", volumes(spec, "./ssh_launcher") + mount(tree, "/opt/farandole", true)}});
}

}  // namespace farandole::init
