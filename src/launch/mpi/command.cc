#include "launch/mpi/command.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "launch/mpi/templates.h"
#include "process/machine_identity.h"

namespace farandole::launch::mpi {
namespace {

// Other names, such as those of exported functions of bash, cannot be set by a shell.
bool isShellName(std::string_view name) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  return !name.empty() && kLetters.find(name.front()) != std::string_view::npos &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return kLetters.find(c) != std::string_view::npos || (c >= '0' && c <= '9');
         });
}

std::string settingOf(const launch::plan::JobPlan& plan, std::string_view name) {
  // The last one counts, as for the ranks.
  const auto found = std::find_if(plan.settings.rbegin(), plan.settings.rend(),
                                  [&](const auto& each) { return each.first == name; });
  return found == plan.settings.rend() ? "" : found->second;
}

// "29600-29631"
bool parsePorts(const std::string& text, int& first, int& last) {
  const auto dash = text.find('-');
  if (dash == std::string::npos) return false;
  first = std::atoi(text.c_str());
  last = std::atoi(text.c_str() + dash + 1);
  return first > 0 && last >= first;
}

// Ranks that follow each other on one host.
struct Block {
  std::size_t host = 0;
  int ranks = 0;
};
std::vector<Block> blocksOf(const launch::plan::JobPlan& plan) {
  std::vector<Block> blocks;
  for (const launch::plan::RankPlan& rank : plan.ranks) {
    if (blocks.empty() || blocks.back().host != rank.hostIndex) {
      blocks.push_back({rank.hostIndex, 0});
    }
    ++blocks.back().ranks;
  }
  return blocks;
}

}  // namespace

bool wantsMpi(const launch::plan::JobPlan& plan) {
  return plan.size() > 1 && settingOf(plan, "FARANDOLE_ENGINE") == "mpi";
}

std::string hostWord(const launch::plan::HostPlan& host) {
  return launch::ssh::bareHost(host.name);
}

std::vector<std::pair<std::string, std::string>> rankSettings(Starter::Kind kind,
                                                              const std::string& interfaces,
                                                              const std::string& ports) {
  std::vector<std::pair<std::string, std::string>> settings;
  int first = 0;
  int last = 0;
  const bool ranged = parsePorts(ports, first, last);
  const std::string begin = std::to_string(first);
  if (kind == Starter::Kind::kOpenMpi) {
    if (!interfaces.empty()) settings.emplace_back("OMPI_MCA_btl_tcp_if_include", interfaces);
    if (ranged) {
      // The last one is its daemons'.
      const std::string count = std::to_string(std::max(1, last - first));
      for (const char* family : {"v4", "v6"}) {
        settings.emplace_back(std::string("OMPI_MCA_btl_tcp_port_min_") + family, begin);
        settings.emplace_back(std::string("OMPI_MCA_btl_tcp_port_range_") + family, count);
      }
    }
    return settings;
  }
  // MPICH speaks through UCX or libfabric, Intel MPI through libfabric.
  if (!interfaces.empty()) {
    settings.emplace_back("UCX_NET_DEVICES", interfaces);
    settings.emplace_back("FI_TCP_IFACE", interfaces.substr(0, interfaces.find(',')));
  }
  if (ranged) {
    settings.emplace_back("UCX_TCP_PORT_RANGE", begin + "-" + std::to_string(last));
    settings.emplace_back("FI_TCP_PORT_LOW_RANGE", begin);
    settings.emplace_back("FI_TCP_PORT_HIGH_RANGE", std::to_string(last));
  }
  return settings;
}

StarterCommand starterCommand(const Starter& starter, const launch::plan::JobPlan& plan,
                              const std::vector<std::string>& lender,
                              const std::string& remoteShell) {
  StarterCommand command;
  const auto set = [&](const char* name, const std::string& value) {
    command.variables.emplace_back(name, value);
  };
  const bool openMpi = starter.kind == Starter::Kind::kOpenMpi;
  const bool intel = starter.kind == Starter::Kind::kIntel;
  const std::string ports = settingOf(plan, "FARANDOLE_DATA_PORTS");
  const std::string& interfaces = starter.interfaces;
  const std::string first = interfaces.substr(0, interfaces.find(','));
  int low = 0;
  int high = 0;
  const bool ranged = parsePorts(ports, low, high);
  // Variables rather than flags: those of one release are errors in another. PRTE_ is Open MPI 5's.
  if (openMpi) {
    // Its daemons on the other hosts get it too, and refuse to start if they do not find
    // its first word there.
    set("OMPI_MCA_plm_rsh_agent", "/bin/sh " + remoteShell);
    set("PRTE_MCA_plm_ssh_agent", "/bin/sh " + remoteShell);
    set("OMPI_MCA_plm", "rsh");
    set("PRTE_MCA_plm", "ssh");
    // ssh leads from here to every host, never from host to host: only here it is known to work.
    set("OMPI_MCA_plm_rsh_no_tree_spawn", "1");
    set("PRTE_MCA_plm_ssh_no_tree_spawn", "1");
    // The ranks' number and processors are Farandole's business.
    set("OMPI_MCA_rmaps_base_oversubscribe", "1");
    set("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    set("OMPI_MCA_hwloc_base_binding_policy", "none");
    set("PRTE_MCA_hwloc_default_binding_policy", "none");
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                             "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"}) {
      set(name, "1");
    }
    if (!interfaces.empty()) {
      set("OMPI_MCA_oob_tcp_if_include", interfaces);
      set("PRTE_MCA_prte_if_include", interfaces);
    }
    // It takes all ports it is offered: the last one, and the ranks the others.
    if (ranged) set("OMPI_MCA_oob_tcp_dynamic_ipv4_ports", std::to_string(high));
  } else {
    set("HYDRA_LAUNCHER", "ssh");
    set("HYDRA_LAUNCHER_EXEC", remoteShell);
    set("I_MPI_HYDRA_BOOTSTRAP", "ssh");
    set("I_MPI_HYDRA_BOOTSTRAP_EXEC", remoteShell);
    set("I_MPI_PIN", "0");
    set("PATH", pathBefore(starter.program));
    if (!interfaces.empty()) {
      set("HYDRA_IFACE", first);
      set("I_MPI_HYDRA_IFACE", first);
    }
    if (ranged) {
      const std::string range = std::to_string(low) + ":" + std::to_string(high);
      set("MPIEXEC_PORT_RANGE", range);
      set("MPICH_PORT_RANGE", range);
      set("I_MPI_PORT_RANGE", range);
    }
  }
  for (const auto& [name, value] : rankSettings(starter.kind, interfaces, ports)) {
    set(name.c_str(), value);
  }

  // A batch system's allocation is the launcher's to read: ours has the last word on hosts.
  const bool alone = plan.hosts.empty() || (plan.hosts.size() == 1 && plan.hosts.front().local);
  command.words.push_back(starter.program);
  // MPICH's Hydra counts ranks host by host, as often as one is named; the others program by
  // program, Open MPI with a number of slots behind the host's name.
  const bool byBlock = openMpi || intel;
  // The folder is the ranks' business, and may not exist where MPI's starter looks for it.
  const auto add = [&](const std::string& ranks, const std::string& hosts) {
    command.words.insert(command.words.end(), {"-np", ranks, byBlock ? "-host" : "-hosts", hosts});
    command.words.insert(command.words.end(), {"-wdir", "/"});
    command.words.insert(command.words.end(), lender.begin(), lender.end());
  };
  std::string all;
  for (const Block& block : blocksOf(plan)) {
    const std::string ranks = std::to_string(block.ranks);
    std::string host = alone ? "localhost" : hostWord(plan.hosts[block.host]);
    if (!intel) host += ":" + ranks;
    if (byBlock) {
      if (!all.empty()) command.words.emplace_back(":");
      add(ranks, host);
    }
    all += (all.empty() ? "" : ",") + host;
  }
  if (!byBlock) add(std::to_string(plan.size()), all);
  return command;
}

std::string remoteShellScript(const launch::plan::JobPlan& plan,
                              const launch::ssh::SshOptions& options,
                              const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string restored;
  for (const auto& [name, value] : variables) {
    if (isShellName(name)) restored += "\nexport " + name + "=" + shellQuoted(value);
  }
  std::string hosts;
  for (const launch::plan::HostPlan& host : plan.hosts) {
    hosts += "\n" + shellQuoted(hostWord(host)) + ") ";
    if (host.local) {
      hosts += "exec /bin/sh -c \"$*\";;";
      continue;
    }
    std::vector<std::string> words = launch::ssh::sshArguments(host.ssh, options, "");
    words.pop_back();
    hosts += "restore; exec";
    for (const std::string& word : words) hosts += " " + shellQuoted(word);
    hosts += " \"$@\";;";
  }
  return fillTemplate(templates::kRemoteShell, {{"VARIABLES", restored}, {"HOSTS", hosts}});
}

std::vector<std::string> lenderWords(const std::string& treeId, const std::string& ownPath,
                                     const std::string& job, int seconds) {
  std::string script = launch::ssh::trustedPathFunction() + " " +
                       fillTemplate(joinLines(templates::kLender),
                                    {{"OWN", shellQuoted(ownPath)},
                                     {"ID", treeId},
                                     {"MACHINE", shellQuoted(process::machineIdentity())},
                                     {"JOB", job},
                                     {"SECONDS", std::to_string(seconds)}});
  return {"/bin/sh", "-c", std::move(script)};
}

}  // namespace farandole::launch::mpi
