#include "runtime/mpi_start.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/bytes.h"
#include "base/log.h"
#include "base/posix.h"
#include "collective/engine_loader.h"
#include "runtime/identity.h"
#include "runtime/sealed_secret.h"

namespace farandole::runtime {
namespace {

constexpr std::size_t kMaxText = 4 << 10;

// What ranks tell each other through MPI first. Anybody may read it.
struct Card {
  std::string machine;
  std::string host;
  std::string publicPart;  // of its one-time key
  bool given = false;      // it was given a secret beforehand
};

// What rank 0 tells the others then. Anybody may read it.
struct Invitation {
  std::string job;
  std::vector<std::string> sealed;  // the job's secret, by rank
  std::string card;                 // where rank 0 listens
};

// Intel MPI never gathers an empty part.
constexpr std::string_view kNothing = "-";

std::string encode(const Card& card) {
  std::string out;
  appendText(out, card.machine);
  appendText(out, card.host);
  appendText(out, card.publicPart);
  appendInteger(out, static_cast<std::uint8_t>(card.given));
  return out;
}

std::string encode(const Invitation& invitation) {
  std::string out;
  appendText(out, invitation.job);
  for (const std::string& each : invitation.sealed) appendText(out, each);
  appendText(out, invitation.card);
  return out;
}

Status otherVersion() { return Status(Code::kMismatch, "a rank speaks another version"); }

Result<Card> decodeCard(const std::string& text) {
  ByteReader reader(text);
  Card card;
  card.machine = reader.text(kMaxText);
  card.host = reader.text(kMaxText);
  card.publicPart = reader.text(kMaxText);
  const auto given = reader.integer<std::uint8_t>();
  if (!reader.finished() || given > 1) return otherVersion();
  card.given = given == 1;
  return card;
}

Result<Invitation> decodeInvitation(const std::string& text, std::size_t ranks) {
  ByteReader reader(text);
  Invitation invitation;
  invitation.job = reader.text(kMaxText);
  for (std::size_t i = 0; i < ranks && reader.good(); ++i) {
    invitation.sealed.push_back(reader.text(kMaxText));
  }
  invitation.card = reader.text(kMaxText);
  if (!reader.finished()) return otherVersion();
  return invitation;
}

// Ranks with equal ones can meet on a unix socket: the same kernel, network namespace and user.
std::string machineName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);
  return boot + "/" + std::to_string(network.st_ino) + "/" + std::to_string(::geteuid());
}

// Where this rank is; returns the number of machines.
std::size_t place(const std::vector<Card>& cards, Config& config) {
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
  return machines.size();
}

Result<std::vector<Card>> exchangeCards(collective::Engine& engine, const Card& mine,
                                        Deadline deadline) {
  FARANDOLE_ASSIGN_OR_RETURN(auto told, engine.exchange(encode(mine), deadline));
  std::vector<Card> cards;
  for (const std::string& each : told) {
    FARANDOLE_ASSIGN_OR_RETURN(auto card, decodeCard(each));
    cards.push_back(std::move(card));
  }
  for (std::size_t i = 1; i < cards.size(); ++i) {
    if (cards[i].given == cards[0].given) continue;
    const std::size_t without = cards[i].given ? 0 : i;
    return Status::invalid("rank " + std::to_string(without) + " on " + cards[without].host +
                           " was given no secret, and others were: give it to all ranks "
                           "(FARANDOLE_SECRET_FILE; with Open MPI also mpirun -x "
                           "FARANDOLE_SECRET_FILE), or to none");
  }
  return cards;
}

std::string nameOf(std::size_t rank, const Card& card) {
  return "rank " + std::to_string(rank) + " on " + card.host;
}

// Rank 0: makes the secret, and listens for the others.
Result<Invitation> invite(const OneTimeKey& key, const std::vector<Card>& cards, Config& config,
                          const std::string& given, std::unique_ptr<LinkBootstrap>& bootstrap,
                          Deadline deadline) {
  FARANDOLE_ASSIGN_OR_RETURN(auto name, randomHex(8));
  FARANDOLE_ASSIGN_OR_RETURN(config.secret, randomHex(32));
  config.job = "mpi-" + name;
  Invitation invitation{config.job, std::vector<std::string>(cards.size()), ""};
  for (std::size_t i = 1; i < cards.size(); ++i) {
    auto sealed = sealSecret(key, cards[i].publicPart, {config.job, static_cast<int>(i), given},
                             config.secret);
    if (!sealed.ok()) {
      return Status(sealed.status().code(), nameOf(i, cards[i]) + ": " + sealed.status().message());
    }
    invitation.sealed[i] = std::move(sealed).value();
  }
  FARANDOLE_ASSIGN_OR_RETURN(bootstrap, LinkBootstrap::start(config, {}, deadline));
  invitation.card = bootstrap->card();
  return invitation;
}

// The others.
Result<std::unique_ptr<LinkBootstrap>> accept(const OneTimeKey& key, const Card& host,
                                              const Invitation& invitation, Config& config,
                                              const std::string& given, Deadline deadline) {
  const auto me = static_cast<std::size_t>(config.rank);
  auto secret =
      openSecret(key, host.publicPart, {invitation.job, config.rank, given}, invitation.sealed[me]);
  if (!secret.ok()) {
    return Status(secret.status().code(),
                  "the job's secret from " + nameOf(0, host) + ": " + secret.status().message() +
                      (given.empty() ? ": it was altered on its way"
                                     : ": is FARANDOLE_SECRET or FARANDOLE_SECRET_FILE the same "
                                       "there and here?"));
  }
  config.job = invitation.job;
  config.secret = std::move(secret).value();
  LinkBootstrap::StoreAddress store;
  store.card = invitation.card;
  return LinkBootstrap::start(config, store, deadline);
}

// Of a job on several machines.
void warn(const collective::Engine& engine, const Config& config, bool given) {
  if (config.rank != 0) return;
  if (!engine.notice().empty()) logWarning(std::string(engine.notice()));
  if (config.engine == EngineChoice::kLink && !given) {
    logWarning(
        "the ranks have agreed on their key through MPI: somebody who only listens does not learn "
        "it, but somebody who can alter MPI's messages could. Against that, give all ranks a "
        "secret: FARANDOLE_SECRET_FILE (docs/engines.md)");
  }
}

}  // namespace

bool startedByMpi() {
  if (std::getenv("FARANDOLE_RANK") != nullptr || std::getenv("FARANDOLE_SIZE") != nullptr) {
    return false;
  }
  const mpi_library::MpiStarter starter =
      mpi_library::mpiStarter([](const char* name) { return std::getenv(name); });
  return starter.kind != mpi_library::MpiStarter::Kind::kNone && starter.size != 1;
}

Result<std::unique_ptr<collective::Engine>> startMpiBeside(const Config& config,
                                                           Deadline deadline) {
  const mpi_library::MpiStarter starter =
      mpi_library::mpiStarter([](const char* name) { return std::getenv(name); });
  if (starter.kind == mpi_library::MpiStarter::Kind::kNone) {
    return Status::unavailable(
        "FARANDOLE_ENGINE=mpi: no MPI has started this rank: type farandole run --engine mpi, or "
        "mpirun -np N PROGRAM without farandole run");
  }
  collective::EngineStart options;
  options.deadline = deadline;
  options.logLevel = config.logLevel;
  options.expectedSize = config.size;
  auto engine = collective::startMpiEngine("", options);
  FARANDOLE_RETURN_IF_ERROR(engine.status());
  if ((*engine)->rank() != config.rank) {
    return Status::internal("rank " + std::to_string(config.rank) + " is rank " +
                            std::to_string((*engine)->rank()) + " for " +
                            std::string((*engine)->library()));
  }
  return engine;
}

Result<std::unique_ptr<LinkBootstrap>> meetThrough(collective::Engine& engine, Config& config,
                                                   const std::string& given, Deadline deadline) {
  FARANDOLE_ASSIGN_OR_RETURN(auto key, OneTimeKey::make());
  FARANDOLE_ASSIGN_OR_RETURN(
      auto cards,
      exchangeCards(engine, {machineName(), hostName(), key.publicPart(), !given.empty()},
                    deadline));
  if (place(cards, config) == 1) {
    keepToLoopback(config);
  } else {
    warn(engine, config, !given.empty());
  }

  // Rank 0 first, so that the others know where.
  std::unique_ptr<LinkBootstrap> bootstrap;
  std::string mine(kNothing);
  if (config.rank == 0) {
    auto invitation = invite(key, cards, config, given, bootstrap, deadline);
    if (invitation.ok()) {
      mine = encode(*invitation);
    } else {
      logWarning(invitation.status().message());
    }
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto told, engine.exchange(mine, deadline));
  if (told.front() == kNothing) return Status::unavailable("rank 0 cannot listen for the others");
  if (config.rank == 0) return bootstrap;
  FARANDOLE_ASSIGN_OR_RETURN(auto invitation, decodeInvitation(told.front(), cards.size()));
  return accept(key, cards.front(), invitation, config, given, deadline);
}

Result<MpiStart> startUnderMpi(Config& config, Deadline deadline) {
  const auto getEnv = [](const char* name) { return std::getenv(name); };
  FARANDOLE_ASSIGN_OR_RETURN(auto given, givenSecret(getEnv));
  collective::EngineStart options;
  options.deadline = deadline;
  options.logLevel = config.logLevel;
  // One that its starter does not know makes every rank a job of its own.
  options.expectedSize = mpi_library::mpiStarter(getEnv).size;
  MpiStart start;
  FARANDOLE_ASSIGN_OR_RETURN(start.engine, collective::startMpiEngine("", options));
  config.rank = start.engine->rank();
  config.size = start.engine->size();
  logDebug("MPI says that this is rank " + std::to_string(config.rank) + " of " +
           std::to_string(config.size));
  if (config.size == 1) return start;
  FARANDOLE_ASSIGN_OR_RETURN(start.bootstrap, meetThrough(*start.engine, config, given, deadline));
  return start;
}

}  // namespace farandole::runtime
