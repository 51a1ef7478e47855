#include <charconv>
#include <cstring>

#include "mpi_library/mpi_library.h"

namespace farandole::mpi_library {
namespace {

bool isSet(const GetEnv& getEnv, const char* variable) {
  const char* value = getEnv(variable);
  return value != nullptr && *value != '\0';
}

int number(const GetEnv& getEnv, const char* variable) {
  const char* text = getEnv(variable);
  if (text == nullptr) return 0;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end && value > 0 ? value : 0;
}

}  // namespace

std::string_view name(MpiAbi abi) { return abi == MpiAbi::kOpenMpi ? "openmpi" : "mpich"; }

MpiStarter mpiStarter(const GetEnv& getEnv) {
  using Kind = MpiStarter::Kind;
  if (isSet(getEnv, "PMI_FD") || isSet(getEnv, "PMI_PORT")) {
    // Hydra's; also that of srun --mpi=pmi2, which an Open MPI may have been built for.
    const bool slurm = isSet(getEnv, "SLURM_PROCID") && isSet(getEnv, "PMI_JOBID");
    return {slurm ? Kind::kEither : Kind::kMpich, number(getEnv, "PMI_SIZE"), MpiAbi::kMpich};
  }
  if (isSet(getEnv, "PMIX_NAMESPACE") && isSet(getEnv, "PMIX_RANK")) {
    const char* space = getEnv("PMIX_NAMESPACE");
    // srun --mpi=pmix serves every library that speaks PMIx.
    if (std::strncmp(space, "slurm.", 6) == 0)
      return {Kind::kEither, number(getEnv, "SLURM_STEP_NUM_TASKS")};
    return {Kind::kOpenMpi, number(getEnv, "OMPI_COMM_WORLD_SIZE")};
  }
  return {};
}

Result<MpiName> parseMpiName(std::string_view text) {
  MpiName result;
  if (text.empty()) return result;
  result.given = true;
  if (text.find('/') != std::string_view::npos) {
    result.isPath = true;
    result.path = std::string(text);
    return result;
  }
  if (text == "openmpi") return result;
  for (const std::string_view known : {"mpich", "intelmpi", "impi", "mvapich", "cray"}) {
    if (text == known) {
      result.abi = MpiAbi::kMpich;
      return result;
    }
  }
  return Status::invalid("\"" + std::string(text) +
                         "\" is no MPI that is known here; --mpi (FARANDOLE_MPI) takes openmpi, "
                         "mpich, intelmpi, or the path of a libmpi.so");
}

Result<std::vector<MpiAbi>> mpiCandidates(const MpiStarter& starter, const MpiName& wanted) {
  using Kind = MpiStarter::Kind;
  const bool decided = starter.kind == Kind::kOpenMpi || starter.kind == Kind::kMpich;
  const MpiAbi started = starter.kind == Kind::kMpich ? MpiAbi::kMpich : MpiAbi::kOpenMpi;
  if (wanted.given && !wanted.isPath) {
    if (decided && wanted.abi != started) {
      return Status::invalid("--mpi (FARANDOLE_MPI) says " + std::string(name(wanted.abi)) +
                             ", but this process was started by the mpirun of " +
                             std::string(name(started)) +
                             "; leave the name away, or use the other mpirun");
    }
    return std::vector<MpiAbi>{wanted.abi};
  }
  if (decided) return std::vector<MpiAbi>{started};
  if (starter.likely == MpiAbi::kMpich)
    return std::vector<MpiAbi>{MpiAbi::kMpich, MpiAbi::kOpenMpi};
  return std::vector<MpiAbi>{MpiAbi::kOpenMpi, MpiAbi::kMpich};
}

}  // namespace farandole::mpi_library
