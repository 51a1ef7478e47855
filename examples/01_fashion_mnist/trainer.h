// The training itself: everything that needs LibTorch.
#pragma once

#include <memory>

#include "idx.h"
#include "options.h"

namespace fashion {

struct Outcome {
  double accuracy = -1;        // over all ranks' shards of the test set; -1: ranks were independent
  double loss = 0;             // of the last epoch, mean over all ranks
  double imagesPerSecond = 0;  // of training, all ranks together
};

// Trains on this rank's shard together with all other ranks of the job: every rank must make the
// same calls. To be used by one thread, between farandole::init() and shutdown().
class Trainer {
 public:
  Trainer(const TrainOptions& options, ImageSet train, ImageSet test);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Rank 0 reads and verifies its checkpoint and throws CheckpointError if it cannot be used.
  // Elsewhere nothing happens.
  void load();
  // Gives every rank rank 0's weights, optimizer state and epoch. Collective.
  void shareState();
  // Collective, unless the ranks are independent.
  Outcome run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace fashion
