// Loaded in front of Open MPI: does in rank 0, within MPI_Test, what an MPI does when it meets a
// broken connection, but at a moment that the test chooses: when the file MPI_ENDS_AT is there.
// MPI_ENDS_BY says what: exit ends the process, pipe writes to the connection. The file
// MPI_ENDS_AT.begun says that it has begun to.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Test(void* request, int* flag, void* status);

static void endIfTold(void) {
  const char* const rank = getenv("OMPI_COMM_WORLD_RANK");
  const char* const file = getenv("MPI_ENDS_AT");
  static int done = 0;
  if (done != 0) return;
  if (rank == NULL || file == NULL || strcmp(rank, "0") != 0 || access(file, F_OK) != 0) return;
  done = 1;
  char begun[4096];
  snprintf(begun, sizeof begun, "%s.begun", file);
  FILE* const mark = fopen(begun, "w");
  if (mark != NULL) fclose(mark);
  if (strcmp(getenv("MPI_ENDS_BY"), "exit") == 0) exit(255);
  int ends[2];
  if (pipe(ends) != 0) abort();
  close(ends[0]);
  if (write(ends[1], "x", 1) == 1) abort();
  close(ends[1]);
}

int MPI_Test(void* request, int* flag, void* status) {
  static Test* next = NULL;
  if (next == NULL) next = (Test*)dlsym(RTLD_NEXT, "MPI_Test");
  if (next == NULL) abort();
  endIfTold();
  return next(request, flag, status);
}
