/* A C99 program on the C ABI: the header must stay C, and the library must serve it. */
#include <stdio.h>

#include "farandole.h"

static int failed(const char* what) {
  farandole_error error;
  error.struct_size = sizeof error;
  farandole_last_error(&error);
  fprintf(stderr, "%s failed: %s\n", what, error.message);
  return 1;
}

int main(void) {
  int i;
  float values[5];
  int64_t shape[1];
  farandole_request request = FARANDOLE_REQUEST_INIT;
  farandole_handle handle = 0;
  int rank;
  int size;

  if (farandole_abi_version() != FARANDOLE_ABI_VERSION) return failed("version");
  if (farandole_init(NULL) != FARANDOLE_OK) return failed("init");
  rank = farandole_rank();
  size = farandole_size();
  for (i = 0; i < 5; ++i) values[i] = (float)(rank + i);
  shape[0] = 5;
  request.operation = FARANDOLE_ALLREDUCE;
  request.dtype = FARANDOLE_FLOAT32;
  request.op = FARANDOLE_SUM;
  request.name = "five";
  request.input = values;
  request.output = values;
  request.shape = shape;
  request.ndim = 1;
  if (farandole_submit(&request, 1, &handle) != FARANDOLE_OK) return failed("submit");
  if (farandole_wait(handle, -1) != FARANDOLE_OK) return failed("wait");
  if (farandole_release(handle) != FARANDOLE_OK) return failed("release");
  for (i = 0; i < 5; ++i) {
    if (values[i] != (float)(size * (size - 1) / 2 + size * i)) {
      fprintf(stderr, "values[%d] is %g\n", i, (double)values[i]);
      return 1;
    }
  }
  if (farandole_shutdown() != FARANDOLE_OK) return failed("shutdown");
  printf("ok: rank %d of %d\n", rank, size);
  return 0;
}
