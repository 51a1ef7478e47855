// An engine that does nothing but what a test lays down, and says what it was asked for.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"

namespace farandole::test {

class FakeEngine final : public collective::Communicator {
 public:
  FakeEngine(int rank, int size) : rank_(rank), size_(size) {}

  std::vector<std::string> started;           // names of operations
  std::vector<std::int64_t> told;             // the answer to the exchange of sizes
  std::vector<std::int64_t> lastCounts;       // of the last gather, scatter or reducescatter
  std::vector<collective::Piece> lastPieces;  // of the last allreduce or broadcast
  const void* lastInput = nullptr;            // of the last alltoall, gather or scatter
  ReduceOp lastOp = ReduceOp::kSum;
  Scale lastScale{};
  // What every operation says when it is advanced.
  collective::Progress progress = collective::Progress::kDone;
  bool moved = true;
  Duration nap = Duration::max();
  Status failure;
  collective::Received arrived;  // what a receive gets

  int member() const override { return rank_; }
  int size() const override { return size_; }
  collective::OperationPtr allreduce(std::span<const collective::Piece> pieces, DType, ReduceOp op,
                                     Scale scale) override {
    lastPieces.assign(pieces.begin(), pieces.end());
    lastOp = op;
    lastScale = scale;
    return start("allreduce");
  }
  collective::OperationPtr allgather(const void*, void* out, std::span<const std::int64_t> counts,
                                     DType dtype) override {
    lastCounts.assign(counts.begin(), counts.end());
    if (dtype != DType::kInt64) return start("allgather");
    // What the others say comes here; tests gather no data of this type.
    if (!told.empty()) std::memcpy(out, told.data(), told.size() * sizeof told[0]);
    return start("exchange");
  }
  collective::OperationPtr broadcast(std::span<const collective::Piece> pieces, DType,
                                     int) override {
    lastPieces.assign(pieces.begin(), pieces.end());
    return start("broadcast");
  }
  collective::OperationPtr alltoall(const void* in, std::span<const std::int64_t>, void*,
                                    std::span<const std::int64_t> receiveCounts, DType) override {
    lastInput = in;
    lastCounts.assign(receiveCounts.begin(), receiveCounts.end());
    return start("alltoall");
  }
  collective::OperationPtr reducescatter(const void*, void*, std::span<const std::int64_t> counts,
                                         DType, ReduceOp op, Scale scale) override {
    lastCounts.assign(counts.begin(), counts.end());
    lastOp = op;
    lastScale = scale;
    return start("reducescatter");
  }
  collective::OperationPtr reduce(const void*, void*, std::int64_t, DType, ReduceOp, Scale,
                                  int) override {
    return start("reduce");
  }
  collective::OperationPtr gather(const void* in, void*, std::span<const std::int64_t> counts,
                                  DType, int) override {
    lastInput = in;
    lastCounts.assign(counts.begin(), counts.end());
    return start("gather");
  }
  collective::OperationPtr scatter(const void* in, void*, std::span<const std::int64_t> counts,
                                   DType, int) override {
    lastInput = in;
    lastCounts.assign(counts.begin(), counts.end());
    return start("scatter");
  }
  collective::OperationPtr barrier() override { return start("barrier"); }
  collective::OperationPtr send(const void*, std::size_t, int, int) override {
    return start("send");
  }
  collective::OperationPtr receive(void*, std::size_t, int, int,
                                   collective::Received* received) override {
    *received = arrived;
    return start("receive");
  }

 private:
  struct Started final : collective::Operation {
    explicit Started(FakeEngine& of) : engine(of) {}
    collective::Progress progress() override { return engine.progress; }
    bool moved() const override { return engine.moved; }
    Duration nap() const override { return engine.nap; }
    const Status& status() const override { return engine.failure; }
    FakeEngine& engine;
  };
  collective::OperationPtr start(const char* what) {
    started.emplace_back(what);
    return std::make_unique<Started>(*this);
  }

  const int rank_;
  const int size_;
};

}  // namespace farandole::test
