// Loading an MPI library: the part of mpi_library.h that looks at this process and its disks.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "mpi_library/mpi_library.h"

namespace farandole::mpi_library {
namespace {

namespace fs = std::filesystem;

// Debian's MPICH calls its library libmpich.
std::vector<std::string> fileNames(MpiAbi abi) {
  if (abi == MpiAbi::kOpenMpi) return {"libmpi.so.40"};
  return {"libmpi.so.12", "libmpich.so.12"};
}

std::string pathOf(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) {
    return {};
  }
  return map->l_name;
}

// What a handle's library is. MPI's own standard binary interface (libmpi_abi) is a third kind.
std::optional<MpiAbi> abiOf(void* handle) {
  if (dlsym(handle, "MPI_Comm_create_group") == nullptr) return std::nullopt;
  if (dlsym(handle, "ompi_mpi_comm_world") != nullptr) return MpiAbi::kOpenMpi;
  if (pathOf(handle).find("libmpi_abi") != std::string::npos) return std::nullopt;
  return MpiAbi::kMpich;
}

bool startsWith(std::string_view text, std::string_view start) { return text.starts_with(start); }

// libmpi.so.40, libmpich.so.12, Cray's libmpi_gnu_91.so.12; not the Fortran and C++ layers.
bool looksLikeMpi(std::string_view file) {
  for (const std::string_view layer :
       {"libmpi_mpifh", "libmpi_usempi", "libmpi_cxx", "libmpi_java", "libmpichcxx", "libmpichfort",
        "libmpicxx", "libmpifort", "libmpifh"}) {
    if (startsWith(file, layer)) return false;
  }
  return startsWith(file, "libmpi") && file.find(".so") != std::string_view::npos;
}

// The MPI library this process has loaded already, if any.
std::string loadedPath() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (!looksLikeMpi(path.substr(path.rfind('/') + 1))) return 0;
        *static_cast<std::string*>(result) = std::string(path);
        return 1;
      },
      &found);
  return found;
}

// Where a library may lie that the system's loader does not know, best first.
std::vector<fs::path> likelyFolders(const GetEnv& getEnv, bool started) {
  std::vector<fs::path> folders;
  const auto beside = [&](const fs::path& program) {
    const fs::path root = program.parent_path().parent_path();
    for (const char* lib : {"lib", "lib64", "lib/release"}) folders.push_back(root / lib);
  };
  if (started) {
    // A rank of our launcher is no descendant of MPI's starter. The launcher names the starter in
    // the environment.
    const char* const told = getEnv(kMpiStarterVariable);
    if (told != nullptr && *told == '/') beside(told);
    for (const fs::path& program : mpiAncestors()) beside(program);
    return folders;
  }
  for (const char* root :
       {"OPAL_PREFIX", "I_MPI_ROOT", "MPI_HOME", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* value = getEnv(root); value != nullptr && *value != '\0') {
      for (const char* lib : {"lib", "lib64", "lib/release"}) {
        folders.push_back(fs::path(value) / lib);
      }
    }
  }
  const char* path = getEnv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path folder(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    for (const char* program : {"mpirun", "mpiexec"}) {
      std::error_code error;
      const fs::path real = fs::canonical(folder / program, error);
      if (!error && real.is_absolute()) beside(real);
    }
  }
  return folders;
}

// Loads it globally: the engine and MPI's own plugins find its symbols in the global scope.
std::optional<MpiLibrary> tryLoad(const std::string& file, MpiAbi abi, std::string why,
                                  std::string& problem) {
  // First locally, to find out what it is: an object that is global once stays global.
  void* handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* text = dlerror();
    if (file.find('/') != std::string::npos && text != nullptr) problem = text;
    return std::nullopt;
  }
  if (abiOf(handle) != abi) {
    problem = file + " is no library of the " + std::string(name(abi)) + " kind";
    dlclose(handle);
    return std::nullopt;
  }
  const std::string path = pathOf(handle);
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* text = dlerror();
    problem = text == nullptr ? path : text;
    return std::nullopt;
  }
  return MpiLibrary{abi, path, std::move(why)};
}

std::optional<MpiLibrary> findInstalled(MpiAbi abi, const GetEnv& getEnv, const MpiStarter& starter,
                                        std::string& problem) {
  const bool started = starter.kind != MpiStarter::Kind::kNone;
  const auto search = [&](bool nearStarter, const char* why) -> std::optional<MpiLibrary> {
    for (const fs::path& folder : likelyFolders(getEnv, nearStarter)) {
      for (const std::string& file : fileNames(abi)) {
        std::error_code error;
        if (!fs::exists(folder / file, error)) continue;
        if (auto found = tryLoad((folder / file).string(), abi, why, problem)) return found;
      }
    }
    return std::nullopt;
  };
  if (started) {
    if (auto found = search(true, "it lies beside the mpirun that started this process")) {
      return found;
    }
  }
  for (const std::string& file : fileNames(abi)) {
    const char* why = started ? "it is of the kind that started this process" : "it is installed";
    if (auto found = tryLoad(file, abi, why, problem)) return found;
  }
  return search(false, "it lies beside the mpirun in PATH, or where the environment says");
}

Result<MpiLibrary> useLoaded(const std::string& path, const MpiName& wanted) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  const std::optional<MpiAbi> abi = handle == nullptr ? std::nullopt : abiOf(handle);
  if (!abi) {
    return Status::unavailable("this process already uses the MPI library " + path +
                               ", whose kind the mpi engine does not know; it needs libmpi.so.40 "
                               "(Open MPI) or libmpi.so.12 (MPICH, Intel MPI)");
  }
  std::error_code error;
  const bool contradicts =
      wanted.given &&
      (wanted.isPath ? !fs::equivalent(path, wanted.path, error) : wanted.abi != *abi);
  if (contradicts) {
    return Status::invalid("--mpi (FARANDOLE_MPI) asks for " +
                           (wanted.isPath ? wanted.path : std::string(name(wanted.abi))) +
                           ", but this process already uses " + path +
                           ", and a process can use one MPI only");
  }
  return MpiLibrary{*abi, path, "this process already uses it"};
}

std::string missing(const std::vector<MpiAbi>& kinds, const MpiStarter& starter,
                    const std::string& problem) {
  std::string text = "the mpi engine needs an MPI: ";
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += " or ";
    text += kinds[i] == MpiAbi::kOpenMpi ? "libmpi.so.40 (Open MPI)"
                                         : "libmpi.so.12 (MPICH, Intel MPI)";
  }
  text += " was not found";
  if (starter.kind == MpiStarter::Kind::kOpenMpi || starter.kind == MpiStarter::Kind::kMpich) {
    text += ", though its mpirun started this process";
  }
  if (!problem.empty()) text += " (" + problem + ")";
  return text +
         "; install it on this machine, or name its libmpi.so with --mpi or FARANDOLE_MPI, or use "
         "another engine";
}

}  // namespace

Result<MpiLibrary> loadMpiLibrary(std::string_view wanted, const GetEnv& getEnv) {
  Result<MpiName> named = parseMpiName(wanted);
  if (!named.ok()) return named.status();
  if (const std::string path = loadedPath(); !path.empty()) return useLoaded(path, *named);

  const MpiStarter starter = mpiStarter(getEnv);
  Result<std::vector<MpiAbi>> kinds = mpiCandidates(starter, *named);
  if (!kinds.ok()) return kinds.status();
  std::string problem;
  for (const MpiAbi abi : *kinds) {
    std::optional<MpiLibrary> found;
    if (named->isPath) {
      found = tryLoad(named->path, abi, "--mpi or FARANDOLE_MPI names it", problem);
    } else {
      found = findInstalled(abi, getEnv, starter, problem);
    }
    if (found) return *found;
  }
  return Status::unavailable(missing(*kinds, starter, problem));
}

}  // namespace farandole::mpi_library
