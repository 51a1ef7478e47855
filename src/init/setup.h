// The set-up as a whole: which files there are, what has to be done to each, and doing it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "init/cluster_spec.h"
#include "init/keys.h"
#include "init/scripts.h"

namespace farandole::init {

struct SetupRequest {
  ClusterSpec spec;
  std::string folder;              // absolute
  std::optional<KeyType> keyType;  // nothing: what is there already, or else ed25519
  std::string existingKey;         // --key
  std::string hostKeys;            // --host-keys
  bool dryRun = false;
  bool force = false;
  KeyMaker maker;
  GpuGroups groups;
};

struct FileLine {
  std::string action;  // "created", "unchanged", … or with dryRun "would be created", …
  mode_t mode;
  std::string path;  // below the folder
};

// Brings the folder into the state that the request describes. Before anything is written it makes
// sure that no configuration would have to be rewritten that was not written like this (unless
// force). With dryRun nothing is written at all, and no keys are made.
Result<std::vector<FileLine>> setUp(const SetupRequest& request);

inline bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace farandole::init
