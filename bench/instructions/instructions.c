/* Runs one case of small operations for callgrind, which counts the instructions of every window of
 * repetitions: one rank of a job that ./run starts.
 *
 *     instructions CASE WINDOWS REPETITIONS FOLDER
 *
 * A window is all threads' instructions between two dumps. The ranks wait in the kernel, never in a
 * loop (see README.md), so that a window's count is what the operations take. FOLDER is for the
 * pipes of meet(). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "farandole.h"

enum {
  kMostGradients = 161,
  kWarmUp = 20,
  kNamesByOrder = 1024, /* of operations without a name; each is announced once */
  kMilliseconds = 60000
};

static void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("instructions: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static void must(farandole_code code, const char* what) {
  if (code == FARANDOLE_OK) return;
  farandole_error error = {.struct_size = sizeof error};
  farandole_last_error(&error);
  fail("%s: %s", what, error.message != NULL ? error.message : "?");
}

/* ---- What valgrind 3.19 does not know. */

/* A descriptor of this process, which ranks give to each other: opened before valgrind takes over.
 */
static const char kOwnPidfd[] = "INSTRUCTIONS_PIDFD";

static int bringPidfd(char** command) {
  const long fd = syscall(SYS_pidfd_open, getpid(), 0);
  char text[16];
  snprintf(text, sizeof text, "%ld", fd);
  if (fd < 0 || fcntl((int)fd, F_SETFD, 0) != 0 || setenv(kOwnPidfd, text, 1) != 0) {
    fail("pidfd_open: %s", strerror(errno));
  }
  execvp(command[0], command);
  fail("%s: %s", command[0], strerror(errno));
  return 1;
}

/* The library's calls of syscall(2) come here. */
__attribute__((visibility("default"))) long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long argument[6];
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(arguments, long);
  va_end(arguments);
  const char* own = number == SYS_pidfd_open ? getenv(kOwnPidfd) : NULL;
  if (own != NULL) {
    if (argument[0] == getpid()) return fcntl(atoi(own), F_DUPFD_CLOEXEC, 3);
    errno = ENOSYS; /* as valgrind says, without its warnings */
    return -1;
  }
  register long fourth __asm__("r10") = argument[3];
  register long fifth __asm__("r8") = argument[4];
  register long sixth __asm__("r9") = argument[5];
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(argument[0]), "S"(argument[1]), "d"(argument[2]), "r"(fourth),
                     "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

/* ---- The cases. */

enum memory { kOrdinary, kShared };

/* What a repetition is, if not a call of an operation. */
enum {
  kGradients = -1, /* as many as ResNet-50 has, all submitted before the first is waited for */
  kIdle = -2       /* a look at an operation for which another rank is missing: a waiting round */
};

struct kase {
  const char* name;
  int operation; /* or one of the above */
  int64_t bytes; /* of a gradient; 0: as ResNet-50 has them */
  enum memory memory;
  int32_t flags;
};

static const struct kase kCases[] = {
    {"named-4", FARANDOLE_ALLREDUCE, 4, kOrdinary, 0},
    {"named-1K", FARANDOLE_ALLREDUCE, 1 << 10, kOrdinary, 0},
    {"named-4-shared", FARANDOLE_ALLREDUCE, 4, kShared, 0},
    {"named-1K-shared", FARANDOLE_ALLREDUCE, 1 << 10, kShared, 0},
    {"named-16K-shared", FARANDOLE_ALLREDUCE, 16 << 10, kShared, 0},
    {"ordered-4", FARANDOLE_ALLREDUCE, 4, kOrdinary, FARANDOLE_FLAG_ORDERED},
    {"broadcast-1K", FARANDOLE_BROADCAST, 1 << 10, kOrdinary, 0},
    {"allgather-1K", FARANDOLE_ALLGATHER, 1 << 10, kOrdinary, 0},
    {"alltoall-1K", FARANDOLE_ALLTOALL, 1 << 10, kOrdinary, 0},
    {"reducescatter-1K", FARANDOLE_REDUCESCATTER, 1 << 10, kOrdinary, 0},
    {"barrier", FARANDOLE_BARRIER, 0, kOrdinary, 0},
    {"idle", kIdle, 4, kOrdinary, 0},
    {"gradients-4", kGradients, 4, kShared, 0},
    {"resnet50", kGradients, 0, kShared, 0},
};

static const struct kase* find(const char* name) {
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
    if (strcmp(kCases[i].name, name) == 0) return &kCases[i];
  }
  fail("there is no case %s", name);
  return NULL;
}

/* The elements of ResNet-50's gradients, as src/bench/model_shapes.cc has them. */
static int resnet50(int64_t counts[kMostGradients]) {
  int count = 0;
  int64_t in = 64;
#define ADD(elements) counts[count++] = (elements)
#define CONVOLUTION(to, from, kernel)          \
  do {                                         \
    ADD((to) * (from) * (kernel) * (kernel));  \
    ADD(to); /* the normalisation behind it */ \
    ADD(to);                                   \
  } while (0)
  CONVOLUTION(64, 3, 7);
  static const int kBlocks[4] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = (int64_t)64 << stage;
    for (int block = 0; block < kBlocks[stage]; ++block) {
      CONVOLUTION(width, in, 1);
      CONVOLUTION(width, width, 3);
      CONVOLUTION(4 * width, width, 1);
      if (block == 0) CONVOLUTION(4 * width, in, 1);
      in = 4 * width;
    }
  }
  ADD(1000 * 2048);
  ADD(1000);
#undef CONVOLUTION
#undef ADD
  return count;
}

/* ---- Ranks that meet without the library, in a few instructions. */

static int pipes[2];

static void openPipes(const char* folder) {
  for (int i = 0; i < 2; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/pipe.%d", folder, i);
    if (mkfifo(path, 0600) != 0 && errno != EEXIST) fail("%s: %s", path, strerror(errno));
    pipes[i] = open(path, O_RDWR | O_CLOEXEC);
    if (pipes[i] < 0) fail("%s: %s", path, strerror(errno));
  }
}

static void meet(void) {
  if (farandole_size() == 1) return;
  char token = 0;
  const int me = farandole_rank();
  if (write(pipes[1 - me], &token, 1) != 1 || read(pipes[me], &token, 1) != 1) {
    fail("the ranks cannot meet: %s", strerror(errno));
  }
}

/* ---- One repetition. */

static const struct kase* kase;
static int gradients;
static farandole_request requests[kMostGradients];
static int64_t shapes[kMostGradients];
static char names[kMostGradients][64];

static void* memoryOf(size_t bytes) {
  void* memory = NULL;
  if (kase->memory == kShared) {
    must(farandole_allocate(bytes, &memory), "allocate");
  } else if (posix_memalign(&memory, 4096, bytes) != 0) {
    fail("no memory");
  }
  memset(memory, 0, bytes);
  return memory;
}

static void prepare(int number, int64_t elements) {
  farandole_request* request = &requests[number];
  *request = (farandole_request)FARANDOLE_REQUEST_INIT;
  shapes[number] = elements;
  snprintf(names[number], sizeof names[number], "instructions/%s/%d", kase->name, number);
  const size_t bytes = (size_t)elements * sizeof(float);
  const int grows = kase->operation == FARANDOLE_ALLGATHER;
  request->operation = kase->operation < 0 ? FARANDOLE_ALLREDUCE : kase->operation;
  request->dtype = FARANDOLE_FLOAT32;
  request->op = FARANDOLE_SUM;
  request->name = kase->flags == FARANDOLE_FLAG_ORDERED ? NULL : names[number];
  request->flags = kase->flags;
  if (kase->operation == FARANDOLE_BARRIER) return;
  request->shape = &shapes[number];
  request->ndim = 1;
  request->input = memoryOf(bytes);
  const int inPlace = kase->operation < 0 || kase->operation == FARANDOLE_ALLREDUCE ||
                      kase->operation == FARANDOLE_BROADCAST;
  const size_t out = grows ? bytes * (size_t)farandole_size() : bytes;
  request->output = inPlace ? (void*)request->input : memoryOf(out);
#ifdef FARANDOLE_BYTES_UNKNOWN
  request->output_bytes = (int64_t)out;
#endif
  /* Nobody else drives it meanwhile: who does what would be chance. */
  if (kase->operation < 0) request->flags |= FARANDOLE_FLAG_WILL_WAIT;
}

static farandole_handle handles[kMostGradients];

static void submit(int number) {
  must(farandole_submit(&requests[number], 1, &handles[number]), "submit");
}

static void finish(int number) {
  must(farandole_wait(handles[number], kMilliseconds), "wait");
  must(farandole_release(handles[number]), "release");
}

static void repeat(void) {
  if (kase->operation == kIdle) {
    int32_t done = 0;
    must(farandole_test(handles[farandole_rank()], &done), "test");
    if (done) fail("the operation has run without the other rank");
  } else if (kase->operation == kGradients) {
    for (int i = 0; i < gradients; ++i) submit(i);
    /* So that the batches are the same every time. */
    meet();
    for (int i = 0; i < gradients; ++i) finish(i);
  } else {
    farandole_handle pending = 0;
    must(farandole_call(&requests[0], kMilliseconds, &pending), "call");
    if (pending != 0) fail("the result is the library's");
  }
}

static void begin(void) {
  const int64_t elements = kase->bytes / (int64_t)sizeof(float);
  int64_t counts[kMostGradients];
  switch (kase->operation) {
    case kIdle: /* each rank waits for what the other has not submitted yet */
      if (farandole_size() != 2) fail("idle needs two ranks");
      prepare(0, elements);
      prepare(1, elements);
      submit(farandole_rank());
      break;
    case kGradients:
      gradients = resnet50(counts);
      if (gradients != kMostGradients) fail("%d gradients", gradients);
      for (int i = 0; i < gradients; ++i) prepare(i, kase->bytes > 0 ? elements : counts[i]);
      break;
    default: prepare(0, elements);
  }
}

static void end(void) {
  if (kase->operation != kIdle) return;
  submit(1 - farandole_rank());
  finish(0);
  finish(1);
}

static int warmUp(void) {
  if (kase->flags == FARANDOLE_FLAG_ORDERED) return kWarmUp + kNamesByOrder;
  return gradients > 0 && kase->bytes == 0 ? 1 : kWarmUp;
}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "under") == 0) return bringPidfd(argv + 2);
  if (argc != 5) {
    fail(
        "usage: instructions CASE WINDOWS REPETITIONS FOLDER\n"
        "       instructions under VALGRIND ... instructions CASE ...");
  }
  kase = find(argv[1]);
  const int windows = atoi(argv[2]);
  const int repetitions = atoi(argv[3]);
  must(farandole_init(NULL), "init");
  openPipes(argv[4]);
  begin();
  for (int i = warmUp(); i > 0; --i) repeat();
  for (int window = 0; window < windows; ++window) {
    meet();
    CALLGRIND_ZERO_STATS;
    for (int i = 0; i < repetitions; ++i) repeat();
    CALLGRIND_DUMP_STATS_AT("window");
  }
  meet();
  end();
  must(farandole_shutdown(), "shutdown");
  return 0;
}
