// Trains on Fashion-MNIST: on one rank when started alone, on n with `farandole run -np n`.
#include <farandole/farandole.h>
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "checkpoint.h"
#include "idx.h"
#include "options.h"
#include "trainer.h"

namespace {

constexpr int kBadInput = 2;

// Runs an action that may fail on some ranks. If it failed anywhere, the lowest such rank says why,
// in one line, and all ranks leave: none waits for one that is gone.
bool everywhere(const std::function<void()>& action) {
  std::string problem;
  try {
    action();
  } catch (const fashion::DataError& error) {
    problem = error.what();
  } catch (const fashion::CheckpointError& error) {
    problem = error.what();
  }
  const int rank = farandole::rank();
  const int none = farandole::size();
  const int failed = farandole::allreduce(problem.empty() ? none : rank, farandole::ReduceOp::kMin);
  if (failed == rank) std::fprintf(stderr, "fashion_mnist: %s\n", problem.c_str());
  return failed == none;
}

// Every step allocates and frees the same few megabytes. By default the C library gives them back
// to the system each time, and getting them again costs a third of the time.
void keepMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int train(const fashion::TrainOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  fashion::ImageSet images;
  fashion::ImageSet tests;
  if (!everywhere([&] {
        images = fashion::loadImages(options.data, fashion::Split::kTrain, options.limit);
        tests = fashion::loadImages(options.data, fashion::Split::kTest, options.limit);
        if (images.rows != tests.rows || images.columns != tests.columns || images.rows < 4 ||
            images.columns < 4) {
          throw fashion::DataError(options.data.string() +
                                   ": training and test images must have one size, 4 × 4 or more");
        }
      })) {
    return kBadInput;
  }
  fashion::Trainer trainer(options, std::move(images), std::move(tests));
  if (options.resume && !everywhere([&] { trainer.load(); })) return kBadInput;
  trainer.shareState();
  const fashion::Outcome outcome = trainer.run();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  if (farandole::rank() != 0) return EXIT_SUCCESS;
  if (!options.independent) std::printf("Test accuracy: %.4f\n", outcome.accuracy);
  std::printf("Number of ranks: %d\n", farandole::size());
  std::printf("Images per second: %.0f\n", outcome.imagesPerSecond);
  std::printf("Total time is: %.2f s\n", seconds);
  if (options.json) {
    std::printf(
        "{\"test_accuracy\": %.6f, \"loss\": %.6f, \"ranks\": %d, \"images_per_second\": %.1f, "
        "\"seconds\": %.3f, "
        "\"independent\": %s}\n",
        outcome.accuracy, outcome.loss, farandole::size(), outcome.imagesPerSecond, seconds,
        options.independent ? "true" : "false");
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  keepMemory();
  try {
    const farandole::Session session;
    int exitCode = 0;
    const auto options = fashion::parseOptions(argc, argv, session.rank() == 0, &exitCode);
    return options ? train(*options) : exitCode;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
