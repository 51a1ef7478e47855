// The set-up as it should be: which keys and which texts there are. Reads, but writes nothing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "init/setup.h"
#include "init/ssh_files.h"

namespace farandole::init {

struct Config {
  std::string path;  // below the folder
  mode_t mode;
  std::optional<std::string> content;  // nothing: depends on keys that are not there yet
  bool ours;                           // belongs to the container's user
};

// The request must outlive it.
class Tree {
 public:
  // An error if a given key cannot be used, or if configuration would have to be rewritten that
  // says something else (unless that was asked for, or this is a dry run).
  static Result<Tree> plan(const SetupRequest& request);

  const std::string& identityName() const { return identityName_; }
  // Paths below the folder.
  std::vector<KeyJob> keyJobs() const;
  Result<std::vector<Config>> configurations() const;

  std::string at(const std::string& path) const { return request_.folder + "/" + path; }
  static std::string workerFolder(const Worker& worker) { return "ssh_worker/" + worker.name; }

 private:
  explicit Tree(const SetupRequest& request) : request_(request), spec_(request.spec) {}

  Status chooseIdentity();
  Status findHostKeys() const;
  Status checkConflicts() const;
  // With --host-keys: the path of the existing key for this worker, or empty.
  std::string givenHostKey(const Worker& worker, KeyType type) const;
  // The public host keys, or nothing while some are missing.
  Result<std::optional<std::vector<HostKey>>> publicHostKeys() const;

  const SetupRequest& request_;
  const ClusterSpec& spec_;
  KeyType identityType_ = KeyType::kEd25519;
  std::string identityName_;
};

}  // namespace farandole::init
