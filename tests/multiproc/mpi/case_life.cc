// Several sets at once, starts and ends, and waiting.
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "multiproc/mpi/rank.h"

namespace farandole::test {
namespace {

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

double processorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

// {0,1}, {1,2}, {2,0} …: every rank is in two, and all work at once; and the members' order counts.
void sets() {
  const auto engine = startEngine();
  const int size = engine->size();
  const int me = engine->rank();
  const auto all = everybody(*engine);
  std::vector<std::unique_ptr<collective::Communicator>> mine;
  std::vector<std::vector<int>> ranks;
  for (int i = 0; i < size && size > 1; ++i) {
    const std::vector<int> pair = {(i + 1) % size, i};
    if (me != pair[0] && me != pair[1]) continue;
    auto made = engine->communicator(pair, static_cast<std::uint32_t>(100 + i), soon());
    must(made.status(), "a pair");
    mine.push_back(std::move(made).value());
    ranks.push_back(pair);
    if (mine.back()->member() != (me == pair[0] ? 0 : 1)) fail("the members' order is not ours");
  }
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<float>> data(mine.size() + 1, std::vector<float>(30'000));
    std::vector<collective::OperationPtr> operations;
    for (std::size_t i = 0; i <= mine.size(); ++i) {
      for (float& value : data[i]) value = static_cast<float>(me + round);
      const collective::Piece piece{data[i].data(), data[i].data(), 30'000};
      collective::Communicator& set = i < mine.size() ? *mine[i] : *all;
      operations.push_back(
          set.allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {}));
    }
    // Ranks look at them in different orders.
    if (me % 2 == 1) std::swap(operations.front(), operations.back());
    driveAll(operations, "sets");
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const auto want = static_cast<float>(ranks[i][0] + ranks[i][1] + 2 * round);
      if (data[i].front() != want || data[i].back() != want) fail("a pair's sum is wrong");
    }
    const auto want = static_cast<float>(size * (size - 1) / 2 + size * round);
    if (data.back().front() != want) fail("everybody's sum is wrong");
  }
  const int wrong[] = {0, 0};
  if (engine->communicator(wrong, 5, soon()).ok()) fail("a rank was twice in a set");
  const int absent[] = {(me + 1) % size};
  if (size > 1 && engine->communicator(absent, 5, soon()).ok()) fail("a set without its maker");
}

void life() {
  std::string library;
  for (int round = 0; round < 5; ++round) {
    const auto engine = startEngine();
    library = engine->library();
    const std::string mine(static_cast<std::size_t>(engine->rank()) * 1000, 'x');
    auto texts = engine->exchange(mine + std::to_string(engine->rank()), soon());
    must(texts.status(), "exchange");
    for (int i = 0; i < engine->size(); ++i) {
      const std::string& text = texts.value()[static_cast<std::size_t>(i)];
      if (text != std::string(static_cast<std::size_t>(i) * 1000, 'x') + std::to_string(i)) {
        fail("exchange: the text of rank " + std::to_string(i) + " is wrong");
      }
    }
    const auto all = everybody(*engine, static_cast<std::uint32_t>(round));
    run(all->barrier(), "barrier");
  }
  const auto engine = startEngine();
  // Nobody else comes: the call ends, and says for whom it waited.
  if (engine->size() > 1 && engine->rank() == 0) {
    const int pair[] = {0, 1};
    const auto alone =
        engine->communicator(pair, 77, Deadline::after(std::chrono::milliseconds(200)));
    if (alone.ok() || alone.status().code() != Code::kTimeout) fail("a set of one was made");
    if (alone.status().message().find("rank 1") == std::string::npos) {
      fail("the missing rank is not named: " + alone.status().message());
    }
  }
  if (engine->rank() == 0) std::printf("library: %s\n", library.c_str());
}

// A Python module has brought its MPI along, visible to nobody else.
void loaded(const char* library) {
  if (dlopen(library, RTLD_NOW | RTLD_LOCAL) == nullptr) fail(std::string("dlopen: ") + dlerror());
  const auto engine = startEngine();
  const auto all = everybody(*engine);
  run(all->barrier(), "barrier");
  const auto found = collective::loadMpiEngine("");
  must(found.status(), "load");
  if (found.value().library.why != "this process already uses it") {
    fail("the engine took " + found.value().library.path + ": " + found.value().library.why);
  }
}

// A rank that fails does not wait in MPI's end for others that wait for it.
void lost() {
  const auto engine = startEngine();
  const auto all = everybody(*engine);
  run(all->barrier(), "barrier");
  if (all->member() == 1) std::exit(3);
  run(all->barrier(), "a barrier without rank 1");
}

// Nor do those that wait for a rank that is killed.
void killed() {
  const auto engine = startEngine();
  const auto all = everybody(*engine);
  run(all->barrier(), "barrier");
  if (all->member() == 1) raise(SIGKILL);
  run(all->barrier(), "a barrier without rank 1");
}

// A rank that waits two seconds for another uses little of its processor.
void waiting() {
  const auto engine = startEngine();
  const auto all = everybody(*engine);
  run(all->barrier(), "barrier");
  if (all->member() == 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  const double before = processorSeconds();
  run(all->barrier(), "barrier");
  const double used = processorSeconds() - before;
  if (all->member() == 1) std::printf("waited with %.0f ms of processor time\n", used * 1000);
  if (all->member() != 0 && used > 1.0)
    fail("waiting burns a core: " + std::to_string(used) + " s");
}

}  // namespace farandole::test
