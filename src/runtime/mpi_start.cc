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

// What ranks first tell each other through MPI. It is not secret.
struct Introduction {
  std::string machine;
  std::string host;
  std::string publicPart;  // of its one-time key
  bool given = false;      // it was given a secret beforehand
};

// What rank 0 then tells the others. It is not secret.
struct Invitation {
  std::string job;
  std::vector<std::string> sealed;  // the job's secret, by rank
  std::string card;                 // where rank 0 listens
};

// Intel MPI never gathers an empty text, so this stands for one.
constexpr std::string_view kNothing = "-";

std::string encode(const Introduction& introduction) {
  std::string out;
  appendText(out, introduction.machine);
  appendText(out, introduction.host);
  appendText(out, introduction.publicPart);
  appendInteger(out, static_cast<std::uint8_t>(introduction.given));
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

Result<Introduction> decodeIntroduction(const std::string& text) {
  ByteReader reader(text);
  Introduction introduction;
  introduction.machine = reader.text(kMaxText);
  introduction.host = reader.text(kMaxText);
  introduction.publicPart = reader.text(kMaxText);
  const auto given = reader.integer<std::uint8_t>();
  if (!reader.finished() || given > 1) return otherVersion();
  introduction.given = given == 1;
  return introduction;
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

// Ranks with equal names can meet on a unix socket: they have the same kernel, network namespace
// and user.
std::string machineName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);
  return boot + "/" + std::to_string(network.st_ino) + "/" + std::to_string(::geteuid());
}

// Fills in where this rank is, and returns the number of machines.
std::size_t place(const std::vector<Introduction>& introductions, Config& config) {
  std::map<std::string, int> machines;
  std::map<int, int> members;
  for (std::size_t i = 0; i < introductions.size(); ++i) {
    const int machine =
        machines.try_emplace(introductions[i].machine, static_cast<int>(machines.size()))
            .first->second;
    if (static_cast<int>(i) == config.rank) {
      config.machine = machine;
      config.localRank = members[machine];
      config.host = introductions[i].host;
    }
    ++members[machine];
  }
  config.localSize = members[config.machine];
  return machines.size();
}

Result<std::vector<Introduction>> exchangeIntroductions(collective::Engine& engine,
                                                        const Introduction& mine,
                                                        Deadline deadline) {
  FARANDOLE_ASSIGN_OR_RETURN(auto gathered, engine.exchange(encode(mine), deadline));
  std::vector<Introduction> introductions;
  for (const std::string& each : gathered) {
    FARANDOLE_ASSIGN_OR_RETURN(auto introduction, decodeIntroduction(each));
    introductions.push_back(std::move(introduction));
  }
  for (std::size_t i = 1; i < introductions.size(); ++i) {
    if (introductions[i].given == introductions[0].given) continue;
    const std::size_t without = introductions[i].given ? 0 : i;
    return Status::invalid("rank " + std::to_string(without) + " on " +
                           introductions[without].host +
                           " was given no secret, and others were: give it to all ranks "
                           "(FARANDOLE_SECRET_FILE; with Open MPI also mpirun -x "
                           "FARANDOLE_SECRET_FILE), or to none");
  }
  return introductions;
}

std::string nameOf(std::size_t rank, const Introduction& introduction) {
  return "rank " + std::to_string(rank) + " on " + introduction.host;
}

// On rank 0: makes the secret and listens for the others.
Result<Invitation> invite(const OneTimeKey& key, const std::vector<Introduction>& introductions,
                          Config& config, const std::string& given,
                          std::unique_ptr<LinkBootstrap>& bootstrap, Deadline deadline) {
  FARANDOLE_ASSIGN_OR_RETURN(auto name, randomHex(8));
  FARANDOLE_ASSIGN_OR_RETURN(config.secret, randomHex(32));
  config.job = "mpi-" + name;
  Invitation invitation{config.job, std::vector<std::string>(introductions.size()), ""};
  for (std::size_t i = 1; i < introductions.size(); ++i) {
    auto sealed = sealSecret(key, introductions[i].publicPart,
                             {config.job, static_cast<int>(i), given}, config.secret);
    if (!sealed.ok()) {
      return Status(sealed.status().code(),
                    nameOf(i, introductions[i]) + ": " + sealed.status().message());
    }
    invitation.sealed[i] = std::move(sealed).value();
  }
  FARANDOLE_ASSIGN_OR_RETURN(bootstrap, LinkBootstrap::start(config, {}, deadline));
  invitation.card = bootstrap->card();
  return invitation;
}

// On the other ranks.
Result<std::unique_ptr<LinkBootstrap>> accept(const OneTimeKey& key, const Introduction& host,
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

// Warns, in a job on several machines.
void warn(const collective::Engine& engine, const Config& config, bool given) {
  if (config.rank != 0) return;
  if (!engine.notice().empty()) logWarning(std::string(engine.notice()));
  if (config.engine == EngineChoice::kLink && !given) {
    logWarning(
        "the ranks have agreed on their key through MPI: an eavesdropper does not learn it, but an "
        "attacker who can alter MPI's messages could. Against that, give all ranks a "
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
      auto introductions,
      exchangeIntroductions(engine, {machineName(), hostName(), key.publicPart(), !given.empty()},
                            deadline));
  if (place(introductions, config) == 1) {
    keepToLoopback(config);
  } else {
    warn(engine, config, !given.empty());
  }

  // Rank 0 begins, so that the others know where to connect to.
  std::unique_ptr<LinkBootstrap> bootstrap;
  std::string mine(kNothing);
  if (config.rank == 0) {
    auto invitation = invite(key, introductions, config, given, bootstrap, deadline);
    if (invitation.ok()) {
      mine = encode(*invitation);
    } else {
      logWarning(invitation.status().message());
    }
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto gathered, engine.exchange(mine, deadline));
  if (gathered.front() == kNothing)
    return Status::unavailable("rank 0 cannot listen for the others");
  if (config.rank == 0) return bootstrap;
  FARANDOLE_ASSIGN_OR_RETURN(auto invitation,
                             decodeInvitation(gathered.front(), introductions.size()));
  return accept(key, introductions.front(), invitation, config, given, deadline);
}

Result<MpiStart> startUnderMpi(Config& config, Deadline deadline) {
  const auto getEnv = [](const char* name) { return std::getenv(name); };
  FARANDOLE_ASSIGN_OR_RETURN(auto given, givenSecret(getEnv));
  collective::EngineStart options;
  options.deadline = deadline;
  options.logLevel = config.logLevel;
  // An MPI that its starter does not know would make every rank a job of its own.
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
