#include "runtime/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/fd.h"
#include "base/posix.h"
#include "mpi_library/mpi_library.h"
#include "runtime/slurm_step.h"

namespace farandole::runtime {
namespace {

constexpr int kMostStorePorts = 8;  // see LinkBootstrap::StoreAddress

std::string valueOf(const GetEnv& getEnv, const char* name) {
  const char* value = getEnv(name);
  return value == nullptr ? "" : value;
}

Result<int> numberOf(const GetEnv& getEnv, const char* name, int low, int high, int otherwise) {
  const std::string text = valueOf(getEnv, name);
  if (text.empty()) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return Status::invalid(std::string(name) + "=" + text + ": expected a whole number from " +
                           std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

bool isLoopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Status check(const std::string& secret, const std::string& where) {
  if (secret.size() >= 32 && secret.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return {};
  }
  return Status::invalid(where + ": expected at least 32 lower-case hexadecimal digits");
}

// Makes sure that no other user can have put it there.
Status checkOwner(const struct stat& about, const std::string& where) {
  if (about.st_uid == ::geteuid() || about.st_uid == 0) return {};
  return Status::invalid(where + " belongs to user " + std::to_string(about.st_uid) +
                         ", not to this one (" + std::to_string(::geteuid()) +
                         "): remove it, or use a file of your own");
}

// A file that other users could read or write is not secret.
Result<std::string> secretFrom(const std::string& path, const std::string& where) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return Status::fromErrno(where, errno);
  FARANDOLE_RETURN_IF_ERROR(checkOwner(about, where));
  if (!S_ISREG(about.st_mode) || (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Status::invalid(where + " can be read by others: chmod 600 " + path);
  }
  std::array<char, 4096> bytes{};
  const auto count = ::read(file.get(), bytes.data(), bytes.size());
  if (count < 0) return Status::fromErrno(where, errno);
  std::string secret(bytes.data(), static_cast<std::size_t>(count));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == ' ')) secret.pop_back();
  FARANDOLE_RETURN_IF_ERROR(check(secret, where));
  return secret;
}

// Makes the folder and its missing parents, for this user alone whatever the umask is.
Status makePrivateFolder(const std::filesystem::path& folder) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) == 0) return {};
  const std::filesystem::path parent = folder.parent_path();
  if (!parent.empty() && parent != folder) FARANDOLE_RETURN_IF_ERROR(makePrivateFolder(parent));
  if (::mkdir(folder.c_str(), S_IRWXU) == 0 || errno == EEXIST) return {};
  return Status::fromErrno("cannot make the folder " + folder.string(), errno);
}

// Earlier releases left the mode of this folder to the umask.
Status keepPrivate(const std::string& folder) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return Status::fromErrno(folder, errno);
  FARANDOLE_RETURN_IF_ERROR(checkOwner(about, folder));
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  if (::chmod(folder.c_str(), S_IRWXU) == 0) return {};
  return Status::fromErrno(folder + " can be written by others: chmod 700 " + folder, errno);
}

// Returns this user's secret for ranks of one machine. If several ranks make it at once, the first
// one wins.
Result<std::string> ownSecret(const GetEnv& getEnv) {
  std::string folder = valueOf(getEnv, "XDG_CACHE_HOME");
  if (folder.empty()) {
    folder = valueOf(getEnv, "HOME");
    if (folder.empty()) {
      return Status::invalid(
          "neither HOME nor XDG_CACHE_HOME is set, so there is no place for this user's secret: "
          "set "
          "HOME, or give all ranks one with FARANDOLE_SECRET_FILE or FARANDOLE_SECRET");
    }
    folder += "/.cache";
  }
  folder += "/farandole";
  const std::string path = folder + "/loopback-secret";
  FARANDOLE_RETURN_IF_ERROR(makePrivateFolder(folder));
  FARANDOLE_RETURN_IF_ERROR(keepPrivate(folder));
  if (::access(path.c_str(), F_OK) != 0) {
    FARANDOLE_ASSIGN_OR_RETURN(auto text, randomHex(32));
    const std::string draft = path + "." + std::to_string(::getpid());
    const UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const bool written =
        file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const bool linked = written && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
    const int why = errno;
    if (file) ::unlink(draft.c_str());
    if (!linked) return Status::fromErrno(path, why);
  }
  return secretFrom(path, path);
}

Status giveSecret(const GetEnv& getEnv, Identity& identity) {
  auto found = givenSecret(getEnv);
  FARANDOLE_RETURN_IF_ERROR(found.status());
  if (found->empty() && !isLoopback(identity.store->address)) {
    return Status::invalid(
        "this job has no secret, and its ranks would take orders from anybody who reaches " +
        identity.store->address +
        ": make one (openssl rand -hex 32 > secret; chmod 600 secret) and give it to all ranks with"
        " FARANDOLE_SECRET_FILE=secret or FARANDOLE_SECRET=…");
  }
  if (found->empty()) found = ownSecret(getEnv);
  FARANDOLE_RETURN_IF_ERROR(found.status());
  identity.config.secret = std::move(found).value();
  return {};
}

Status adopt(const GetEnv& getEnv, Identity& identity) {
  Config& config = identity.config;
  constexpr int kMost = 1 << 20;
  auto size = numberOf(getEnv, "WORLD_SIZE", 1, kMost, 1);
  FARANDOLE_RETURN_IF_ERROR(size.status());
  auto rank = numberOf(getEnv, "RANK", 0, kMost, 0);
  FARANDOLE_RETURN_IF_ERROR(rank.status());
  FARANDOLE_ASSIGN_OR_RETURN(auto port, numberOf(getEnv, "MASTER_PORT", 1, 65535, 29500));
  FARANDOLE_ASSIGN_OR_RETURN(auto ours, numberOf(getEnv, "FARANDOLE_PORT", 1, 65535, port + 1));
  // The one beside MASTER_PORT was promised by nobody.
  const bool given = !valueOf(getEnv, "FARANDOLE_PORT").empty();
  const int ports = given ? 1 : std::clamp(65536 - ours, 1, kMostStorePorts);
  // Without LOCAL_RANK these are variables of a pod, of which torchrun has not made ranks yet.
  const bool pod = valueOf(getEnv, "LOCAL_RANK").empty();
  if (pod) {
    auto perPod = numberOf(getEnv, "PET_NPROC_PER_NODE", 1, kMost, 1);
    auto pods = numberOf(getEnv, "PET_NNODES", 1, kMost, *size);
    if (perPod.ok() && *perPod > 1) {
      return Status::invalid("RANK=" + std::to_string(*rank) +
                             " is this pod's and PET_NPROC_PER_NODE asks for " +
                             std::to_string(*perPod) +
                             " ranks in each: start the program with torchrun or farandole run");
    }
    if (pods.ok()) size = *pods;
  }
  if (*rank >= *size) {
    return Status::invalid("RANK=" + std::to_string(*rank) +
                           " is not below WORLD_SIZE=" + std::to_string(*size));
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto localRank, numberOf(getEnv, "LOCAL_RANK", 0, *size - 1, 0));
  FARANDOLE_ASSIGN_OR_RETURN(auto localSize, numberOf(getEnv, "LOCAL_WORLD_SIZE", 1, *size, 1));
  FARANDOLE_ASSIGN_OR_RETURN(auto machine,
                             numberOf(getEnv, "GROUP_RANK", 0, kMost, *rank / localSize));
  config.rank = *rank;
  config.size = *size;
  config.localRank = localRank;
  config.localSize = localSize;
  config.machine = machine;
  if (config.host == "localhost") config.host = hostName();
  identity.store = LinkBootstrap::StoreAddress{valueOf(getEnv, "MASTER_ADDR"), ours, ports};
  if (const std::string& address = identity.store->address; isLoopback(address)) {
    keepToLoopback(config, address == "localhost" ? "127.0.0.1" : address);
  }
  // The name keeps two jobs, or two attempts of one job, from meeting by mistake.
  if (config.job.empty()) {
    config.job = "env-" + identity.store->address + "-" + std::to_string(ours) + "-" +
                 valueOf(getEnv, "TORCHELASTIC_RUN_ID") + "-" +
                 valueOf(getEnv, "TORCHELASTIC_RESTART_COUNT");
  }
  return giveSecret(getEnv, identity);
}

}  // namespace

void keepToLoopback(Config& config, const std::string& address) {
  if (config.bind.empty() && config.advertise.empty() && config.interfaces.empty()) {
    config.bind = address;
  }
}

Result<std::string> givenSecret(const GetEnv& getEnv) {
  if (std::string secret = valueOf(getEnv, "FARANDOLE_SECRET"); !secret.empty()) return secret;
  const std::string path = valueOf(getEnv, "FARANDOLE_SECRET_FILE");
  if (path.empty()) return std::string();
  return secretFrom(path, "FARANDOLE_SECRET_FILE=" + path);
}

Result<Identity> identify(const GetEnv& getEnv) {
  FARANDOLE_ASSIGN_OR_RETURN(auto config, Config::read(getEnv));
  Identity identity{std::move(config), std::nullopt};
  const bool launched = getEnv("FARANDOLE_RANK") != nullptr || getEnv("FARANDOLE_SIZE") != nullptr;
  const bool foreign = !valueOf(getEnv, "RANK").empty() || !valueOf(getEnv, "WORLD_SIZE").empty();
  if (!launched && !foreign &&
      mpi_library::mpiStarter(getEnv).kind == mpi_library::MpiStarter::Kind::kNone) {
    FARANDOLE_ASSIGN_OR_RETURN(auto step, slurmStep(getEnv));
    if (!step.has_value()) return identity;
    const GetEnv translated = [&](const char* name) {
      const auto found = step->find(name);
      return found != step->end() ? found->second.c_str() : getEnv(name);
    };
    FARANDOLE_RETURN_IF_ERROR(adopt(translated, identity));
    return identity;
  }
  if (launched || valueOf(getEnv, "WORLD_SIZE").empty() || valueOf(getEnv, "RANK").empty() ||
      valueOf(getEnv, "MASTER_ADDR").empty() || valueOf(getEnv, "WORLD_SIZE") == "1") {
    return identity;
  }
  FARANDOLE_RETURN_IF_ERROR(adopt(getEnv, identity));
  return identity;
}

}  // namespace farandole::runtime
