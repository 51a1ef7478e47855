#include "multiproc/mpi/rank.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include "conformance/elements.h"

namespace farandole::test {
namespace {

using collective::Engine;
using collective::OperationPtr;
using collective::Progress;

constexpr std::size_t kGuard = 64;
int myRank = -1;

}  // namespace

void fail(const std::string& text) {
  std::fprintf(stderr, "rank %d: %s\n", myRank, text.c_str());
  std::exit(1);
}

void must(const Status& status, const std::string& what) {
  if (!status.ok()) fail(what + ": " + status.message());
}

std::unique_ptr<Engine> startEngine(bool native) {
  collective::EngineStart start;
  start.deadline = Deadline::after(std::chrono::seconds(60));
  start.nativeFrom = native ? 2 : 0;
  Result<std::unique_ptr<Engine>> engine = collective::startMpiEngine("", start);
  must(engine.status(), "start");
  myRank = engine.value()->rank();
  return std::move(engine).value();
}

std::vector<int> firstRanks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::unique_ptr<collective::Communicator> everybody(Engine& engine, std::uint32_t key) {
  auto made = engine.communicator(firstRanks(engine.size()), key,
                                  Deadline::after(std::chrono::seconds(60)));
  must(made.status(), "communicator");
  return std::move(made).value();
}

Status drive(collective::Operation& operation, const std::string& what) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(90));
  for (;;) {
    switch (operation.progress()) {
      case Progress::kDone: return {};
      case Progress::kFailed: return operation.status();
      case Progress::kPending: break;
    }
    if (deadline.passed()) fail(what + ": no end after 90 s");
    if (operation.moved()) continue;
    const Duration nap = operation.nap();
    if (nap > std::chrono::seconds(1)) fail(what + ": asks not to be polled");
    std::this_thread::sleep_for(nap);
  }
}

void driveAll(std::vector<OperationPtr>& operations, const std::string& what) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(90));
  for (std::size_t open = operations.size(); open > 0;) {
    open = 0;
    for (OperationPtr& operation : operations) {
      const Progress now = operation->progress();
      if (now == Progress::kFailed) must(operation->status(), what);
      open += now == Progress::kPending ? 1 : 0;
    }
    if (deadline.passed()) fail(what + ": no end after 90 s");
    std::this_thread::yield();
  }
}

void run(OperationPtr operation, const std::string& what) { must(drive(*operation, what), what); }

Buffer::Buffer(std::size_t bytes) : memory_(bytes + kGuard, std::byte{0xa5}) {}
void Buffer::checkGuard(const std::string& what) const {
  for (std::size_t i = memory_.size() - kGuard; i < memory_.size(); ++i) {
    if (memory_[i] != std::byte{0xa5}) fail(what + ": wrote past its end");
  }
}

void fill(std::byte* at, std::int64_t count, DType dtype, ReduceOp op, int rank,
          std::int64_t offset) {
  const int type = static_cast<int>(dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    conformance::store(at + static_cast<std::size_t>(i) * sizeOf(dtype), type,
                       conformance::valueOf(rank, i + offset, static_cast<int>(op), type));
  }
}

void expectReduced(const std::byte* at, std::int64_t count, DType dtype, ReduceOp op,
                   const std::vector<int>& ranks, const std::string& what, std::int64_t offset) {
  const int type = static_cast<int>(dtype);
  const int kind = static_cast<int>(op);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t want = conformance::valueOf(ranks[0], i + offset, kind, type);
    for (std::size_t r = 1; r < ranks.size(); ++r) {
      want = conformance::reduceTwo(want, conformance::valueOf(ranks[r], i + offset, kind, type),
                                    kind, type);
    }
    unsigned char expected[16];
    conformance::store(expected, type, want);
    if (std::memcmp(at + static_cast<std::size_t>(i) * sizeOf(dtype), expected, sizeOf(dtype)) !=
        0) {
      fail(what + ": element " + std::to_string(i) + " is wrong (expected " + std::to_string(want) +
           ")");
    }
  }
}

void expectSame(collective::Communicator& all, const std::byte* data, std::size_t bytes,
                const std::string& what) {
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(all.size()),
                                         static_cast<std::int64_t>(bytes));
  Buffer versions(bytes * counts.size());
  run(all.allgather(data, versions.data(), counts, DType::kUint8), what);
  for (std::size_t i = 1; i < counts.size(); ++i) {
    if (std::memcmp(versions.at(0), versions.at(i * bytes), bytes) != 0) {
      fail(what + ": members 0 and " + std::to_string(i) + " have different bits");
    }
  }
}

}  // namespace farandole::test

int main(int argc, char** argv) {
  using namespace farandole::test;
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "reductions") {
    reductions(false);
  } else if (which == "native") {
    reductions(true);
  } else if (which == "moves") {
    moves();
  } else if (which == "numbers") {
    numbers();
  } else if (which == "messages") {
    messages();
  } else if (which == "sets") {
    sets();
  } else if (which == "life") {
    life();
  } else if (which == "waiting") {
    waiting();
  } else if (which == "large") {
    large();
  } else if (which == "loaded" && argc > 2) {
    loaded(argv[2]);
  } else if (which == "lost") {
    lost();
  } else if (which == "killed") {
    killed();
  } else {
    std::fprintf(stderr, "usage: mpi_rank CASE\n");
    return 2;
  }
  std::printf("%s ok\n", which.c_str());
  return 0;
}
