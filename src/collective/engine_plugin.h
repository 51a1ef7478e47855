// What an engine in a shared object of its own offers: engines with outside dependencies (MPI,
// Gloo) are loaded on demand, so that a machine without them runs everything else.
//
// The object exports one C function, farandole_engine, which returns a table. Behind it are C++
// interfaces: loader and engine must come from the same build, which the two versions in the table
// prove. No exception leaves either side. The objects are never unloaded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "collective/communicator.h"

namespace farandole::collective::gloo {
struct GlooOptions;  // gloo/gloo_engine.h
}  // namespace farandole::collective::gloo

namespace farandole::collective {

// Raised with every change of this file, communicator.h or gloo/gloo_engine.h.
inline constexpr std::uint32_t kEngineInterface = 6;

struct EngineStart {
  // All ranks must have started the engine by then.
  Deadline deadline = Deadline::never();
  // What the job says of itself; an engine that sees another number refuses. 0: not known.
  int expectedSize = 0;
  // Sets of so many members leave to the library what it can reduce as we do; smaller ones do it
  // themselves, which is faster there and always deterministic.
  int nativeFrom = 9;
  // How long the outside library may take for its end once all ranks are there.
  Duration finalizeLimit = std::chrono::seconds(60);
  // The engine has its own copy of the log's settings.
  LogLevel logLevel = LogLevel::kWarning;
};

// One job's use of an outside library. Thread-safe towards itself, except that exchange and
// communicator are called by all ranks concerned in the same order. Outlives its communicators.
class Engine {
 public:
  virtual ~Engine() = default;

  // The rank and size as the outside library numbers the processes.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "Open MPI 4.1.4".
  virtual std::string_view library() const = 0;
  // A notice that rank 0 shows to the user once; empty: none.
  virtual std::string_view notice() const = 0;

  // Collective over all ranks: everybody's text, by rank. For what ranks must know of each other
  // before they can talk (addresses, public keys). Others on the network may read it.
  virtual Result<std::vector<std::string>> exchange(std::string_view mine, Deadline deadline) = 0;

  // Collective over the ranks named, in the order of their member numbers; this process is one of
  // them. key: 24 bits, the same on all members, unique among living sets, and not used again after
  // a failure.
  virtual Result<std::unique_ptr<Communicator>> communicator(std::span<const int> ranks,
                                                             std::uint32_t key,
                                                             Deadline deadline) = 0;

  // A rank is gone for good: the outside library must not wait for it at its own end. why: a line
  // that names it. Any thread.
  virtual void rankLost(const std::string& why) = 0;

  // Ends all processes of the job through the outside library. Does not return. Any thread.
  [[noreturn]] virtual void abort(int code) = 0;
};

struct EngineTable {
  std::uint32_t interface;
  const char* version;  // the version of the product
  const char* name;     // "mpi", "gloo"
  // Why this object cannot be used in this process; ok if it can.
  Status (*usable)();
  // One of the two; the other is null. An engine with a network of its own is started once per
  // process; one that computes on our connections makes a communicator for each process set.
  Result<std::unique_ptr<Engine>> (*start)(const EngineStart&);
  std::unique_ptr<Communicator> (*make)(gloo::GlooOptions&&);
};

inline constexpr const char* kEngineEntry = "farandole_engine";
using EngineEntry = const EngineTable* (*)();

}  // namespace farandole::collective
