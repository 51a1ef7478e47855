// EngineDriver: an engine's operation from start to end on the calling thread: spins a little, then
// sleeps on the doorbell, and notices when a rank has died. What the conductor does for named
// operations, reduced to one operation at a time. Single-threaded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "machine/neighbourhood.h"

namespace farandole::bench {

class EngineDriver {
 public:
  // Gives every rank's text to every rank (see RankWire::exchange).
  using Exchange = std::function<Result<std::vector<std::string>>(const std::string&)>;
  static Result<std::unique_ptr<EngineDriver>> create(int rank, int size, const Exchange& exchange);

  Status finish(collective::OperationPtr operation);
  collective::Communicator& communicator() { return *communicator_; }
  machine::Neighbourhood& neighbourhood() { return *neighbourhood_; }

 private:
  EngineDriver() = default;
  Status checkPeers();
  collective::Progress rest(collective::Operation& operation);

  std::unique_ptr<machine::Neighbourhood> neighbourhood_;
  std::unique_ptr<collective::Communicator> communicator_;
};

}  // namespace farandole::bench
