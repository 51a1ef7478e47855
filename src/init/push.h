// Copying each worker's files to its machine.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "init/cluster_spec.h"

namespace farandole::init {

// The machines themselves are meant, not the containers: their own sshd and the caller's own ssh
// configuration.
struct PushRequest {
  std::string folder;                      // of the set-up, here
  std::string remoteFolder = "farandole";  // relative to the home there, or absolute
  std::string user;                        // empty: as ssh decides
  int port = 0;                            // 0: as ssh decides
  std::chrono::seconds connectTimeout{10};
  std::chrono::milliseconds limit{600000};  // for one machine
  std::string ssh = "ssh";
};

struct PushResult {
  const Worker* worker;
  Status status;
  std::string note;  // what remains to be done there; empty: nothing
};

// Several machines at a time. Never prompts; a machine that fails does not disturb the others.
std::vector<PushResult> push(const PushRequest& request, const ClusterSpec& spec);

// The words that start ssh on the worker's machine with a remote command.
std::vector<std::string> sshWords(const PushRequest& request, const Worker& worker,
                                  const std::string& command);

}  // namespace farandole::init
