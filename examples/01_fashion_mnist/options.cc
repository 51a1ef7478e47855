#include "options.h"

#include <CLI/CLI.hpp>
#include <sstream>

namespace fashion {

std::optional<TrainOptions> parseOptions(int argc, char** argv, bool talkative, int* exitCode) {
  TrainOptions options;
  CLI::App app("Trains a small convolutional network on Fashion-MNIST, on any number of ranks.");
  app.add_option("--data", options.data, "directory of a set in MNIST's format, plain or .gz")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the training set")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch-size", options.batchSize, "images per rank and step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--lr", options.learningRate, "learning rate of one rank; multiplied by the ranks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--warmup-epochs", options.warmupEpochs, "the rate rises from 0 for so long")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--weight-decay", options.weightDecay)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of weights and order")->capture_default_str();
  app.add_option("--checkpoint", options.checkpoint, "rank 0 writes it after every epoch");
  app.add_flag("--resume", options.resume, "go on from the checkpoint")->needs("--checkpoint");
  app.add_option("--threads", options.threads, "of computation, per rank")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--limit", options.limit, "use only the first N images of each file")
      ->capture_default_str();
  app.add_flag("--independent", options.independent,
               "ranks train alone on their shards, for comparison");
  app.add_flag("--lockstep", options.lockstep,
               "independent ranks meet after every step: what waiting for each other costs")
      ->needs("--independent");
  app.add_flag("--json", options.json, "the last line is the result as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = app.exit(error, out, err);
    if (talkative) {
      std::cout << out.str() << std::flush;
      std::cerr << err.str() << std::flush;
    }
    *exitCode = code == 0 ? 0 : 2;
    return std::nullopt;
  }
  return options;
}

}  // namespace fashion
