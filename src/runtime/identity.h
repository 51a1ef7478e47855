// Identity: who this rank is and where it meets the others: told by our launcher (FARANDOLE_*), or
// by another one that sets RANK, WORLD_SIZE and MASTER_ADDR (torchrun, PyTorchJob), or by srun.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/config.h"
#include "runtime/link_bootstrap.h"

namespace farandole::runtime {

struct Identity {
  Config config;
  std::optional<LinkBootstrap::StoreAddress> store;  // without an agent of ours
};

// getEnv returns nullptr for an unset variable. The secret may lie in a file
// (FARANDOLE_SECRET_FILE); ranks that meet on the loopback interface have one of this user's own,
// made when it is missing.
Result<Identity> identify(const std::function<const char*(const char*)>& getEnv);

// For ranks that are all on this machine: none of their ports can be reached from others, unless
// the user has said where to listen.
void keepToLoopback(Config& config, const std::string& address = "127.0.0.1");

// What FARANDOLE_SECRET or FARANDOLE_SECRET_FILE say; empty: neither is set.
Result<std::string> givenSecret(const std::function<const char*(const char*)>& getEnv);

}  // namespace farandole::runtime
