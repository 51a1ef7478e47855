// An engine that does nothing but what a test lays down, and says what it was asked for.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"

namespace farandole::test {

class FakeEngine final : public Communicator {
 public:
  FakeEngine(int rank, int size) : rank_(rank), size_(size) {}

  std::vector<std::string> started;      // names of operations
  std::vector<std::int64_t> told;        // the answer to the exchange of sizes
  std::vector<std::int64_t> lastCounts;  // of the last gather or scatter

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  OperationPtr allreduce(std::span<const Piece>, DType, ReduceOp, Scale) override {
    return done("allreduce");
  }
  OperationPtr allgather(const void*, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override {
    lastCounts.assign(counts.begin(), counts.end());
    if (dtype != DType::kInt64) return done("allgather");
    // What the others say comes here; tests gather no data of this type.
    if (!told.empty()) std::memcpy(out, told.data(), told.size() * sizeof told[0]);
    return done("exchange");
  }
  OperationPtr broadcast(std::span<const Piece>, DType, int) override { return done("broadcast"); }
  OperationPtr alltoall(const void*, std::span<const std::int64_t>, void*,
                        std::span<const std::int64_t> receiveCounts, DType) override {
    lastCounts.assign(receiveCounts.begin(), receiveCounts.end());
    return done("alltoall");
  }
  OperationPtr reducescatter(const void*, void*, std::span<const std::int64_t>, DType, ReduceOp,
                             Scale) override {
    return done("reducescatter");
  }
  OperationPtr reduce(const void*, void*, std::int64_t, DType, ReduceOp, Scale, int) override {
    return done("reduce");
  }
  OperationPtr gather(const void*, void*, std::span<const std::int64_t> counts, DType,
                      int) override {
    lastCounts.assign(counts.begin(), counts.end());
    return done("gather");
  }
  OperationPtr scatter(const void*, void*, std::span<const std::int64_t> counts, DType,
                       int) override {
    lastCounts.assign(counts.begin(), counts.end());
    return done("scatter");
  }
  OperationPtr barrier() override { return done("barrier"); }
  OperationPtr send(const void*, std::size_t, int, int) override { return done("send"); }
  OperationPtr receive(void*, std::size_t, int, int, Received*) override { return done("receive"); }

 private:
  struct Done final : Operation {
    Progress progress() override { return Progress::kDone; }
    bool moved() const override { return true; }
    const Status& status() const override { return ok; }
    Status ok;
  };
  OperationPtr done(const char* what) {
    started.emplace_back(what);
    return std::make_unique<Done>();
  }

  const int rank_;
  const int size_;
};

}  // namespace farandole::test
