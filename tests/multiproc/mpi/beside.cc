// A program that uses MPI itself, beside the engine: its MPI is the one the engine takes, its
// traffic and the engine's do not meet, and who started MPI ends it.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "collective/engine_loader.h"

namespace {

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

void work(farandole::collective::Communicator& all, int rounds) {
  using namespace farandole;
  for (int round = 0; round < rounds; ++round) {
    std::vector<float> data(5000, static_cast<float>(round));
    const collective::Piece piece{data.data(), data.data(), 5000};
    const auto operation = all.allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {});
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    collective::Progress now = collective::Progress::kPending;
    while ((now = operation->progress()) == collective::Progress::kPending && !deadline.passed()) {
      if (!operation->moved()) std::this_thread::sleep_for(operation->nap());
    }
    if (now != collective::Progress::kDone) fail("engine: " + operation->status().message());
    if (data[17] != static_cast<float>(round * all.size())) fail("the engine's sum is wrong");
  }
}

}  // namespace

int main(int, char** argv) {
  using namespace farandole;
  const bool starts = std::string(argv[1]) == "starts";
  int provided = 0;
  if (starts) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  {
    collective::EngineStart start;
    start.deadline = Deadline::after(std::chrono::seconds(60));
    auto engine = collective::startMpiEngine("", start);
    if (!engine.ok()) fail(engine.status().message());
    int running = 0;
    MPI_Initialized(&running);
    if (running == 0) fail("the engine has another MPI than this program");
    std::vector<int> ranks;
    for (int i = 0; i < engine.value()->size(); ++i) ranks.push_back(i);
    auto all = engine.value()->communicator(ranks, 1, start.deadline);
    if (!all.ok()) fail(all.status().message());

    std::thread driver([&] { work(**all, 200); });
    for (int round = 0; round < 200; ++round) {
      int mine = round;
      int sum = 0;
      MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      if (sum != round * engine.value()->size()) fail("the program's sum is wrong");
    }
    driver.join();
    if (collective::startMpiEngine("/nowhere/libmpi.so", start).ok() == false)
      fail("a second start failed");
  }
  if (starts) {
    MPI_Finalize();
    collective::EngineStart again;
    if (collective::startMpiEngine("", again).ok()) fail("the engine started after MPI's end");
  }
  std::printf("beside ok\n");
  return 0;
}
