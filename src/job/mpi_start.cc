#include "job/mpi_start.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/log.h"
#include "bootstrap/unix_socket.h"
#include "collective/engine_loader.h"
#include "control/codec.h"

namespace farandole {
namespace {

constexpr std::size_t kMaxText = 1 << 10;

// What ranks tell each other through MPI.
struct Card {
  std::string machine;
  std::string host;
  std::string secret;  // rank 0's
};

std::string encode(const Card& card) {
  Writer writer;
  writer.text(card.machine);
  writer.text(card.host);
  writer.text(card.secret);
  const auto bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Card> decode(const std::string& text) {
  Reader reader(std::as_bytes(std::span(text.data(), text.size())));
  Card card;
  card.machine = reader.text(kMaxText);
  card.host = reader.text(kMaxText);
  card.secret = reader.text(kMaxText);
  if (!reader.finished()) return Status(Code::kMismatch, "a rank speaks another version");
  return card;
}

// Ranks with equal ones can meet on a unix socket: the same kernel, network namespace and user.
std::string machineName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);
  return boot + "/" + std::to_string(network.st_ino) + "/" + std::to_string(::geteuid());
}

void place(const std::vector<Card>& cards, Config& config) {
  std::map<std::string, int> machines;
  std::map<int, int> members;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const int machine =
        machines.try_emplace(cards[i].machine, static_cast<int>(machines.size())).first->second;
    if (static_cast<int>(i) == config.rank) {
      config.machine = machine;
      config.localRank = members[machine];
      config.host = cards[i].host;
    }
    ++members[machine];
  }
  config.localSize = members[config.machine];
  config.crossRank = config.machine;
  config.crossSize = static_cast<int>(machines.size());
}

}  // namespace

bool startedByMpi() {
  if (std::getenv("FARANDOLE_RANK") != nullptr || std::getenv("FARANDOLE_SIZE") != nullptr) {
    return false;
  }
  const MpiStarter starter = mpiStarter([](const char* name) { return std::getenv(name); });
  return starter.kind != MpiStarter::Kind::kNone && starter.size != 1;
}

Result<std::unique_ptr<Engine>> startMpiBeside(const Config& config, Deadline deadline) {
  const MpiStarter starter = mpiStarter([](const char* name) { return std::getenv(name); });
  if (starter.kind == MpiStarter::Kind::kNone) {
    return Status::unavailable(
        "FARANDOLE_ENGINE=mpi: no MPI has started this rank: type farandole run --engine mpi, or "
        "mpirun -np N PROGRAM without farandole run");
  }
  EngineStart options;
  options.deadline = deadline;
  options.logLevel = config.logLevel;
  options.expectedSize = config.size;
  auto engine = startMpiEngine("", options);
  FARANDOLE_RETURN_IF_ERROR(engine.status());
  if ((*engine)->rank() != config.rank) {
    return Status::internal("rank " + std::to_string(config.rank) + " is rank " +
                            std::to_string((*engine)->rank()) + " for " +
                            std::string((*engine)->library()));
  }
  return engine;
}

Result<MpiStart> startUnderMpi(Config& config, Deadline deadline) {
  EngineStart options;
  options.deadline = deadline;
  options.logLevel = config.logLevel;
  // One that its starter does not know makes every rank a job of its own.
  options.expectedSize = mpiStarter([](const char* name) { return std::getenv(name); }).size;
  MpiStart start;
  auto engine = startMpiEngine("", options);
  FARANDOLE_RETURN_IF_ERROR(engine.status());
  start.engine = std::move(engine).value();
  config.rank = start.engine->rank();
  config.size = start.engine->size();
  if (config.size == 1) return start;

  Card mine{machineName(), hostName(), ""};
  if (config.rank == 0) {
    auto secret = randomHex(32);
    FARANDOLE_RETURN_IF_ERROR(secret.status());
    mine.secret = std::move(secret).value();
  }
  auto told = start.engine->exchange(encode(mine), deadline);
  FARANDOLE_RETURN_IF_ERROR(told.status());
  std::vector<Card> cards;
  for (const std::string& each : *told) {
    auto card = decode(each);
    FARANDOLE_RETURN_IF_ERROR(card.status());
    cards.push_back(std::move(card).value());
  }
  place(cards, config);
  if (config.rank == 0 && config.crossSize > 1 && !start.engine->notice().empty()) {
    logWarning(std::string(start.engine->notice()));
  }
  config.secret = cards.front().secret;
  config.job = "mpi-" + config.secret.substr(0, 8);

  // Rank 0 first, so that the others know where.
  const std::string none = "-";  // Intel MPI never gathers an empty part
  std::string card = none;
  if (config.rank == 0) {
    auto hosted = LinkBootstrap::start(config, {}, deadline);
    if (hosted.ok()) {
      start.bootstrap = std::move(hosted).value();
      card = start.bootstrap->card();
    } else {
      logWarning(hosted.status().message());
    }
  }
  auto hosts = start.engine->exchange(card, deadline);
  FARANDOLE_RETURN_IF_ERROR(hosts.status());
  if (hosts->front() == none) return Status::unavailable("rank 0 cannot listen for the others");
  if (config.rank != 0) {
    LinkBootstrap::Meeting meeting;
    meeting.card = hosts->front();
    auto joined = LinkBootstrap::start(config, meeting, deadline);
    FARANDOLE_RETURN_IF_ERROR(joined.status());
    start.bootstrap = std::move(joined).value();
  }
  return start;
}

}  // namespace farandole
