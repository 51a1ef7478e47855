// A rank that stops inside a call of MPI which the others cannot leave without it: they end when
// the call's limit is reached. With 2 ranks, of which rank 1 stops.
//   create_group  while a set's communicator is made
//   finalize      in MPI_Finalize that the program calls, when all ranks are in it
//   exit          in MPI_Finalize that the engine calls when the process ends
//
// MPI lets a program put functions of its own in front of MPI's ("profiling interface"), and hang
// one on MPI_COMM_SELF that MPI_Finalize calls, the youngest first.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "collective/engine_loader.h"

namespace {

bool stopsInCreateGroup = false;
bool stopsInTest = false;

void stop() {
  std::printf("stopped: process %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  raise(SIGSTOP);
}

// The engine's own function comes next: it looks with MPI_Test whether all ranks have come.
int finalizeBegins(MPI_Comm, int, void*, void*) {
  stopsInTest = true;
  return MPI_SUCCESS;
}

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int MPI_Comm_create_group(MPI_Comm comm,
                                                                            MPI_Group group,
                                                                            int tag,
                                                                            MPI_Comm* made) {
  if (stopsInCreateGroup) stop();
  return PMPI_Comm_create_group(comm, group, tag, made);
}

extern "C" __attribute__((visibility("default"))) int MPI_Test(MPI_Request* request, int* done,
                                                               MPI_Status* status) {
  const int code = PMPI_Test(request, done, status);
  if (stopsInTest && *done != 0) stop();
  return code;
}

int main(int, char** argv) {
  using namespace farandole;
  using std::chrono::seconds;
  const std::string where = argv[1];
  int provided = 0;
  if (where != "exit") MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  {
    collective::EngineStart start;
    start.deadline = Deadline::after(seconds(60));
    start.finalizeLimit = seconds(2);
    auto engine = collective::startMpiEngine("", start);
    if (!engine.ok()) fail(engine.status().message());
    const bool stops = engine.value()->rank() == 1;
    stopsInCreateGroup = stops && where == "create_group";
    const int ranks[] = {0, 1};
    auto all = engine.value()->communicator(ranks, 1, Deadline::after(seconds(1)));
    if (!all.ok()) fail(all.status().message());
    if (stops) {
      int key = MPI_KEYVAL_INVALID;
      MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizeBegins, &key, nullptr);
      MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    }
  }
  if (where != "exit") MPI_Finalize();
  return 0;
}
