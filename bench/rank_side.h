// The rank's end of the wire: connects to the driver, then does what the lines say until the driver
// closes the socket. Single-threaded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/job.h"

namespace farandole::bench {

// A rank's connection during set-up.
class RankWire {
 public:
  static Result<std::unique_ptr<RankWire>> connect(int rank, int size);
  ~RankWire();
  RankWire(const RankWire&) = delete;
  RankWire& operator=(const RankWire&) = delete;

  // Every rank gets every rank's text (no spaces), in the order of ranks.
  Result<std::vector<std::string>> exchange(const std::string& text);
  // Pins this thread if asked, says ready, and answers commands until the driver leaves.
  Status serve(const std::function<Result<double>(const Job&)>& run);
  // Tells the driver why this rank cannot go on.
  void complain(const Status& status);

 private:
  RankWire();
  struct Wire;
  std::unique_ptr<Wire> wire_;
  int rank_ = 0;
  int size_ = 0;
};

// The ranks themselves, until the driver has no more for them; the exit code. engineRankMain calls
// the engine, namedRankMain the C API of the library, as a rank of `farandole run`.
int engineRankMain(int rank, int size);
int namedRankMain();

// warmup operations, a barrier, then the timed ones: seconds per operation.
Result<double> timeLoop(const Job& job, const std::function<Status()>& operation,
                        const std::function<Status()>& barrier);

}  // namespace farandole::bench
