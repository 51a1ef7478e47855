#include "base/config.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <vector>

namespace farandole {
namespace {

Status refuse(std::string_view allowed) {
  return Status::invalid("expected " + std::string(allowed));
}

// Whole decimal numbers within [low, high].
Result<std::int64_t> parseInteger(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return refuse("a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

// Bytes with an optional unit: 65536, 64K, 64M, 2G.
Result<std::int64_t> parseBytes(std::string_view text) {
  std::int64_t unit = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'k':
      case 'K': unit = 1LL << 10; break;
      case 'm':
      case 'M': unit = 1LL << 20; break;
      case 'g':
      case 'G': unit = 1LL << 30; break;
      default: break;
    }
    if (unit != 1) text.remove_suffix(1);
  }
  auto value = parseInteger(text, 0, std::numeric_limits<std::int64_t>::max() / unit);
  if (!value.ok()) return refuse("a number of bytes such as 65536, 64K, 16M or 2G");
  return value.value() * unit;
}

Result<double> parseSeconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > 1e7) {
    return refuse("a number of seconds such as 30 or 0.5");
  }
  return value;
}

using Parse = std::function<Status(Config&, std::string_view)>;

template <typename T>
Parse integer(T Config::*field, std::int64_t low, std::int64_t high) {
  return [=](Config& config, std::string_view text) -> Status {
    auto value = parseInteger(text, low, high);
    if (value.ok()) config.*field = static_cast<T>(value.value());
    return value.status();
  };
}

Parse bytes(std::int64_t Config::*field) {
  return [=](Config& config, std::string_view text) -> Status {
    auto value = parseBytes(text);
    if (value.ok()) config.*field = value.value();
    return value.status();
  };
}

Parse seconds(std::chrono::milliseconds Config::*field) {
  return [=](Config& config, std::string_view text) -> Status {
    auto value = parseSeconds(text);
    if (value.ok()) {
      config.*field = std::chrono::milliseconds(static_cast<std::int64_t>(value.value() * 1000));
    }
    return value.status();
  };
}

Parse microseconds(std::chrono::microseconds Config::*field) {
  return [=](Config& config, std::string_view text) -> Status {
    auto value = parseInteger(text, 0, 10'000'000);
    if (value.ok()) config.*field = std::chrono::microseconds(value.value());
    return value.status();
  };
}

Parse text(std::string Config::*field) {
  return [=](Config& config, std::string_view value) -> Status {
    config.*field = std::string(value);
    return {};
  };
}

Status parseLogLevel(Config& config, std::string_view text) {
  constexpr std::pair<std::string_view, LogLevel> kLevels[] = {{"debug", LogLevel::kDebug},
                                                               {"info", LogLevel::kInfo},
                                                               {"warning", LogLevel::kWarning},
                                                               {"error", LogLevel::kError},
                                                               {"off", LogLevel::kOff}};
  for (const auto& [label, level] : kLevels) {
    if (label == text) {
      config.logLevel = level;
      return {};
    }
  }
  return refuse("debug, info, warning, error or off");
}

Status parseSecret(Config& config, std::string_view text) {
  if (text.size() < 32 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return refuse("at least 32 lower-case hexadecimal digits");
  }
  config.secret = std::string(text);
  return {};
}

// One of some words.
Parse choice(std::string Config::*field, std::vector<std::string_view> words) {
  return [=, words = std::move(words)](Config& config, std::string_view text) -> Status {
    std::string allowed;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == text) {
        config.*field = std::string(text);
        return {};
      }
      if (i > 0) allowed += i + 1 == words.size() ? " or " : ", ";
      allowed += words[i];
    }
    return refuse(allowed);
  };
}

Status parseEngine(Config& config, std::string_view text) {
  constexpr std::pair<std::string_view, EngineChoice> kEngines[] = {{"auto", EngineChoice::kAuto},
                                                                    {"shm", EngineChoice::kShm},
                                                                    {"link", EngineChoice::kLink},
                                                                    {"gloo", EngineChoice::kGloo},
                                                                    {"mpi", EngineChoice::kMpi}};
  for (const auto& [label, engine] : kEngines) {
    if (label == text) {
      config.engine = engine;
      return {};
    }
  }
  return refuse("auto, shm, link, gloo or mpi");
}

Status readElsewhere(Config& /*config*/, std::string_view /*text*/) { return {}; }

Status parseHierarchy(Config& config, std::string_view text) {
  if (text != "on" && text != "off") return refuse("on or off");
  config.hierarchy = text == "on";
  return {};
}

// "29600-29700", or one number.
Status parsePorts(Config& config, std::string_view text) {
  constexpr std::string_view kAllowed = "a range of ports such as 29600-29700";
  const auto dash = text.find('-');
  auto first = parseInteger(text.substr(0, dash), 1, 65535);
  auto last =
      dash == std::string_view::npos ? first : parseInteger(text.substr(dash + 1), 1, 65535);
  if (!first.ok() || !last.ok() || *first > *last) return refuse(kAllowed);
  config.firstPort = static_cast<int>(*first);
  config.lastPort = static_cast<int>(*last);
  return {};
}

Parse list(std::vector<std::string> Config::*field) {
  return [=](Config& config, std::string_view text) -> Status {
    (config.*field).clear();
    while (!text.empty()) {
      const auto comma = std::min(text.find(','), text.size());
      if (comma > 0) (config.*field).emplace_back(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return {};
  };
}

Status parseSimd(Config& config, std::string_view text) {
  if (text != "baseline" && text != "avx2" && text != "avx512") {
    return refuse("baseline, avx2 or avx512");
  }
  config.simd = std::string(text);
  return {};
}

constexpr std::int64_t kMaxRanks = 1 << 20;

const std::vector<ConfigVariable>& table() {
  static const std::vector<ConfigVariable> kTable = {
      {"FARANDOLE_RANK", "this process's rank", "0", integer(&Config::rank, 0, kMaxRanks)},
      {"FARANDOLE_SIZE", "number of ranks in the job", "1", integer(&Config::size, 1, kMaxRanks)},
      {"FARANDOLE_LOCAL_RANK", "rank among those of this machine", "0",
       integer(&Config::localRank, 0, kMaxRanks)},
      {"FARANDOLE_LOCAL_SIZE", "number of ranks on this machine", "1",
       integer(&Config::localSize, 1, kMaxRanks)},
      {"FARANDOLE_MACHINE", "number of this machine among the job's", "0",
       integer(&Config::machine, 0, kMaxRanks)},
      {"FARANDOLE_HOST", "this machine's name in messages", "localhost", text(&Config::host)},
      {"FARANDOLE_JOB", "the job's name; marks its processes", "", text(&Config::job)},
      {"FARANDOLE_AGENT", "the agent's socket", "", text(&Config::agent)},
      {"FARANDOLE_SECRET", "the job's secret, in hexadecimal", "", parseSecret},
      {"FARANDOLE_START_TIMEOUT", "seconds until all ranks must have called init", "30",
       seconds(&Config::startTimeout)},
      {"FARANDOLE_FUSION_BYTES", "at most so many bytes are reduced as one operation", "64M",
       bytes(&Config::fusionBytes)},
      {"FARANDOLE_EAGER_BYTES", "a batch of at least so many bytes starts at once", "256K",
       bytes(&Config::eagerBytes)},
      {"FARANDOLE_BATCH_DELAY_US",
       "microseconds a smaller batch waits for company while nobody waits for it", "100",
       microseconds(&Config::batchDelay)},
      {"FARANDOLE_PLAN_CAPACITY", "names whose description is remembered, per process set", "4096",
       integer(&Config::planCapacity, 1, 1 << 24)},
      {"FARANDOLE_SPIN_US", "microseconds a waiting thread spins before it sleeps", "50",
       microseconds(&Config::spin)},
      {"FARANDOLE_YIELD_US",
       "microseconds it stays awake behind that, for others to use its processor, while waits are "
       "that short",
       "5000", microseconds(&Config::yield)},
      {"FARANDOLE_LINK_SPIN_US",
       "the same while an operation runs between machines, if there are two processors per rank, "
       "or one rank",
       "1000", microseconds(&Config::linkSpin)},
      {"FARANDOLE_STALL_WARNING_SECONDS",
       "warn about a tensor some ranks have not submitted; 0: never", "60",
       seconds(&Config::stallWarning)},
      {"FARANDOLE_STALL_SHUTDOWN_SECONDS", "end the job because of such a tensor; 0: never", "0",
       seconds(&Config::stallShutdown)},
      {"FARANDOLE_TIMELINE", "write a Chrome trace of all ranks to this file", "",
       text(&Config::timeline)},
      {"FARANDOLE_TIMELINE_BYTES", "at most so many bytes of trace per rank", "64M",
       bytes(&Config::timelineBytes)},
      {"FARANDOLE_ARENA_BYTES",
       "address space for one rank's shared memory; 0: the machine's memory", "0",
       bytes(&Config::arenaBytes)},
      {"FARANDOLE_SIMD", "instruction set of the reductions: baseline, avx2, avx512",
       "the best one", parseSimd},
      {"FARANDOLE_ENGINE",
       "what connects machines: auto, shm, link, gloo (Gloo's functions on the link) or mpi",
       "auto", parseEngine},
      {"FARANDOLE_HIERARCHY",
       "on: shared memory inside a machine, the engine between machines; off: the engine for all",
       "on", parseHierarchy},
      {"FARANDOLE_WIRE_SECURITY", "between machines: encrypt, integrity or handshake", "encrypt",
       choice(&Config::wireSecurity, {"encrypt", "integrity", "handshake"})},
      {"FARANDOLE_WIRE", "how floats travel between machines: native, fp16 or bf16", "native",
       choice(&Config::wire, {"native", "fp16", "bf16"})},
      {"FARANDOLE_DATA_PORTS", "ports for the connections between machines, such as 29600-29700",
       "any", parsePorts},
      {"FARANDOLE_BIND", "the address to listen on", "all", text(&Config::bind)},
      {"FARANDOLE_ADVERTISE", "addresses the others are told, instead of those found", "",
       list(&Config::advertise)},
      {"FARANDOLE_NETWORK_INTERFACES", "network interfaces or addresses to use, instead of all", "",
       list(&Config::interfaces)},
      {"FARANDOLE_LANES", "connections per pair of ranks on different machines", "1",
       integer(&Config::lanes, 1, 16)},
      {"FARANDOLE_CONGESTION",
       "TCP's congestion control between machines: auto (none that paces), system, or a name",
       "auto", text(&Config::congestion)},
      {"FARANDOLE_LOG_LEVEL", "debug, info, warning, error or off", "warning", parseLogLevel},
      {"FARANDOLE_PORT", "where rank 0 listens for the others",
       "MASTER_PORT + 1, or up to 7 more if connections have it", readElsewhere},
      {"FARANDOLE_SECRET_FILE", "a file with the job's secret, mode 600", "", readElsewhere},
      {"FARANDOLE_MPI", "under an MPI's own starter: openmpi, mpich or the path of a libmpi",
       "what started the rank", readElsewhere},
      {"FARANDOLE_MPI_STARTER",
       "set by `farandole run --engine mpi`: the program whose libmpi the rank takes", "",
       readElsewhere},
      {"FARANDOLE_ENGINE_PATH", "a folder with the engines' shared objects", "beside the library",
       readElsewhere},
  };
  return kTable;
}

Status below(int value, int limit, std::string_view what, std::string_view limitName) {
  if (value < limit) return {};
  return Status::invalid(std::string(what) + "=" + std::to_string(value) + " is not below " +
                         std::string(limitName) + "=" + std::to_string(limit));
}

Status check(const Config& config) {
  FARANDOLE_RETURN_IF_ERROR(below(config.rank, config.size, "FARANDOLE_RANK", "FARANDOLE_SIZE"));
  FARANDOLE_RETURN_IF_ERROR(
      below(config.localRank, config.localSize, "FARANDOLE_LOCAL_RANK", "FARANDOLE_LOCAL_SIZE"));
  if (config.size > 1 && (config.agent.empty() || config.secret.empty() || config.job.empty())) {
    return Status::invalid(
        "FARANDOLE_SIZE=" + std::to_string(config.size) +
        " but FARANDOLE_AGENT, FARANDOLE_SECRET or FARANDOLE_JOB is missing: start the program with"
        " `farandole run -np " +
        std::to_string(config.size) + " …`");
  }
  return {};
}

}  // namespace

std::span<const ConfigVariable> configVariables() { return table(); }

Result<Config> Config::read(const GetEnv& getEnv) {
  Config config;
  for (const auto& variable : table()) {
    const char* value = getEnv(std::string(variable.name).c_str());
    if (value == nullptr || *value == '\0') continue;
    if (Status status = variable.parse(config, value); !status.ok()) {
      // The secret is never repeated.
      const bool secret = variable.name == "FARANDOLE_SECRET";
      return Status::invalid(std::string(variable.name) + (secret ? "" : "=" + std::string(value)) +
                             ": " + status.message());
    }
  }
  FARANDOLE_RETURN_IF_ERROR(check(config));
  return config;
}

Result<Config> Config::fromEnvironment() {
  return read([](const char* variable) { return std::getenv(variable); });
}

}  // namespace farandole
