/* Farandole's C ABI, the one binary interface of the library. The C++ API (include/farandole/) and
 * the adapters for other languages are thin layers over it.
 *
 * The header is C99; it also compiles as C++11 and later.
 *
 * Threads.   Every function may be called from any thread at any time, unless its comment says
 *            otherwise.
 *
 * Errors.    Functions return a farandole_code. farandole_last_error() describes the calling
 *            thread's last failure. The description of a failed operation stays with its handle:
 *            farandole_get_result().
 *
 * Fork.      In a fork child (a data-loading worker) every call but the version and error queries
 *            returns FARANDOLE_FORKED. The exit of the child affects no rank. After exec() it is an
 *            ordinary process again.
 *
 * Signals.   Nothing here is async-signal-safe. A signal handler that runs in a thread inside
 *            farandole_wait or farandole_call makes that call return FARANDOLE_INTERRUPTED; the
 *            operation goes on and may be waited for again.
 *
 * Shutdown.  Handles outlive farandole_shutdown: pending ones become FARANDOLE_SHUTDOWN, finished
 *            ones keep their result, and all are released as usual. No callback runs after
 *            farandole_shutdown has returned. Memory from farandole_allocate stays valid until
 *            farandole_free, but is no longer shared.
 *
 * Structs.   Set struct_size to the size of the struct; the *_INIT macros do. New fields are only
 *            ever appended, so a program that was built against an older header keeps working.
 */
#ifndef FARANDOLE_H
#define FARANDOLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FARANDOLE_ABI_VERSION 1

#if defined(_WIN32)
#error "Farandole runs on Linux"
#endif
#define FARANDOLE_API __attribute__((visibility("default")))

/* ---- Codes ----------------------------------------------------------------------------------- */

typedef enum farandole_code {
  FARANDOLE_OK = 0,
  FARANDOLE_INVALID_ARGUMENT = 1, /* the call itself is wrong; nothing was started */
  /* Ranks disagree about dtype, shape, reduction operator, root or scale, or the output of one rank
   * is too small for what the others contribute. The job can go on. */
  FARANDOLE_MISMATCH = 2,
  FARANDOLE_DUPLICATE_NAME = 3,   /* an operation of that name is in flight in that set */
  FARANDOLE_PEER_LOST = 4,        /* a rank died, or left while it was needed */
  FARANDOLE_TIMEOUT = 5,          /* not done yet: wait again, or cancel */
  FARANDOLE_INTERRUPTED = 6,      /* a signal arrived while waiting; not done yet */
  FARANDOLE_CANCELLED = 7,        /* farandole_cancel was called in time */
  FARANDOLE_SHUTDOWN = 8,         /* farandole_shutdown was called on this rank */
  FARANDOLE_OUT_OF_MEMORY = 9,    /* the message says how much is missing */
  FARANDOLE_UNAVAILABLE = 10,     /* an external resource is missing: socket, file, agent */
  FARANDOLE_FORKED = 11,          /* this process was forked from a rank and is not one itself */
  FARANDOLE_NOT_INITIALISED = 12, /* farandole_init has not been called, or shutdown has */
  FARANDOLE_INTERNAL = 13         /* a defect of Farandole, or a rank that breaks the protocol */
} farandole_code;

typedef enum farandole_dtype {
  FARANDOLE_UINT8 = 0,
  FARANDOLE_INT8 = 1,
  FARANDOLE_UINT16 = 2,
  FARANDOLE_INT16 = 3,
  FARANDOLE_INT32 = 4,
  FARANDOLE_INT64 = 5,
  FARANDOLE_FLOAT16 = 6,
  FARANDOLE_BFLOAT16 = 7,
  FARANDOLE_FLOAT32 = 8,
  FARANDOLE_FLOAT64 = 9,
  FARANDOLE_BOOL = 10,      /* one byte, 0 or 1 */
  FARANDOLE_COMPLEX64 = 11, /* sums, averages and data movement only */
  FARANDOLE_COMPLEX128 = 12 /* sums, averages and data movement only */
} farandole_dtype;

/* The reduction operator. */
typedef enum farandole_reduce_op {
  FARANDOLE_SUM = 0,
  FARANDOLE_AVERAGE = 1, /* integers: summed in 64 bits, divided in float64, truncated to zero */
  FARANDOLE_MIN = 2,     /* NaN propagates */
  FARANDOLE_MAX = 3,     /* NaN propagates */
  FARANDOLE_PRODUCT = 4,
  FARANDOLE_BAND = 5,  /* bitwise and; integers and bool */
  FARANDOLE_BOR = 6,   /* bitwise or; integers and bool */
  FARANDOLE_BXOR = 7,  /* bitwise exclusive or; integers and bool */
  FARANDOLE_ADASUM = 8 /* float16, bfloat16, float32, float64; allreduce only */
} farandole_reduce_op;

/* What the members of a process set do together. "Rows" are the entries of the first dimension. */
typedef enum farandole_operation {
  FARANDOLE_ALLREDUCE = 0,
  FARANDOLE_ALLGATHER = 1, /* the number of rows may differ between members */
  FARANDOLE_BROADCAST = 2,
  FARANDOLE_ALLTOALL = 3,      /* splits[i] rows go to member i; without splits, equal parts */
  FARANDOLE_REDUCESCATTER = 4, /* rows are divided as evenly as possible, or by splits */
  FARANDOLE_REDUCE = 5,
  FARANDOLE_GATHER = 6,  /* the number of rows may differ between members */
  FARANDOLE_SCATTER = 7, /* the root's rows are divided as evenly as possible, or by its splits */
  FARANDOLE_BARRIER = 8,
  FARANDOLE_JOIN = 9,  /* no more data on this rank: it contributes neutral elements from now on */
  FARANDOLE_SEND = 10, /* root is the peer; matched by peer and tag, not by name */
  FARANDOLE_RECV = 11  /* root is the peer, or FARANDOLE_ANY_RANK */
} farandole_operation;

#define FARANDOLE_ANY_RANK (-1)

/* ---- Life ------------------------------------------------------------------------------------ */

typedef struct farandole_init_options {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t timeout_ms; /* 0: the default, FARANDOLE_START_TIMEOUT */
} farandole_init_options;

FARANDOLE_API uint32_t farandole_abi_version(void);
FARANDOLE_API const char* farandole_version(void);

/* Joins the job in which this process was started (`farandole run`), or makes a job of one rank.
 * options may be NULL. Does nothing if the process has already joined; may be called again after a
 * shutdown. */
FARANDOLE_API farandole_code farandole_init(const farandole_init_options* options);

/* Leaves the job. Pending operations end as FARANDOLE_SHUTDOWN on this rank. */
FARANDOLE_API farandole_code farandole_shutdown(void);

/* For a process that is about to end and does not know its exit status yet; call it before the
 * buffers of pending operations are freed. Those end as with farandole_shutdown, but the other
 * ranks are told only when the process calls exit(3), and only if its status is 0. With another
 * status the process ends without telling them, so that they see a failure and not a rank that has
 * left.
 *
 * Where that is not possible (operations are pending, and MPI or other machines are involved) this
 * is farandole_shutdown, unless failing is not 0: the status is then expected not to be 0, and
 * pending operations go on until the process ends. */
FARANDOLE_API farandole_code farandole_end_with_process(int32_t failing);

FARANDOLE_API int32_t farandole_is_initialised(void);

/* All of these are -1 unless initialised. "local": among the ranks of this machine. "cross": among
 * the ranks that have this local rank, one on each machine that has one. */
FARANDOLE_API int32_t farandole_rank(void);
FARANDOLE_API int32_t farandole_size(void);
FARANDOLE_API int32_t farandole_local_rank(void);
FARANDOLE_API int32_t farandole_local_size(void);
FARANDOLE_API int32_t farandole_cross_rank(void);
FARANDOLE_API int32_t farandole_cross_size(void);

/* The number of the job's current membership; 0 before the first init. */
FARANDOLE_API uint64_t farandole_epoch(void);

/* ---- Errors ---------------------------------------------------------------------------------- */

typedef struct farandole_error {
  uint32_t struct_size;
  int32_t code; /* farandole_code */
  int32_t rank; /* the rank at fault, or -1 */
  uint32_t reserved;
  const char* host;    /* the host of that rank, or "" */
  const char* tensor;  /* the name of the operation, or "" */
  const char* message; /* one or more lines for a person */
} farandole_error;

/* Describes the last failure of the calling thread. The texts stay valid until this thread's next
 * call into Farandole. */
FARANDOLE_API farandole_code farandole_last_error(farandole_error* error);

FARANDOLE_API const char* farandole_code_name(farandole_code code);

/* ---- Shared memory --------------------------------------------------------------------------- */

/* Memory that all ranks of this machine can reach; it is reduced without a copy. 64-byte aligned,
 * zeroed, with its pages reserved: FARANDOLE_OUT_OF_MEMORY says how much is missing. Before init:
 * ordinary memory. */
FARANDOLE_API farandole_code farandole_allocate(size_t bytes, void** memory);
FARANDOLE_API farandole_code farandole_free(void* memory);

/* 1 if [memory, memory + bytes) lies in one allocation that is shared now, else 0. */
FARANDOLE_API int32_t farandole_is_shared(const void* memory, size_t bytes);

/* ---- Process sets ---------------------------------------------------------------------------- */

typedef int32_t farandole_set; /* 0 is the world */

/* Makes a process set. Collective over its members, which all list the ranks in the same order. A
 * rank that is not a member returns at once, with a set in which it is not included. Ids count the
 * calls on this rank. */
FARANDOLE_API farandole_code farandole_add_set(const int32_t* ranks, int32_t count,
                                               farandole_set* set);

/* Local; refused while operations of the set are in flight on this rank. */
FARANDOLE_API farandole_code farandole_remove_set(farandole_set set);

FARANDOLE_API int32_t farandole_set_size(farandole_set set); /* -1: no such set */
FARANDOLE_API int32_t farandole_set_rank(farandole_set set); /* -1: no such set, or not a member */

/* The members' global ranks, in the order of the set. */
FARANDOLE_API farandole_code farandole_set_ranks(farandole_set set, int32_t* ranks,
                                                 int32_t capacity);

FARANDOLE_API int32_t farandole_set_count(void);
FARANDOLE_API farandole_code farandole_set_ids(farandole_set* sets, int32_t capacity);

/* ---- Operations ------------------------------------------------------------------------------ */

typedef uint64_t farandole_handle; /* 0 is none */
typedef struct farandole_queue farandole_queue;

/* Returns memory for an output whose size is known only now, or NULL to fail the operation. Runs on
 * the thread that drives the operation; must not call Farandole. */
typedef void* (*farandole_allocator)(void* user, size_t bytes, const int64_t* shape, int32_t ndim);

/* Called when an operation is done. Callbacks run on Farandole's completion thread, one after
 * another (but see FARANDOLE_FLAG_CALLBACK_ANYWHERE). A callback must not block; it may submit,
 * test and release, but not wait. */
typedef void (*farandole_callback)(void* user, farandole_handle handle, farandole_code code);

enum {
  /* This thread waits right after the submission, so the background thread is not woken. */
  FARANDOLE_FLAG_WILL_WAIT = 1,

  /* A promise: all members of the set submit their ordered operations in the same order, and none
   * of them has joined. Small ones between machines then need no agreement first and take a third
   * of the time; elsewhere nothing changes. Ordered and other operations may be mixed. Ordered
   * operations that do not match end as FARANDOLE_MISMATCH on all members; those with different
   * names that are not small, or whose members are on one machine, stall instead. Several of one
   * name may be in flight. Between machines they cannot be cancelled. */
  FARANDOLE_FLAG_ORDERED = 2,

  /* on_complete may run on whichever thread completes the operation, so that no thread has to be
   * woken for it: a thread of Farandole's, or one inside farandole_wait, _call, _test, _cancel or
   * _shutdown, for this operation or for another. It may run before farandole_submit has returned
   * (on another thread) and at the same time as other callbacks, but never inside farandole_submit
   * and never inside another callback. The rules for callbacks apply, and it must be brief: this
   * rank's operations may make no progress meanwhile. A caller of one of these functions must hold
   * no lock that the callback takes. */
  FARANDOLE_FLAG_CALLBACK_ANYWHERE = 4
};

typedef struct farandole_request {
  uint32_t struct_size;
  int32_t operation; /* farandole_operation: what the members do together */
  int32_t dtype;     /* farandole_dtype */
  int32_t op;        /* farandole_reduce_op, the reduction operator; ignored without a reduction */
  int32_t root; /* global rank: of broadcast, reduce, gather, scatter; the peer of send, recv */
  farandole_set set;
  uint32_t flags;
  int32_t tag;       /* send, recv: >= 0 */
  const char* name;  /* NULL: named by call order, which must then agree between ranks */
  const void* input; /* may be NULL where the rank contributes no elements */

  /* May equal input. With allgather, alltoall, gather, reducescatter and scatter it may be NULL:
   * the allocator is asked, or the library owns the result until the handle is released. */
  void* output;

  const int64_t* shape; /* of the input; of the expected data for broadcast and recv */
  int32_t ndim;
  int32_t nsplits;
  const int64_t* splits; /* rows for each member */

  /* Every input is multiplied by prescale before a reduction, the result by postscale after it.
   * Integers are scaled in float64 (and truncated), float16 and bfloat16 in float32. */
  double prescale;
  double postscale;

  uint64_t group; /* not 0: requests of one submit call with the same group run all, or none does */
  farandole_allocator allocate;
  void* allocate_user;
  farandole_callback on_complete;
  void* on_complete_user;
  farandole_queue* queue; /* the completion is also put here */
  uint64_t queue_tag;

  /* The size of the output buffer; nothing is written beyond it. Where the size of the result
   * follows from this request (allreduce, broadcast, reduce, reducescatter, recv), a smaller output
   * is refused by the call. Where it depends on other ranks (allgather, alltoall, gather, scatter),
   * the operation ends as FARANDOLE_MISMATCH on all members, and nothing has been written on any.
   * FARANDOLE_BYTES_UNKNOWN, or a struct that ends before this field: what this request alone asks
   * for, which for these four is the rows of its own shape (allgather, gather: times the number of
   * members). */
  int64_t output_bytes;
} farandole_request;
#define FARANDOLE_BYTES_UNKNOWN (-1)

/* Starts count operations; handles[i] receives the handle of the i-th. The requests are struct_size
 * bytes apart, and all have the same struct_size. All or nothing: on an error no operation was
 * started. Buffers belong to Farandole until their operation is done. */
FARANDOLE_API farandole_code farandole_submit(const farandole_request* requests, size_t count,
                                              farandole_handle* handles);

/* Waits until the operation is done: FARANDOLE_OK or its error. timeout_ms < 0: no time limit (a
 * lost rank still ends it). FARANDOLE_TIMEOUT and FARANDOLE_INTERRUPTED leave it running. */
FARANDOLE_API farandole_code farandole_wait(farandole_handle handle, int64_t timeout_ms);

/* Starts one operation and waits for it: submit, wait and release in one, and cheaper. *pending
 * becomes 0, unless something is left that the caller must release: the operation itself after
 * FARANDOLE_TIMEOUT or FARANDOLE_INTERRUPTED, to wait for again, or a result that the library owns.
 * Not for requests with on_complete or queue. */
FARANDOLE_API farandole_code farandole_call(const farandole_request* request, int64_t timeout_ms,
                                            farandole_handle* pending);

/* *done becomes 1 if wait would return at once. Also makes a little progress on pending work. */
FARANDOLE_API farandole_code farandole_test(farandole_handle handle, int32_t* done);

/* Withdraws an operation that no other rank has been told to execute: it ends as
 * FARANDOLE_CANCELLED here, and on the other ranks as a mismatch that names this rank. If it is too
 * late: FARANDOLE_UNAVAILABLE, and the operation goes on. send and recv, and ordered operations
 * between machines, cannot be withdrawn. */
FARANDOLE_API farandole_code farandole_cancel(farandole_handle handle);

/* Frees the handle and a result that the library owns. A pending operation goes on and is forgotten
 * when it is done. */
FARANDOLE_API farandole_code farandole_release(farandole_handle handle);

typedef struct farandole_result {
  uint32_t struct_size;
  int32_t code; /* of the operation; FARANDOLE_TIMEOUT while it is pending */
  void* data;   /* the output */
  size_t bytes;
  const int64_t* shape; /* of the output */
  int32_t ndim;
  int32_t nsplits;
  const int64_t* splits; /* alltoall, gather, allgather: rows received from each member */
  int32_t last_joined;   /* join: the last rank to join */
  int32_t source;        /* recv: the sender */
  farandole_error error;
} farandole_result;

/* Texts and arrays stay valid until the handle is released. */
FARANDOLE_API farandole_code farandole_get_result(farandole_handle handle,
                                                  farandole_result* result);

/* ---- Completion queues ----------------------------------------------------------------------- */

typedef struct farandole_completion {
  farandole_handle handle;
  uint64_t tag; /* queue_tag of the request */
  int32_t code; /* farandole_code of the operation */
  uint32_t reserved;
} farandole_completion;

/* *event_fd (may be NULL) is readable while the queue holds completions. The queue owns it. */
FARANDOLE_API farandole_code farandole_queue_create(farandole_queue** queue, int32_t* event_fd);

/* Moves up to capacity completions to out and returns their number. Never waits. */
FARANDOLE_API size_t farandole_queue_pop(farandole_queue* queue, farandole_completion* out,
                                         size_t capacity);

/* Only when no pending operation refers to the queue. */
FARANDOLE_API farandole_code farandole_queue_destroy(farandole_queue* queue);

/* ---- Observation ----------------------------------------------------------------------------- */

/* One Chrome trace of all ranks of a machine, written while the job runs. Call it on all ranks. */
FARANDOLE_API farandole_code farandole_start_timeline(const char* path);
FARANDOLE_API farandole_code farandole_stop_timeline(void);

typedef struct farandole_counters {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operations;      /* completed */
  uint64_t batches;         /* engine operations they needed; fusion makes this smaller */
  uint64_t bytes;           /* of the tensors of completed operations */
  uint64_t plan_hits;       /* submissions that were one short record */
  uint64_t plan_misses;     /* submissions that carried their whole description */
  uint64_t zero_copy_bytes; /* reduced in shared memory without a copy */
} farandole_counters;

FARANDOLE_API farandole_code farandole_get_counters(farandole_counters* counters);

/* ---- Initial values -------------------------------------------------------------------------- */

/* farandole_request request = FARANDOLE_REQUEST_INIT;
 *
 * All fields are 0 but those named here. C++ has had designated initialisers only since C++20, and
 * compilers warn about the fields that they leave out; there the macros call a function. */
#ifdef __cplusplus
static inline farandole_init_options farandole_init_options_initial(void) {
  farandole_init_options initial = farandole_init_options();
  initial.struct_size = sizeof(initial);
  return initial;
}
static inline farandole_request farandole_request_initial(void) {
  farandole_request initial = farandole_request();
  initial.struct_size = sizeof(initial);
  initial.prescale = 1.0;
  initial.postscale = 1.0;
  initial.output_bytes = FARANDOLE_BYTES_UNKNOWN;
  return initial;
}
#define FARANDOLE_INIT_OPTIONS_INIT farandole_init_options_initial()
#define FARANDOLE_REQUEST_INIT farandole_request_initial()
#else
#define FARANDOLE_INIT_OPTIONS_INIT \
  { .struct_size = sizeof(farandole_init_options) }
#define FARANDOLE_REQUEST_INIT                                                   \
  {                                                                              \
    .struct_size = sizeof(farandole_request), .prescale = 1.0, .postscale = 1.0, \
    .output_bytes = FARANDOLE_BYTES_UNKNOWN                                      \
  }
#endif

#ifdef __cplusplus
}
#endif
#endif
