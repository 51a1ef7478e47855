// Parameters of Open MPI (--mca NAME VALUE) that mean something to a launcher.
#include <algorithm>

#include "compat/mpirun.h"
#include "compat/split_words.h"

namespace farandole::compat {
namespace {

// "-p 12345 -i key -o Option": what we have an option for is used.
Status sshArguments(const std::string& value, RunWords& run) {
  auto words = splitShellWords(value);
  if (!words.ok()) return words.status();
  for (std::size_t i = 0; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    const std::string name = word.substr(0, 2);
    const bool known = name == "-p" || name == "-i" || name == "-o" || name == "-l";
    std::string rest = word.size() > 2 ? word.substr(2) : "";
    if (known && rest.empty()) {
      if (i + 1 == words->size()) {
        return Status::invalid("--mca plm_rsh_args: " + name + " needs a value in '" + value + "'");
      }
      rest = (*words)[++i];
    }
    if (name == "-p") {
      run.set("--ssh-port", rest);
    } else if (name == "-i") {
      run.set("--ssh-identity-file", rest);
    } else if (name == "-o" && (rest.starts_with("StrictHostKeyChecking=no") ||
                                rest.starts_with("StrictHostKeyChecking=accept-new"))) {
      run.set("--accept-new-host-keys");
    } else if (name == "-o" &&
               (rest.starts_with("ConnectionAttempts") || rest.starts_with("BatchMode"))) {
      // Connections are tried again, and nothing prompts, anyway.
    } else {
      run.note("--mca plm_rsh_args: '" + (known ? name + " " + rest : word) +
               "' is not passed on: put it into ~/.ssh/config");
    }
  }
  return {};
}

// Interfaces are chosen by reachability; these lead nowhere and would never win.
bool neverUsed(const std::string& interface) {
  constexpr std::string_view kBeginnings[] = {"lo", "docker", "virbr", "veth", "br-", "127."};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view begin) { return interface.starts_with(begin); });
}

void excludeInterfaces(const std::string& list, RunWords& run) {
  std::string others;
  for (const std::string& interface : splitList(list)) {
    if (!neverUsed(interface)) others += (others.empty() ? "" : ",") + interface;
  }
  if (others.empty()) {
    run.note("interfaces are chosen by who can be reached through them: excluding " + list +
             " is not needed");
  } else {
    run.note("interfaces are chosen by who can be reached through them; if " + others +
             " must not be used, name the right ones: --network-interfaces LIST");
  }
}

}  // namespace

std::span<const McaParameter> mcaParameters() {
  static constexpr McaParameter kParameters[] = {
      {"plm_rsh_args",
       "-p, -i and StrictHostKeyChecking of ssh: `--ssh-port`, "
       "`--ssh-identity-file`, `--accept-new-host-keys`"},
      {"plm_ssh_args", "the same"},
      {"btl_tcp_if_include", "`--network-interfaces`"},
      {"oob_tcp_if_include", "`--network-interfaces`"},
      {"btl_tcp_if_exclude", "a note: interfaces are chosen by who can be reached through them"},
      {"oob_tcp_if_exclude", "a note: interfaces are chosen by who can be reached through them"},
      {"orte_default_hostfile", "`--hostfile`"},
      {"prte_default_hostfile", "`--hostfile`"},
      {"orte_set_default_slots", "`--slots-per-host`"},
      {"prte_set_default_slots", "`--slots-per-host`"},
      {"hwloc_base_binding_policy", "`--bind-to`"},
      {"rmaps_base_mapping_policy", "`--map-by`"},
      {"rmaps_default_mapping_policy", "`--map-by`"},
      {"plm_rsh_no_tree_spawn", "accepted: the launcher always reaches every host itself"},
      {"plm_ssh_no_tree_spawn", "accepted: the launcher always reaches every host itself"},
      {"plm_rsh_agent", "accepted if it is ssh, otherwise a note"},
      {"rmaps_base_oversubscribe", "accepted: more ranks than cores are always allowed"},
      {"orte_keep_fqdn_hostnames", "accepted: names are kept as they were typed"},
      {"prte_keep_fqdn_hostnames", "accepted: names are kept as they were typed"},
      {"orte_base_help_aggregate", "accepted: messages are printed once"},
      {"pml", "accepted: there is no MPI whose transports could be chosen"},
      {"btl", "accepted: there is no MPI whose transports could be chosen"},
      {"mtl", "accepted: there is no MPI whose transports could be chosen"},
      {"oob", "accepted: there is no MPI whose transports could be chosen"},
  };
  return kParameters;
}

Status applyMca(const std::string& name, const std::string& value, RunWords& run) {
  if (value.empty()) return Status::invalid("--mca " + name + " needs a value that is not empty");
  if (name == "plm_rsh_args" || name == "plm_ssh_args") return sshArguments(value, run);
  if (name.ends_with("_tcp_if_include")) {
    run.set("--network-interfaces", value);
  } else if (name.ends_with("_tcp_if_exclude")) {
    excludeInterfaces(value, run);
  } else if (name.ends_with("_default_hostfile")) {
    run.set("--hostfile", value);
  } else if (name.ends_with("_set_default_slots")) {
    run.set("--slots-per-host", value);
  } else if (name == "hwloc_base_binding_policy") {
    return applyBindTo(value, run);
  } else if (name == "rmaps_base_mapping_policy" || name == "rmaps_default_mapping_policy") {
    return applyMapBy(value, run);
  } else if (name == "plm_rsh_agent" && !value.ends_with("ssh")) {
    run.note("--mca plm_rsh_agent " + value + ": the system's ssh is used");
  } else if (std::none_of(mcaParameters().begin(), mcaParameters().end(),
                          [&](const McaParameter& known) { return known.name == name; })) {
    run.note("--mca " + name + " " + value + ": only means something to MPI");
  }
  return {};
}

}  // namespace farandole::compat
