#include "bench/rank_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/clock.h"
#include "bench/peers/peer_wire.h"

namespace farandole::bench {

struct RankWire::Wire : bench_wire {};

RankWire::RankWire() : wire_(std::make_unique<Wire>()) {}

RankWire::~RankWire() {
  if (wire_->fd > 0) close(wire_->fd);
}

Result<std::unique_ptr<RankWire>> RankWire::connect(int rank, int size) {
  std::unique_ptr<RankWire> wire(new RankWire);
  wire->rank_ = rank;
  wire->size_ = size;
  if (bench_connect(wire->wire_.get(), rank, size) != 0) {
    return Status::unavailable("a benchmark rank is started by `farandole bench` only");
  }
  return wire;
}

Result<std::vector<std::string>> RankWire::exchange(const std::string& text) {
  char line[BENCH_LINE_BYTES];
  if (bench_say(wire_.get(), ("offer " + text).c_str()) != 0 || !bench_hear(wire_.get(), line)) {
    return Status::unavailable("the benchmark's driver has gone");
  }
  std::istringstream in(line);
  std::string word;
  std::vector<std::string> all;
  in >> word;
  while (in >> word) all.push_back(word);
  if (static_cast<int>(all.size()) != size_) {
    return Status::internal(fmt::format("the driver answered '{}'", line));
  }
  return all;
}

Status RankWire::serve(const std::function<Result<double>(const Job&)>& run) {
  bench_pin(rank_);
  if (bench_say(wire_.get(), "ready") != 0) return Status::unavailable("the driver has gone");
  char line[BENCH_LINE_BYTES];
  while (bench_hear(wire_.get(), line)) {
    auto job = Job::parse(line);
    auto seconds = job.ok() ? run(*job) : Result<double>(job.status());
    if (seconds.ok()) {
      bench_done(wire_.get(), *seconds);
    } else {
      complain(seconds.status());
    }
  }
  return {};
}

void RankWire::complain(const Status& status) {
  std::string text = "error " + status.message().substr(0, 1000);
  std::replace(text.begin(), text.end(), '\n', ' ');
  bench_say(wire_.get(), text.c_str());
}

Result<double> timeLoop(const Job& job, const std::function<Status()>& operation,
                        const std::function<Status()>& barrier) {
  for (int i = 0; i < job.warmup; ++i) FARANDOLE_RETURN_IF_ERROR(operation());
  FARANDOLE_RETURN_IF_ERROR(barrier());
  const std::int64_t begin = nowNanoseconds();
  for (int i = 0; i < job.iterations; ++i) FARANDOLE_RETURN_IF_ERROR(operation());
  return static_cast<double>(nowNanoseconds() - begin) * 1e-9 / job.iterations;
}

}  // namespace farandole::bench
