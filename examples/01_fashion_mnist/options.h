// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace fashion {

struct TrainOptions {
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  int epochs = 4;
  std::size_t batchSize = 64;  // per rank
  double learningRate = 0.04;  // of one rank; multiplied by the number of ranks
  double warmupEpochs = 1.0;
  double weightDecay = 5e-4;
  std::uint64_t seed = 1;
  std::filesystem::path checkpoint;  // empty: none
  bool resume = false;
  int threads = 1;
  std::size_t limit = 0;     // 0: all images
  bool independent = false;  // ranks train alone
  bool lockstep = false;     // … and meet in a barrier after every step
  bool json = false;
};

// nullopt: exit with *exitCode (help, or a wrong command line, already printed if `talkative`).
std::optional<TrainOptions> parseOptions(int argc, char** argv, bool talkative, int* exitCode);

}  // namespace fashion
