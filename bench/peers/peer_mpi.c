/* An MPI library as a benchmark's contender: its own MPI_Allreduce, in place, float32 sum.
 * Built once per MPI by tools/peers, started by that MPI's own launcher. */
#define _GNU_SOURCE /* before any system header: peer_wire.h pins threads */
#include <mpi.h>

#include "peer_wire.h"

static float* data = NULL;
static unsigned long long held = 0;

/* Makes room for bytes; 0 on success. */
static int reserve(unsigned long long bytes) {
  void* memory = NULL;
  if (bytes <= held) return 0;
  free(data);
  data = NULL;
  held = 0;
  if (posix_memalign(&memory, 4096, (size_t)bytes) != 0) return -1;
  data = (float*)memory;
  held = bytes;
  return 0;
}

static int checkOnce(bench_wire* wire, int count, int rank, int size) {
  long long wrong;
  char text[128];
  bench_fill(data, (unsigned long long)count, rank);
  MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  wrong = bench_verify(data, (unsigned long long)count, size);
  if (wrong < 0) return 0;
  snprintf(text, sizeof text, "error wrong result at element %lld", wrong);
  bench_say(wire, text);
  return -1;
}

static int runJob(bench_wire* wire, const bench_peer_job* job, int rank, int size) {
  const unsigned long long elements = job->bytes < 4 ? 1 : job->bytes / 4;
  const int count = (int)elements;
  double begin;
  if (strcmp(job->work, "allreduce") != 0 || strcmp(job->dtype, "float32") != 0 ||
      elements > 0x7fffffffULL || reserve(elements * 4) != 0) {
    return bench_say(wire, "error this peer does float32 allreduce up to 2^31-1 elements");
  }
  if (job->check && checkOnce(wire, count, rank, size) != 0) return 0;
  memset(data, 0, (size_t)elements * 4);
  for (int i = 0; i < job->warmup; ++i) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  begin = bench_now();
  for (int i = 0; i < job->iterations; ++i) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  return bench_done(wire, (bench_now() - begin) / job->iterations);
}

int main(int argc, char** argv) {
  int rank;
  int size;
  bench_wire wire;
  bench_peer_job job;
  char line[BENCH_LINE_BYTES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (bench_connect(&wire, rank, size) != 0) {
    fprintf(stderr, "this program is started by `farandole bench collective --against`\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bench_pin(rank);
  bench_say(&wire, "ready");
  while (bench_hear(&wire, line)) {
    if (!bench_parse(line, &job)) {
      bench_say(&wire, "error unknown command");
    } else if (runJob(&wire, &job, rank, size) != 0) {
      break;
    }
  }
  MPI_Finalize();
  free(data);
  return 0;
}
