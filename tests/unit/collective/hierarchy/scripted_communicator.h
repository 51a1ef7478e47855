// ScriptedCommunicator: a communicator that moves nothing. It notes what is started, and its
// operations end when and how the test says.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collective/communicator.h"

namespace farandole::testing {

struct Script {
  std::vector<std::string> started;  // names of the operations, in order
  int live = 0;                      // started and not over
  int mostLive = 0;
  // What operations answer from now on.
  collective::Progress answer = collective::Progress::kDone;
  bool moves = false;
  Status failure;
};

class ScriptedCommunicator final : public collective::Communicator {
 public:
  ScriptedCommunicator(Script& script, int rank, int size)
      : script_(script), rank_(rank), size_(size) {}
  int member() const override { return rank_; }
  int size() const override { return size_; }

  collective::OperationPtr allreduce(std::span<const collective::Piece>, DType, ReduceOp,
                                     Scale) override {
    return start("allreduce");
  }
  collective::OperationPtr allgather(const void*, void*, std::span<const std::int64_t>,
                                     DType) override {
    return start("allgather");
  }
  collective::OperationPtr broadcast(std::span<const collective::Piece>, DType, int) override {
    return start("broadcast");
  }
  collective::OperationPtr alltoall(const void*, std::span<const std::int64_t>, void*,
                                    std::span<const std::int64_t>, DType) override {
    return start("alltoall");
  }
  collective::OperationPtr reducescatter(const void*, void*, std::span<const std::int64_t>, DType,
                                         ReduceOp, Scale) override {
    return start("reducescatter");
  }
  collective::OperationPtr reduce(const void*, void*, std::int64_t, DType, ReduceOp, Scale,
                                  int) override {
    return start("reduce");
  }
  collective::OperationPtr gather(const void*, void*, std::span<const std::int64_t>, DType,
                                  int) override {
    return start("gather");
  }
  collective::OperationPtr scatter(const void*, void*, std::span<const std::int64_t>, DType,
                                   int) override {
    return start("scatter");
  }
  collective::OperationPtr barrier() override { return start("barrier"); }
  collective::OperationPtr send(const void*, std::size_t, int, int) override {
    return start("send");
  }
  collective::OperationPtr receive(void*, std::size_t, int, int, collective::Received*) override {
    return start("receive");
  }

 private:
  class Scripted final : public collective::Operation {
   public:
    explicit Scripted(Script& script) : script_(script) {
      script_.mostLive = std::max(script_.mostLive, ++script_.live);
    }
    ~Scripted() override { --script_.live; }
    collective::Progress progress() override { return script_.answer; }
    bool moved() const override { return script_.moves; }
    const Status& status() const override { return script_.failure; }

   private:
    Script& script_;
  };
  collective::OperationPtr start(const char* what) {
    script_.started.emplace_back(what);
    return std::make_unique<Scripted>(script_);
  }

  Script& script_;
  const int rank_;
  const int size_;
};

}  // namespace farandole::testing
