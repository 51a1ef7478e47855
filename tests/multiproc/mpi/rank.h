// One rank of the mpi engine's tests: drives the engine itself, through the loader, without the
// runtime above it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/engine_loader.h"

namespace farandole::test {

[[noreturn]] void fail(const std::string& text);
void must(const Status& status, const std::string& what);

std::unique_ptr<collective::Engine> startEngine(bool native = false);
std::unique_ptr<collective::Communicator> everybody(collective::Engine& engine,
                                                    std::uint32_t key = 1);

// Drives as the runtime does: sleeps as long as the operation allows. Fails after 90 s.
Status drive(collective::Operation& operation, const std::string& what);
// All of them, in turn.
void driveAll(std::vector<collective::OperationPtr>& operations, const std::string& what);
void run(collective::OperationPtr operation, const std::string& what);

// Memory with guard bytes behind it.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes);
  void* data() { return memory_.data(); }
  std::byte* at(std::size_t offset) { return memory_.data() + offset; }
  void checkGuard(const std::string& what) const;

 private:
  std::vector<std::byte> memory_;
};

void fill(std::byte* at, std::int64_t count, DType dtype, ReduceOp op, int rank,
          std::int64_t offset = 0);
// The elements `offset`… of the reduction over `ranks`.
void expectReduced(const std::byte* at, std::int64_t count, DType dtype, ReduceOp op,
                   const std::vector<int>& ranks, const std::string& what, std::int64_t offset = 0);
// Fails unless all members hold the same bytes.
void expectSame(collective::Communicator& all, const std::byte* data, std::size_t bytes,
                const std::string& what);
std::vector<int> firstRanks(int count);

// The cases; each named like its function.
void reductions(bool native);
void moves();
void numbers();
void messages();
void sets();
void life();
void waiting();
void large();
void loaded(const char* library);
void lost();
void killed();

}  // namespace farandole::test
