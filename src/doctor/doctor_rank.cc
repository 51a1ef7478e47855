#include "doctor/doctor_rank.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "process/core_library.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;

constexpr std::int64_t kWaitMilliseconds = 10'000;
constexpr std::int64_t kElements[] = {1, 16 << 10, 1 << 20};  // of float32: 4 B, 64 KiB, 4 MiB
constexpr int kAllreduces = 5;
constexpr int kSmallBytes = 64;
constexpr int kLarge = 4 << 20;
constexpr int kSmallRounds = 20;
constexpr int kMostPairs = 300;  // a few milliseconds each
constexpr double kNone = -1;

class DoctorRank {
 public:
  explicit DoctorRank(const process::CoreLibrary& core) : core_(core) {}

  Status run() {
    if (core_.init(nullptr) != FARANDOLE_OK) return lastError("init");
    rank_ = core_.rank();
    size_ = core_.size();
    const auto n = static_cast<std::size_t>(size_);
    small_.assign(n, kNone);
    large_.assign(n, kNone);
    FARANDOLE_RETURN_IF_ERROR(allreduces());
    if (size_ * (size_ - 1) / 2 <= kMostPairs) FARANDOLE_RETURN_IF_ERROR(pairs());
    FARANDOLE_RETURN_IF_ERROR(tell());
    return core_.shutdown() == FARANDOLE_OK ? Status() : lastError("shutdown");
  }

 private:
  Status lastError(const char* what) const {
    farandole_error error{};
    error.struct_size = sizeof error;
    core_.lastError(&error);
    return Status::unavailable(std::string(what) + ": " +
                               (error.message == nullptr ? "?" : error.message));
  }

  Status call(farandole_request request, const char* what) const {
    request.flags = FARANDOLE_FLAG_WILL_WAIT;
    farandole_handle handle = 0;
    if (core_.submit(&request, 1, &handle) != FARANDOLE_OK) return lastError(what);
    const farandole_code code = core_.wait(handle, kWaitMilliseconds);
    Status status = code == FARANDOLE_OK ? Status() : lastError(what);
    core_.release(handle);
    return status;
  }

  // A pattern whose sum is exact, and different at every element and rank.
  float value(int rank, std::int64_t i) const {
    return static_cast<float>((i * 7 + rank * 13) % 1024);
  }

  Status allreduces() {
    for (const std::int64_t count : kElements) {
      std::vector<double> times;
      std::vector<float> data(static_cast<std::size_t>(count));
      for (int round = 0; round < kAllreduces; ++round) {
        for (std::int64_t i = 0; i < count; ++i) {
          data[static_cast<std::size_t>(i)] = value(rank_, i + round);
        }
        farandole_request request = FARANDOLE_REQUEST_INIT;
        request.operation = FARANDOLE_ALLREDUCE;
        request.dtype = FARANDOLE_FLOAT32;
        request.op = FARANDOLE_SUM;
        request.name = "doctor/allreduce";
        request.input = data.data();
        request.output = data.data();
        request.shape = &count;
        request.ndim = 1;
        const TimePoint begin = Clock::now();
        FARANDOLE_RETURN_IF_ERROR(call(request, "allreduce"));
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        for (std::int64_t i = 0; i < count; ++i) {
          float expected = 0;
          for (int r = 0; r < size_; ++r) expected += value(r, i + round);
          const float got = data[static_cast<std::size_t>(i)];
          if (got != expected) {
            return Status::internal("allreduce of " + std::to_string(count * 4) +
                                    " bytes is wrong: element " + std::to_string(i) + " is " +
                                    std::to_string(got) + ", not " + std::to_string(expected));
          }
        }
      }
      std::nth_element(times.begin(), times.begin() + kAllreduces / 2, times.end());
      reduced_.push_back({{"bytes", count * 4}, {"us", times[kAllreduces / 2]}});
    }
    return {};
  }

  Status message(farandole_operation operation, int peer, std::vector<char>& bytes) const {
    const auto count = static_cast<std::int64_t>(bytes.size());
    farandole_request request = FARANDOLE_REQUEST_INIT;
    request.operation = operation;
    request.dtype = FARANDOLE_UINT8;
    request.root = peer;
    request.input = bytes.data();
    request.output = bytes.data();
    request.shape = &count;
    request.ndim = 1;
    return call(request, operation == FARANDOLE_SEND ? "send" : "recv");
  }

  // There and back; the shortest of some, in microseconds.
  Result<double> roundTrip(int peer, bool first, std::size_t bytes, int rounds) {
    std::vector<char> buffer(bytes);
    double best = kNone;
    for (int round = 0; round < rounds; ++round) {
      const TimePoint begin = Clock::now();
      const auto now = first ? FARANDOLE_SEND : FARANDOLE_RECV;
      const auto then = first ? FARANDOLE_RECV : FARANDOLE_SEND;
      FARANDOLE_RETURN_IF_ERROR(message(now, peer, buffer));
      FARANDOLE_RETURN_IF_ERROR(message(then, peer, buffer));
      const double took = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
      best = best == kNone ? took : std::min(best, took);
    }
    return best;
  }

  // One pair after the other, so that nobody disturbs it.
  Status pairs() {
    for (int i = 0; i < size_; ++i) {
      for (int j = i + 1; j < size_; ++j) {
        if (rank_ != i && rank_ != j) continue;
        const int peer = rank_ == i ? j : i;
        auto small = roundTrip(peer, rank_ == i, kSmallBytes, kSmallRounds);
        if (!small.ok()) return small.status();
        auto large = roundTrip(peer, rank_ == i, kLarge, 2);
        if (!large.ok()) return large.status();
        small_[static_cast<std::size_t>(peer)] = *small / 2;
        large_[static_cast<std::size_t>(peer)] = 2.0 * kLarge / *large;  // bytes/µs: MB/s
      }
    }
    return {};
  }

  Result<std::vector<double>> gathered(const std::vector<double>& mine, const char* name) const {
    std::vector<double> all(mine.size() * mine.size());
    const auto count = static_cast<std::int64_t>(mine.size());
    farandole_request request = FARANDOLE_REQUEST_INIT;
    request.operation = FARANDOLE_ALLGATHER;
    request.dtype = FARANDOLE_FLOAT64;
    request.name = name;
    request.input = mine.data();
    request.output = all.data();
    request.output_bytes = static_cast<std::int64_t>(all.size() * sizeof all[0]);
    request.shape = &count;
    request.ndim = 1;
    FARANDOLE_RETURN_IF_ERROR(call(request, "allgather"));
    return all;
  }

  json matrix(const std::vector<double>& all) const {
    json rows = json::array();
    const auto n = static_cast<std::size_t>(size_);
    for (std::size_t i = 0; i < n; ++i) {
      json row = json::array();
      for (std::size_t j = 0; j < n; ++j) {
        const double value = all[i * n + j];
        row.push_back(value == kNone ? json() : json(value));
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  Status tell() const {
    auto small = gathered(small_, "doctor/small");
    if (!small.ok()) return small.status();
    auto large = gathered(large_, "doctor/large");
    if (!large.ok()) return large.status();
    if (rank_ != 0) return {};
    const json result = {
        {"allreduce", reduced_}, {"us", matrix(*small)}, {"mb_per_s", matrix(*large)}};
    std::puts(result.dump().c_str());
    std::fflush(stdout);
    return {};
  }

  const process::CoreLibrary& core_;
  int rank_ = 0;
  int size_ = 1;
  json reduced_ = json::array();
  std::vector<double> small_;  // by peer
  std::vector<double> large_;
};

}  // namespace

int doctorRankMain(const std::vector<std::string>& words) {
  if (words.size() > 1) {
    std::fputs("farandole doctor-rank: takes no arguments: the doctor starts it\n", stderr);
    return 2;
  }
  auto core = process::CoreLibrary::load();
  const Status status = core.ok() ? DoctorRank(*core).run() : core.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

}  // namespace farandole::doctor
