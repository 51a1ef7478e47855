#include "collective/engine_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/mutex.h"

namespace farandole::collective {
namespace {

constexpr const char* kFolder = "farandole/engines";

// The folder of the shared object, or of the program, that this code is part of.
std::string ownFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&openEngine), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(info.dli_fname, error);
  if (error) path = std::filesystem::canonical("/proc/self/exe", error);
  return error ? std::string() : path.parent_path().string();
}

std::vector<std::string> engineFolders() {
  std::vector<std::string> folders;
  if (const char* set = std::getenv("FARANDOLE_ENGINE_PATH"); set != nullptr && *set != '\0') {
    folders.emplace_back(set);
  }
  if (const std::string own = ownFolder(); !own.empty()) {
    folders.push_back(own + "/" + kFolder);
    folders.push_back(own + "/../lib/" + kFolder);
  }
  return folders;
}

Result<LoadedEngine> loadFresh(std::string_view wanted) {
  const GetEnv getEnv = [](const char* variable) { return std::getenv(variable); };
  std::string said(wanted);
  if (const char* set = getEnv("FARANDOLE_MPI"); said.empty() && set != nullptr) said = set;
  Result<mpi_library::MpiLibrary> library = mpi_library::loadMpiLibrary(said, getEnv);
  if (!library.ok()) return library.status();
  Result<std::string> path =
      findEngine("libfarandole_mpi_" + std::string(name(library->abi)) + ".so",
                 "build it on a machine that has the headers of this MPI");
  if (!path.ok()) return path.status();
  Result<const EngineTable*> table = openEngine(*path, "mpi", "");
  if (!table.ok()) {
    return Status(table.status().code(),
                  table.status().message() + " (with " + library->path + ")");
  }
  return LoadedEngine{*table, *path, *library, mpi_library::mpiStarter(getEnv)};
}

}  // namespace

Result<std::string> findEngine(const std::string& file, std::string_view remedy) {
  std::string places;
  for (const std::string& folder : engineFolders()) {
    std::error_code error;
    const std::string path = folder + "/" + file;
    if (std::filesystem::exists(path, error)) return path;
    places += (places.empty() ? "" : ", ") + folder;
  }
  return Status::unavailable("this copy of Farandole lacks " + file + " (looked in " + places +
                             "); " + std::string(remedy) + ", or use another engine");
}

Status checkEngine(const EngineTable* table, const std::string& path, std::string_view name) {
  if (table == nullptr) {
    return Status::unavailable(path + " is not an engine of Farandole");
  }
  // The version is read only from a table whose shape is known.
  if (table->interface != kEngineInterface) {
    return Status::unavailable("the engine " + path + " is of another version of Farandole " +
                               "(interface " + std::to_string(table->interface) + ", not " +
                               std::to_string(kEngineInterface) + "); install both from one build");
  }
  if (std::strcmp(table->version, FARANDOLE_VERSION) != 0) {
    return Status::unavailable("the engine " + path + " is of Farandole " + table->version +
                               ", the library of " FARANDOLE_VERSION
                               "; install both from one build");
  }
  if (table->name != name) {
    return Status::unavailable(path + " is the engine " + table->name + ", not " +
                               std::string(name));
  }
  return {};
}

Result<const EngineTable*> openEngine(const std::string& path, std::string_view name,
                                      std::string_view remedy) {
  // NODELETE: the engine's end is the process's; MPI cannot be started twice. LOCAL: another Gloo
  // in this process, PyTorch's say, must not meet ours.
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) {
    const char* why = dlerror();
    return Status::unavailable("the engine " + path + " cannot be loaded: " +
                               (why == nullptr ? "no reason given" : why) + std::string(remedy));
  }
  const auto entry = reinterpret_cast<EngineEntry>(dlsym(object, kEngineEntry));
  const EngineTable* const table = entry == nullptr ? nullptr : entry();
  FARANDOLE_RETURN_IF_ERROR(checkEngine(table, path, name));
  FARANDOLE_RETURN_IF_ERROR(table->usable());
  return table;
}

Result<LoadedEngine> loadMpiEngine(std::string_view wanted) {
  static Mutex mutex;
  static std::optional<LoadedEngine> loaded GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (loaded) return *loaded;
  Result<LoadedEngine> fresh = loadFresh(wanted);
  if (fresh.ok()) loaded = *fresh;
  return fresh;
}

Result<std::unique_ptr<Engine>> startMpiEngine(std::string_view wanted, EngineStart start) {
  Result<LoadedEngine> loaded = loadMpiEngine(wanted);
  if (!loaded.ok()) return loaded.status();
  if (start.expectedSize == 0) start.expectedSize = loaded->starter.size;
  Result<std::unique_ptr<Engine>> engine = loaded->table->start(start);
  if (engine.ok()) return engine;
  Status status(engine.status().code(), engine.status().message() + " (" + loaded->library.path +
                                            ": " + loaded->library.why + ")");
  return status;
}

}  // namespace farandole::collective
