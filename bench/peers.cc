#include "bench/peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "bench/processors.h"

namespace farandole::bench {
namespace {

namespace fs = std::filesystem;

bool isProgram(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

bool onPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream in(path == nullptr ? "" : path);
  for (std::string directory; std::getline(in, directory, ':');) {
    if (isProgram(fs::path(directory) / program)) return true;
  }
  return false;
}

// What a peer needs: programs on the PATH or files in the peers' directory.
struct Needs {
  std::string name;
  std::string what;
  std::vector<std::string> commands;
  std::vector<std::string> files;
  bool onRequest = false;
};

std::vector<Needs> needs() {
  return {
      {"openmpi", "Open MPI, Debian's openmpi-bin", {"mpirun.openmpi"}, {"bin/peer_openmpi"}},
      {"mpich", "MPICH, Debian's mpich", {"mpiexec.mpich"}, {"bin/peer_mpich"}},
      {"intelmpi",
       "Intel MPI, PyPI's impi-rt",
       {},
       {"intelmpi/bin/mpiexec.hydra", "bin/peer_intelmpi"}},
      {"gloo", "Gloo over TCP, Debian's libgloo-dev", {}, {"bin/peer_gloo"}},
      {"deepspeed",
       "DeepSpeed's CPU shared-memory all-reduce, PyPI's deepspeed",
       {},
       {"deepspeed/bin/python", "bin/peer_deepspeed.py"}},
      {"openmpi-ring",
       "Open MPI whose allreduce is a ring",
       {"mpirun.openmpi"},
       {"bin/peer_openmpi"},
       true},
  };
}

// A directory for a peer's rendezvous files, removed when the last copy of the spec is gone.
class TemporaryDirectory {
 public:
  static Result<std::shared_ptr<TemporaryDirectory>> create() {
    std::string pattern = (fs::temp_directory_path() / "farandole-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      return Status::fromErrno("cannot make a directory " + pattern, errno);
    }
    return std::make_shared<TemporaryDirectory>(pattern);
  }
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void specifyIntelMpi(GroupSpec& spec, const fs::path& directory, const std::string& ranks) {
  const std::string root = (directory / "intelmpi").string();
  spec.commands = {
      {root + "/bin/mpiexec.hydra", "-n", ranks, (directory / "bin/peer_intelmpi").string()}};
  spec.environment = {
      {"I_MPI_ROOT", root}, {"LD_LIBRARY_PATH", root + "/lib"}, {"I_MPI_FABRICS", "shm"}};
}

void specifyDeepSpeed(GroupSpec& spec, const fs::path& directory, const std::string& store) {
  const std::string venv = (directory / "deepspeed").string();
  const char* path = std::getenv("PATH");
  for (int rank = 0; rank < spec.ranks; ++rank) {
    spec.commands.push_back({"env", fmt::format("RANK={}", rank),
                             fmt::format("LOCAL_RANK={}", rank), venv + "/bin/python",
                             (directory / "bin/peer_deepspeed.py").string()});
  }
  const std::string ranks = std::to_string(spec.ranks);
  spec.environment = {{"WORLD_SIZE", ranks},
                      {"LOCAL_SIZE", ranks},
                      {"FARANDOLE_BENCH_STORE", store + "/store"},
                      {"MASTER_ADDR", "farandole-bench"},
                      {"MASTER_PORT", std::to_string(getpid())},
                      {"DS_ACCELERATOR", "cpu"},
                      {"OMP_NUM_THREADS", "1"},
                      {"PATH", venv + "/bin:" + (path == nullptr ? "/usr/bin:/bin" : path)}};
}

}  // namespace

fs::path peersDirectory() {
  if (const char* given = std::getenv("FARANDOLE_PEERS"); given != nullptr) return given;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    fs::path beside = self.parent_path().parent_path().parent_path() / ".peers";
    if (fs::is_directory(beside, error)) return beside;
  }
  return ".peers";
}

std::vector<Peer> findPeers() {
  const fs::path directory = peersDirectory();
  std::vector<Peer> peers;
  for (const Needs& need : needs()) {
    Peer peer{need.name, need.what, {}, need.onRequest};
    for (const std::string& command : need.commands) {
      if (peer.missing.empty() && !onPath(command)) peer.missing = command;
    }
    for (const std::string& file : need.files) {
      if (peer.missing.empty() && access((directory / file).c_str(), R_OK) != 0) {
        peer.missing = ".peers/" + file;
      }
    }
    peers.push_back(std::move(peer));
  }
  return peers;
}

Result<std::vector<Peer>> selectPeers(const std::string& names) {
  std::vector<Peer> known = findPeers();
  if (names == "all" || names == "available") {
    std::erase_if(known, [&names](const Peer& peer) {
      return peer.onRequest || (names == "available" && !peer.missing.empty());
    });
    return known;
  }
  std::vector<Peer> chosen;
  std::istringstream in(names);
  for (std::string name; std::getline(in, name, ',');) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&name](const Peer& peer) { return peer.name == name; });
    if (found == known.end()) {
      return Status::invalid(fmt::format(
          "unknown peer '{}'; known are openmpi, mpich, intelmpi, gloo, deepspeed, openmpi-ring, "
          "all, available",
          name));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

std::vector<std::string> openMpiRing() {
  // 4: "ring" in ompi_info's list.
  return {"--mca", "coll_tuned_use_dynamic_rules",   "1",
          "--mca", "coll_tuned_allreduce_algorithm", "4"};
}

Result<GroupSpec> specOf(const Peer& peer, int ranks, const std::vector<int>& processors) {
  const fs::path directory = peersDirectory();
  const std::string count = std::to_string(ranks);
  auto scratch = TemporaryDirectory::create();
  if (!scratch.ok()) return scratch.status();
  GroupSpec spec;
  spec.name = peer.name;
  spec.ranks = ranks;
  spec.processors = processors;
  spec.keep = *scratch;
  if (peer.name == "openmpi" || peer.name == "openmpi-ring") {
    // The ranks pin themselves, all contenders in the same way.
    spec.commands = {{"mpirun.openmpi", "--bind-to", "none", "-np", count}};
    if (ranks > static_cast<int>(allowedProcessors().size()))
      spec.commands[0].push_back("--oversubscribe");
    if (peer.name == "openmpi-ring") {
      const auto ring = openMpiRing();
      spec.commands[0].insert(spec.commands[0].end(), ring.begin(), ring.end());
    }
    spec.commands[0].push_back((directory / "bin/peer_openmpi").string());
    spec.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  } else if (peer.name == "mpich") {
    spec.commands = {{"mpiexec.mpich", "-n", count, (directory / "bin/peer_mpich").string()}};
  } else if (peer.name == "intelmpi") {
    specifyIntelMpi(spec, directory, count);
  } else if (peer.name == "gloo") {
    for (int rank = 0; rank < ranks; ++rank) {
      spec.commands.push_back(
          {(directory / "bin/peer_gloo").string(), std::to_string(rank), count});
    }
  } else {
    specifyDeepSpeed(spec, directory, (*scratch)->path());
  }
  return spec;
}

}  // namespace farandole::bench
