// Finds and loads the engines that are shared objects of their own (collective/engine_plugin.h).
#pragma once

#include <string>
#include <string_view>

#include "collective/engine_plugin.h"
#include "mpi_library/mpi_library.h"

namespace farandole::collective {

struct LoadedEngine {
  const EngineTable* table = nullptr;
  std::string path;                 // the file of the engine
  mpi_library::MpiLibrary library;  // the MPI it uses
  mpi_library::MpiStarter
      starter;  // who started this process; its size is checked by startMpiEngine
};

// Where the engine of that file name is: in FARANDOLE_ENGINE_PATH, or beside the object this code
// is in, as below. remedy: what to do if it is nowhere.
Result<std::string> findEngine(const std::string& file, std::string_view remedy);

// Looks in FARANDOLE_ENGINE_PATH, then beside the object this code is in: farandole/engines/ next
// to libfarandole.so, or ../lib/farandole/engines/ next to a program. Loads once per process; later
// calls return the same. wanted: openmpi, mpich or the path of a libmpi; empty: FARANDOLE_MPI.
// Thread-safe.
Result<LoadedEngine> loadMpiEngine(std::string_view wanted);

// loadMpiEngine and its start. A process whose starter speaks of more ranks than its MPI sees is
// refused: each would compute alone.
Result<std::unique_ptr<Engine>> startMpiEngine(std::string_view wanted, EngineStart start);

// Loads one engine object, checks that it is that engine of this build, and asks it whether it can
// be used here. It stays loaded. remedy: what to do if the system cannot load it; may be empty.
Result<const EngineTable*> openEngine(const std::string& path, std::string_view name,
                                      std::string_view remedy);

// Whether a table found in the object at `path` is that of the engine, and of this build.
Status checkEngine(const EngineTable* table, const std::string& path, std::string_view name);

}  // namespace farandole::collective
