/* How a rank of a benchmark talks to the driver (`farandole bench`): one text line each way on an
 * abstract unix socket, or from other machines on a TCP connection, so that a rank that is not
 * measured sleeps in read() and burns no processor.
 *
 *   environment  FARANDOLE_BENCH_SOCKET  name of the socket (without the leading zero byte), or
 *                                        tcp:TOKEN:PORT:ADDRESS
 *                FARANDOLE_BENCH_CPUS    "0,1,…": rank i runs on entry i mod n; empty: not pinned
 *
 *   rank → driver  hello RANK SIZE TOKEN (- on a unix socket)
 *                  offer TEXT · ready · done SECONDS_PER_OPERATION · error TEXT
 *   driver → rank  offers TEXT TEXT … (all ranks' texts, in the order of ranks)
 *                  run WORK DTYPE OP MEMORY BYTES WARMUP ITERATIONS CHECK · (end of file: leave)
 *
 * C99 and C++; used by our own ranks and by the peers' programs. Single-threaded. */
#ifndef FARANDOLE_BENCH_PEER_WIRE_H
#define FARANDOLE_BENCH_PEER_WIRE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BENCH_LINE_BYTES 8192

typedef struct bench_wire {
  int fd;
  size_t held; /* bytes in buffer that were read and not yet handed out */
  char buffer[BENCH_LINE_BYTES];
} bench_wire;

typedef struct bench_peer_job {
  char work[32];
  char dtype[32];
  char memory[32];
  unsigned long long bytes;
  int warmup;
  int iterations;
  int check;
} bench_peer_job;

static inline double bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 0 on success. */
static inline int bench_say(bench_wire* wire, const char* text) {
  char line[BENCH_LINE_BYTES];
  const int length = snprintf(line, sizeof line, "%s\n", text);
  size_t sent = 0;
  if (length < 0 || (size_t)length >= sizeof line) return -1;
  while (sent < (size_t)length) {
    const ssize_t n = send(wire->fd, line + sent, (size_t)length - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    sent += (size_t)n;
  }
  return 0;
}

/* The next line without its end, in line (BENCH_LINE_BYTES); 0 at end of file or on an error. */
static inline int bench_hear(bench_wire* wire, char* line) {
  for (;;) {
    char* end = (char*)memchr(wire->buffer, '\n', wire->held);
    if (end != NULL) {
      const size_t length = (size_t)(end - wire->buffer);
      memcpy(line, wire->buffer, length);
      line[length] = '\0';
      wire->held -= length + 1;
      memmove(wire->buffer, end + 1, wire->held);
      return 1;
    }
    if (wire->held == sizeof wire->buffer) return 0;
    {
      const ssize_t n = read(wire->fd, wire->buffer + wire->held, sizeof wire->buffer - wire->held);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return 0;
      wire->held += (size_t)n;
    }
  }
}

/* A connected socket, or -1. */
static inline int bench_dial_unix(const char* name) {
  struct sockaddr_un address;
  const size_t length = strlen(name);
  int fd;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (length + 1 > sizeof address.sun_path) return -1;
  memcpy(address.sun_path + 1, name, length);
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, (const struct sockaddr*)&address,
              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

static inline int bench_dial_tcp(const char* address, const char* port) {
  struct addrinfo hints;
  struct addrinfo* found = NULL;
  int fd = -1;
  memset(&hints, 0, sizeof hints);
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (getaddrinfo(address, port, &hints, &found) != 0) return -1;
  fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

/* Connects and introduces this rank. 0 on success. */
static inline int bench_connect(bench_wire* wire, int rank, int size) {
  const char* name = getenv("FARANDOLE_BENCH_SOCKET");
  char token[72] = "-";
  char port[8];
  char address[80];
  char hello[128];
  memset(wire, 0, sizeof *wire);
  wire->fd = -1;
  if (name == NULL) return -1;
  if (strncmp(name, "tcp:", 4) != 0) {
    wire->fd = bench_dial_unix(name);
  } else if (sscanf(name, "tcp:%71[0-9a-f]:%7[0-9]:%79s", token, port, address) == 3) {
    wire->fd = bench_dial_tcp(address, port);
  }
  if (wire->fd < 0) return -1;
  snprintf(hello, sizeof hello, "hello %d %d %s", rank, size, token);
  return bench_say(wire, hello);
}

/* Pins the calling thread as the driver asks. To be called after the library under test was
 * initialised: it may look at how many processors it is allowed to use. */
static inline void bench_pin(int rank) {
  const char* text = getenv("FARANDOLE_BENCH_CPUS");
  int cpus[CPU_SETSIZE];
  int count = 0;
  cpu_set_t set;
  while (text != NULL && *text != '\0' && count < CPU_SETSIZE) {
    char* end;
    const long cpu = strtol(text, &end, 10);
    if (end == text || cpu < 0 || cpu >= CPU_SETSIZE) break;
    cpus[count++] = (int)cpu;
    text = *end == ',' ? end + 1 : end;
  }
  if (count == 0) return;
  CPU_ZERO(&set);
  CPU_SET(cpus[rank % count], &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

/* 1 if the line is a run command. */
static inline int bench_parse(const char* line, bench_peer_job* job) {
  char op[32];
  return sscanf(line, "run %31s %31s %31s %31s %llu %d %d %d", job->work, job->dtype, op,
                job->memory, &job->bytes, &job->warmup, &job->iterations, &job->check) == 8 &&
         job->warmup >= 0 && job->iterations > 0;
}

static inline int bench_done(bench_wire* wire, double seconds) {
  char text[64];
  snprintf(text, sizeof text, "done %.9e", seconds);
  return bench_say(wire, text);
}

/* What element i of rank's input is in a checked operation, and what n ranks' sum must be. */
static inline int bench_value(int rank, unsigned long long i) {
  return 1 + (int)((i + (unsigned long long)rank) % 3);
}
static inline int bench_sum(int ranks, unsigned long long i) {
  int sum = 0;
  for (int r = 0; r < ranks; ++r) sum += bench_value(r, i);
  return sum;
}

/* Fills and verifies a float array in a checked operation. verify: the first wrong index, or -1. */
static inline void bench_fill(float* data, unsigned long long count, int rank) {
  for (unsigned long long i = 0; i < count; ++i) data[i] = (float)bench_value(rank, i);
}
static inline long long bench_verify(const float* data, unsigned long long count, int ranks) {
  float expected[3];
  for (unsigned long long i = 0; i < 3; ++i) expected[i] = (float)bench_sum(ranks, i);
  for (unsigned long long i = 0; i < count; ++i) {
    if (data[i] != expected[i % 3]) return (long long)i;
  }
  return -1;
}

#endif
