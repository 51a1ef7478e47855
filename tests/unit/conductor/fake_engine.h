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
  std::vector<std::int64_t> lastCounts;  // of the last gather, scatter or reducescatter
  std::vector<Piece> lastPieces;         // of the last allreduce or broadcast
  const void* lastInput = nullptr;       // of the last alltoall, gather or scatter
  ReduceOp lastOp = ReduceOp::kSum;
  Scale lastScale{};
  // What every operation says when it is advanced.
  Progress progress = Progress::kDone;
  bool moved = true;
  Duration nap = Duration::max();
  Status failure;
  Received arrived;  // what a receive gets

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  OperationPtr allreduce(std::span<const Piece> pieces, DType, ReduceOp op, Scale scale) override {
    lastPieces.assign(pieces.begin(), pieces.end());
    lastOp = op;
    lastScale = scale;
    return start("allreduce");
  }
  OperationPtr allgather(const void*, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override {
    lastCounts.assign(counts.begin(), counts.end());
    if (dtype != DType::kInt64) return start("allgather");
    // What the others say comes here; tests gather no data of this type.
    if (!told.empty()) std::memcpy(out, told.data(), told.size() * sizeof told[0]);
    return start("exchange");
  }
  OperationPtr broadcast(std::span<const Piece> pieces, DType, int) override {
    lastPieces.assign(pieces.begin(), pieces.end());
    return start("broadcast");
  }
  OperationPtr alltoall(const void* in, std::span<const std::int64_t>, void*,
                        std::span<const std::int64_t> receiveCounts, DType) override {
    lastInput = in;
    lastCounts.assign(receiveCounts.begin(), receiveCounts.end());
    return start("alltoall");
  }
  OperationPtr reducescatter(const void*, void*, std::span<const std::int64_t> counts, DType,
                             ReduceOp op, Scale scale) override {
    lastCounts.assign(counts.begin(), counts.end());
    lastOp = op;
    lastScale = scale;
    return start("reducescatter");
  }
  OperationPtr reduce(const void*, void*, std::int64_t, DType, ReduceOp, Scale, int) override {
    return start("reduce");
  }
  OperationPtr gather(const void* in, void*, std::span<const std::int64_t> counts, DType,
                      int) override {
    lastInput = in;
    lastCounts.assign(counts.begin(), counts.end());
    return start("gather");
  }
  OperationPtr scatter(const void* in, void*, std::span<const std::int64_t> counts, DType,
                       int) override {
    lastInput = in;
    lastCounts.assign(counts.begin(), counts.end());
    return start("scatter");
  }
  OperationPtr barrier() override { return start("barrier"); }
  OperationPtr send(const void*, std::size_t, int, int) override { return start("send"); }
  OperationPtr receive(void*, std::size_t, int, int, Received* received) override {
    *received = arrived;
    return start("receive");
  }

 private:
  struct Started final : Operation {
    explicit Started(FakeEngine& of) : engine(of) {}
    Progress progress() override { return engine.progress; }
    bool moved() const override { return engine.moved; }
    Duration nap() const override { return engine.nap; }
    const Status& status() const override { return engine.failure; }
    FakeEngine& engine;
  };
  OperationPtr start(const char* what) {
    started.emplace_back(what);
    return std::make_unique<Started>(*this);
  }

  const int rank_;
  const int size_;
};

}  // namespace farandole::test
