#include "launch/mpi/starter_environment.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "launch/mpi/ticket.h"
#include "launch/plan/passed_environment.h"

namespace farandole::launch::mpi {
namespace {

// What a program, a shell and ssh need; what our guardian knows processes by; and what a sanitized
// build is told.
constexpr std::string_view kStarterNames[] = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TERM",
    "TZ",
    "LANG",
    "HOSTNAME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "KRB5CCNAME",
    "KRB5_CONFIG",
    "XDG_CACHE_HOME",
    "FARANDOLE_JOB",
    "PE_HOSTFILE",
    "ASAN_OPTIONS",
    "TSAN_OPTIONS",
    "UBSAN_OPTIONS",
    "LSAN_OPTIONS",
};
// Languages, networks and topologies, batch systems, and the modules of a cluster, whose mpiexec
// may be a script. MPI's own are isMpiVariable()'s.
constexpr std::string_view kStarterFamilies[] = {
    "LC_",  "UCX_",  "FI_",  "PSM_", "PSM2_", "PSM3_",   "HWLOC_", "MV2_",  "MVP_",  "SLURM_",
    "PBS_", "PALS_", "LSB_", "LSF_", "SGE_",  "COBALT_", "OAR_",   "CRAY_", "LMOD_", "MODULE",
};
// Variables of MPI that an enclosing job has left. The starter would believe that it is part of it.
constexpr std::string_view kEnclosing[] = {"PMIX_", "PMI_", "OMPI_COMM_WORLD_"};

bool isStarters(std::string_view name, std::string_view value) {
  const bool known = std::find(std::begin(kStarterNames), std::end(kStarterNames), name) !=
                         std::end(kStarterNames) ||
                     launch::plan::startsWithAny(name, kStarterFamilies) || isMpiVariable(name);
  return known && !launch::plan::isSecret(name, value);
}

}  // namespace

StarterEnvironment starterEnvironment(const std::vector<std::pair<std::string, std::string>>& ours,
                                      const char* const* environment) {
  StarterEnvironment result;
  std::unordered_set<std::string_view> names;
  for (const auto& [name, value] : ours) {
    if (names.insert(name).second) result.entries.push_back(name + "=" + value);
  }
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (names.contains(name) || launch::plan::startsWithAny(name, kEnclosing)) continue;
    if (isStarters(name, value)) {
      result.entries.emplace_back(entry);
    } else if (!name.starts_with("FARANDOLE_SECRET")) {
      result.held.emplace_back(name, value);
    }
  }
  return result;
}

}  // namespace farandole::launch::mpi
