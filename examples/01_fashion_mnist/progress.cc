#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace fashion {
namespace {

using std::chrono::duration;

constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr std::size_t kBarWidth = 24;

}  // namespace

Progress::Progress(bool visible, int firstEpoch, int epochs, std::size_t stepsPerEpoch,
                   std::size_t imagesPerStep)
    : visible_(visible),
      terminal_(visible && ::isatty(STDOUT_FILENO) != 0),
      firstEpoch_(firstEpoch),
      epochs_(epochs),
      stepsPerEpoch_(stepsPerEpoch),
      imagesPerStep_(imagesPerStep) {}

void Progress::beginEpoch(int epoch) {
  epoch_ = epoch;
  epochStart_ = Clock::now();
}

bool Progress::due(std::size_t done) const {
  return terminal_ && (done == stepsPerEpoch_ || Clock::now() - lastDrawn_ >= kRedraw);
}

void Progress::step(std::size_t done, double loss) {
  if (!due(done)) return;
  lastDrawn_ = Clock::now();
  const double part = static_cast<double>(done) / static_cast<double>(stepsPerEpoch_);
  const double seconds = duration<double>(lastDrawn_ - epochStart_).count();
  const double speed = static_cast<double>(done * imagesPerStep_) / (seconds > 0 ? seconds : 1e-9);
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
  const std::string bar = std::string(filled, '=') + std::string(kBarWidth - filled, ' ');
  std::printf("\rEpoch %d/%d [%s] %3.0f %%  loss %.4f  %.0f images/s  ETA %.0f s\033[K", epoch_ + 1,
              epochs_, bar.c_str(), 100 * part, loss, speed,
              secondsLeft(epoch_ - firstEpoch_ + part));
  std::fflush(stdout);
}

void Progress::endEpoch(double seconds, std::size_t images, double loss, double accuracy) {
  if (!visible_) return;
  clearLine();
  std::printf("Epoch %d/%d: loss %.4f", epoch_ + 1, epochs_, loss);
  if (accuracy >= 0) std::printf(", test accuracy %.4f", accuracy);
  std::printf(", %.0f images/s, ETA %.0f s\n",
              static_cast<double>(images) / (seconds > 0 ? seconds : 1e-9),
              secondsLeft(epoch_ - firstEpoch_ + 1));
  std::fflush(stdout);
}

double Progress::secondsLeft(double epochsDone) const {
  const double elapsed = duration<double>(Clock::now() - start_).count();
  const double epochsLeft = epochs_ - firstEpoch_ - epochsDone;
  return epochsDone > 0 && epochsLeft > 0 ? elapsed / epochsDone * epochsLeft : 0.0;
}

void Progress::clearLine() const {
  if (terminal_) std::printf("\r\033[K");
}

}  // namespace fashion
