// Config: the environment variables the library reads, in one place: name, meaning, default.
//
// A value that does not parse is an error that says what was found and what is allowed; it never
// becomes 0. The table behind it (configVariables) is what docs/environment.md is checked against.
// It lists also what is read before there is a Config, or by an engine, and is no part of it; not
// what other programs call a rank (RANK, SLURM_PROCID, …): runtime/identity.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace farandole {

// What connects the ranks of different machines.
enum class EngineChoice { kAuto, kShm, kLink, kGloo, kMpi };

// How variables are looked up: nullptr for one that is not set.
using GetEnv = std::function<const char*(const char*)>;

struct Config {
  // Identity: set by the launcher, outranks every other family of variables. Without it: one rank.
  int rank = 0;
  int size = 1;
  int localRank = 0;
  int localSize = 1;
  int machine = 0;  // number of this machine
  std::string host = "localhost";
  std::string job;     // names the job; marks its processes
  std::string agent;   // the agent's socket
  std::string secret;  // hex; proves membership of the job

  // How the rank behaves.
  std::chrono::milliseconds startTimeout{30'000};
  std::int64_t fusionBytes = 64 << 20;
  std::int64_t eagerBytes = 256 << 10;
  std::chrono::microseconds batchDelay{100};
  std::int64_t planCapacity = 4096;
  std::chrono::microseconds spin{50};
  std::chrono::microseconds yield{5000};
  std::chrono::microseconds linkSpin{1000};
  std::chrono::milliseconds stallWarning{60'000};
  std::chrono::milliseconds stallShutdown{0};
  std::string timeline;
  std::int64_t timelineBytes = 64 << 20;
  std::int64_t arenaBytes = 0;
  std::string simd;

  // What holds between machines.
  EngineChoice engine = EngineChoice::kAuto;
  bool hierarchy = true;                 // shared memory inside machines, the engine between them
  std::string wireSecurity = "encrypt";  // encrypt, integrity or handshake
  std::string wire = "native";           // native, fp16 or bf16
  int firstPort = 0;                     // 0: any
  int lastPort = 0;
  std::string bind;                     // address to listen on; empty: all
  std::vector<std::string> advertise;   // addresses that the other ranks get; empty: what is found
  std::vector<std::string> interfaces;  // only these; empty: all
  int lanes = 1;                        // connections per pair of ranks
  std::string congestion = "auto";      // TCP's congestion control: auto, system or a name

  LogLevel logLevel = LogLevel::kWarning;

  // Reads and checks.
  static Result<Config> read(const GetEnv& getEnv);
  static Result<Config> fromEnvironment();
};

struct ConfigVariable {
  std::string_view name;
  std::string_view meaning;
  std::string_view byDefault;
  // Changes nothing for a variable that its reader parses.
  std::function<Status(Config&, std::string_view value)> parse;
};
std::span<const ConfigVariable> configVariables();

}  // namespace farandole
