// Identity: who this rank is and where it finds the others. Our launcher says so (FARANDOLE_*), or
// another one that sets RANK, WORLD_SIZE and MASTER_ADDR (torchrun, PyTorchJob), or srun.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/config.h"
#include "runtime/link_bootstrap.h"

namespace farandole::runtime {

struct Identity {
  Config config;
  std::optional<LinkBootstrap::StoreAddress>
      store;  // set if another launcher has started this rank
};

// getEnv returns nullptr for an unset variable. The secret may be in a file
// (FARANDOLE_SECRET_FILE). Ranks that meet on the loopback interface use a secret of this user's
// own, which is made if it is missing.
Result<Identity> identify(const std::function<const char*(const char*)>& getEnv);

// For ranks that are all on this machine: their ports cannot be reached from other machines, unless
// the user has said where to listen.
void keepToLoopback(Config& config, const std::string& address = "127.0.0.1");

// Returns what FARANDOLE_SECRET or FARANDOLE_SECRET_FILE says; empty if neither is set.
Result<std::string> givenSecret(const std::function<const char*(const char*)>& getEnv);

}  // namespace farandole::runtime
