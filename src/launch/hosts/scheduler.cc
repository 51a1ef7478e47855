#include "launch/hosts/scheduler.h"

#include <utility>

#include "base/text.h"
#include "launch/hosts/allocation_variables.h"
#include "launch/hosts/host_file.h"

namespace farandole::launch::hosts {
namespace {

using Found = Result<std::optional<Allocation>>;

// Old and new Open MPI, Intel MPI, MPICH.
constexpr const char* kFileVariables[] = {"OMPI_MCA_orte_default_hostfile",
                                          "PRTE_MCA_prte_default_hostfile", "I_MPI_HYDRA_HOST_FILE",
                                          "HYDRA_HOST_FILE"};

// The one host file that is named, if any.
Result<std::optional<Variable>> namedFile(const GetEnv& getEnv) {
  std::optional<Variable> found;
  for (const char* name : kFileVariables) {
    const auto variable = firstSet(getEnv, {name});
    if (!variable) continue;
    if (found && found->value != variable->value) {
      return badVariable(*variable, "but " + found->shown());
    }
    if (!found) found = variable;
  }
  return found;
}

// The slots of hosts whose line has none. Words such as "all" leave them open.
int defaultSlots(const GetEnv& getEnv) {
  const auto variable = firstSet(getEnv, {"OMPI_MCA_orte_set_default_slots",
                                          "PRTE_MCA_prte_set_default_slots", "I_MPI_PERHOST"});
  const auto slots = variable ? parseDigits(variable->value) : std::nullopt;
  return slots && *slots <= kMostSlots ? static_cast<int>(*slots) : 0;
}

Found hostFileAllocation(const GetEnv& getEnv, const std::string& path, std::string source) {
  auto hosts = readHostFile(path);
  if (!hosts.ok()) return hosts.status();
  for (HostSpec& host : *hosts) {
    if (host.slots == 0) host.slots = defaultSlots(getEnv);
  }
  return std::optional<Allocation>(Allocation{std::move(source), std::move(*hosts)});
}

}  // namespace

std::string Variable::shown() const { return name + "=" + quoted(value); }

std::optional<Variable> firstSet(const GetEnv& getEnv, const std::vector<const char*>& names) {
  for (const char* name : names) {
    const char* value = getEnv(name);
    if (value != nullptr && *value != '\0') return Variable{name, value};
  }
  return std::nullopt;
}

Status badVariable(const Variable& variable, const std::string& why) {
  return Status::invalid(variable.shown() + ": " + why +
                         "; name the hosts yourself, for example -H a:2,b:2");
}

Found schedulerAllocation(const GetEnv& getEnv, const std::string& operatorHostFile) {
  auto named = namedFile(getEnv);
  if (!named.ok()) return named.status();
  const std::optional<Variable>& file = *named;
  const auto role = firstSet(getEnv, {"K_MPI_JOB_ROLE"});
  if (role && role->value == "launcher") {
    const std::string path = file ? file->value : operatorHostFile;
    return hostFileAllocation(getEnv, path, "MPIJob (" + path + ")");
  }
  for (auto* read : {slurmAllocation, lsfAllocation, pbsAllocation}) {
    auto found = read(getEnv);
    if (!found.ok() || *found) return found;
  }
  if (file) return hostFileAllocation(getEnv, file->value, file->name + " (" + file->value + ")");
  return std::optional<Allocation>();
}

}  // namespace farandole::launch::hosts
