/* Farandole's C ABI: the one binary interface. The C++ API (include/farandole/) and every adapter
 * for another language are thin layers over it.
 *
 * Threads.  Every function may be called from any thread at any time, except where its comment says
 * more. Errors.   Functions return a farandole_code. farandole_last_error() describes the calling
 * thread's last failure; a failed operation's own description stays with its handle
 * (farandole_get_result). Fork.     In a fork child (a data-loading worker) every call but the
 * version and error queries returns FARANDOLE_FORKED; the child's exit disturbs nobody. exec()
 * makes it an ordinary process again. Signals.  Nothing here is async-signal-safe. A signal handler
 * that runs in a thread inside farandole_wait makes it return FARANDOLE_INTERRUPTED; the operation
 * goes on and may be waited for again. Shutdown. Handles outlive farandole_shutdown: pending ones
 * become FARANDOLE_SHUTDOWN, finished ones keep their result; release them as usual. No callback
 * runs after farandole_shutdown has returned. Memory from farandole_allocate stays valid until
 * farandole_free, but is no longer shared. Structs.  Set struct_size to sizeof the struct (the
 * *_INIT macros do); new fields are only appended.
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

/* ---- Codes
 * -------------------------------------------------------------------------------------------- */

typedef enum farandole_code {
  FARANDOLE_OK = 0,
  FARANDOLE_INVALID_ARGUMENT = 1, /* the call itself is wrong; nothing was started */
  /* ranks disagree about dtype, shape, op, root or scale, or one's output is too small for what the
   * others bring; the job can go on */
  FARANDOLE_MISMATCH = 2,
  FARANDOLE_DUPLICATE_NAME = 3, /* that name is in flight in that set */
  FARANDOLE_PEER_LOST = 4,      /* a rank died, or left while it was needed */
  FARANDOLE_TIMEOUT = 5,        /* not done yet: wait again, or cancel */
  FARANDOLE_INTERRUPTED = 6,    /* a signal arrived while waiting: not done yet */
  FARANDOLE_CANCELLED = 7,
  FARANDOLE_SHUTDOWN = 8, /* farandole_shutdown was called on this rank */
  FARANDOLE_OUT_OF_MEMORY = 9,
  FARANDOLE_UNAVAILABLE = 10, /* a resource outside could not be had (socket, file, agent) */
  FARANDOLE_FORKED = 11,
  FARANDOLE_NOT_INITIALISED = 12,
  FARANDOLE_INTERNAL = 13
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
  FARANDOLE_COMPLEX128 = 12
} farandole_dtype;

typedef enum farandole_reduce_op {
  FARANDOLE_SUM = 0,
  FARANDOLE_AVERAGE =
      1, /* integers: summed in 64 bits, divided in float64, truncated towards zero */
  FARANDOLE_MIN = 2,
  FARANDOLE_MAX = 3,
  FARANDOLE_PRODUCT = 4,
  FARANDOLE_BAND = 5, /* bitwise: integers and bool */
  FARANDOLE_BOR = 6,
  FARANDOLE_BXOR = 7,
  FARANDOLE_ADASUM = 8 /* float16, bfloat16, float32, float64; allreduce only */
} farandole_reduce_op;

typedef enum farandole_operation {
  FARANDOLE_ALLREDUCE = 0,
  FARANDOLE_ALLGATHER = 1, /* first dimensions may differ between ranks */
  FARANDOLE_BROADCAST = 2,
  FARANDOLE_ALLTOALL = 3,      /* splits[i] rows go to member i; absent: equal parts */
  FARANDOLE_REDUCESCATTER = 4, /* first dimension split as evenly as possible, or by splits */
  FARANDOLE_REDUCE = 5,
  FARANDOLE_GATHER = 6,
  FARANDOLE_SCATTER = 7, /* root's first dimension split evenly, or by the root's splits */
  FARANDOLE_BARRIER = 8,
  FARANDOLE_JOIN = 9,  /* no more data on this rank: others' reductions see neutral elements */
  FARANDOLE_SEND = 10, /* root = peer; matched by peer and tag, not by name */
  FARANDOLE_RECV = 11  /* root = peer, or FARANDOLE_ANY_RANK */
} farandole_operation;

#define FARANDOLE_ANY_RANK (-1)

/* ---- Life
 * --------------------------------------------------------------------------------------------- */

typedef struct farandole_init_options {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t timeout_ms; /* 0: the default, FARANDOLE_START_TIMEOUT */
} farandole_init_options;
#define FARANDOLE_INIT_OPTIONS_INIT \
  { sizeof(farandole_init_options), 0, 0 }

FARANDOLE_API uint32_t farandole_abi_version(void);
FARANDOLE_API const char* farandole_version(void);

/* Joins the job this process was started in (`farandole run`), or makes a job of one rank. options
 * may be NULL. Initialising again without a shutdown between is a no-op. May be repeated after a
 * shutdown. */
FARANDOLE_API farandole_code farandole_init(const farandole_init_options* options);
FARANDOLE_API farandole_code farandole_shutdown(void);
/* For the time when a process is about to end and its exit status is not known yet, before buffers
 * of pending operations are freed: these end as with farandole_shutdown, but the other ranks are
 * told when the process calls exit(3), and only if its status is 0. With another one it ends at
 * once, so that they learn of the failure and not of a good-bye. Where that is not possible (MPI or
 * other machines are involved and something is pending) it is farandole_shutdown, unless failing:
 * the status is expected not to be 0, and pending operations go on until then. */
FARANDOLE_API farandole_code farandole_end_with_process(int32_t failing);
FARANDOLE_API int32_t farandole_is_initialised(void);

/* -1 unless initialised. */
FARANDOLE_API int32_t farandole_rank(void);
FARANDOLE_API int32_t farandole_size(void);
FARANDOLE_API int32_t farandole_local_rank(void);
FARANDOLE_API int32_t farandole_local_size(void);
FARANDOLE_API int32_t farandole_cross_rank(void);
FARANDOLE_API int32_t farandole_cross_size(void);
/* Counts the job's memberships; 0 before the first init. */
FARANDOLE_API uint64_t farandole_epoch(void);

/* ---- Errors
 * ------------------------------------------------------------------------------------------- */

typedef struct farandole_error {
  uint32_t struct_size;
  int32_t code; /* farandole_code */
  int32_t rank; /* the rank at fault, or -1 */
  uint32_t reserved;
  const char* host;    /* its host, or "" */
  const char* tensor;  /* the operation's name, or "" */
  const char* message; /* one or more lines for a person */
} farandole_error;

/* The texts stay valid until this thread's next call into Farandole. */
FARANDOLE_API farandole_code farandole_last_error(farandole_error* error);
FARANDOLE_API const char* farandole_code_name(farandole_code code);

/* ---- Shared memory
 * ------------------------------------------------------------------------------------ */

/* Memory that all ranks of this machine can reach: reduced with no copy at all. 64-byte aligned,
 * zeroed, pages reserved (FARANDOLE_OUT_OF_MEMORY says how much is missing). Before init: ordinary
 * memory. */
FARANDOLE_API farandole_code farandole_allocate(size_t bytes, void** memory);
FARANDOLE_API farandole_code farandole_free(void* memory);
/* 1 if [memory, memory + bytes) lies in one allocation that is shared now, else 0. */
FARANDOLE_API int32_t farandole_is_shared(const void* memory, size_t bytes);

/* ---- Process sets
 * ------------------------------------------------------------------------------------- */

typedef int32_t farandole_set; /* 0 is the world */

/* Collective over the members (in any order of ranks, the same on all members); a rank that is not
 * a member returns at once with a set in which it is not included. Ids count up by calls on this
 * rank. */
FARANDOLE_API farandole_code farandole_add_set(const int32_t* ranks, int32_t count,
                                               farandole_set* set);
/* Local; refused while operations of the set are in flight here. */
FARANDOLE_API farandole_code farandole_remove_set(farandole_set set);
FARANDOLE_API int32_t farandole_set_size(farandole_set set); /* -1: no such set */
FARANDOLE_API int32_t farandole_set_rank(farandole_set set); /* -1: no such set, or not a member */
FARANDOLE_API farandole_code farandole_set_ranks(farandole_set set, int32_t* ranks,
                                                 int32_t capacity);
FARANDOLE_API int32_t farandole_set_count(void);
FARANDOLE_API farandole_code farandole_set_ids(farandole_set* sets, int32_t capacity);

/* ---- Operations
 * --------------------------------------------------------------------------------------- */

typedef uint64_t farandole_handle; /* 0 is none */
typedef struct farandole_queue farandole_queue;

/* Returns memory for an output whose size is known only now, or NULL to fail the operation. Runs on
 * the thread that drives the operation; must not call Farandole. */
typedef void* (*farandole_allocator)(void* user, size_t bytes, const int64_t* shape, int32_t ndim);
/* Runs on Farandole's completion thread, one after the other (but see
 * FARANDOLE_FLAG_CALLBACK_ANYWHERE); must not block; may submit, test and release, not wait. */
typedef void (*farandole_callback)(void* user, farandole_handle handle, farandole_code code);

enum {
  FARANDOLE_FLAG_WILL_WAIT =
      1, /* this thread waits at once: do not wake the background thread for it */
  /* All members of the set submit their ordered operations in the same order, and none of them has
   * joined. Small ones between machines then need no agreement first, and take a third of the time;
   * elsewhere it changes nothing. Operations with and without it may be mixed. Ordered operations
   * that do not match end as a mismatch on all members (those with different names that are not
   * small, or within one machine, as a stall). Several of one name may be in flight.
   * Between machines they cannot be cancelled. */
  FARANDOLE_FLAG_ORDERED = 2,
  /* on_complete may run on whichever thread brings the operation to its end: Farandole's own, or
   * one that is inside farandole_wait, _test, _cancel or _shutdown, for this operation or for
   * another one. So no thread has to be woken for it. It may run before farandole_submit has
   * returned (on another thread), and at the same time as other callbacks; never inside of
   * farandole_submit, nor inside of another callback. The same is allowed in it as in any callback;
   * it must be brief: meanwhile this rank's operations may stand still. The caller holds no lock
   * that it needs while it calls one of these functions. */
  FARANDOLE_FLAG_CALLBACK_ANYWHERE = 4
};

typedef struct farandole_request {
  uint32_t struct_size;
  int32_t operation; /* farandole_operation */
  int32_t dtype;     /* farandole_dtype */
  int32_t op;        /* farandole_reduce_op, for reductions */
  int32_t root; /* global rank: broadcast, reduce, gather, scatter; the peer of send and recv */
  farandole_set set;
  uint32_t flags;
  int32_t tag;       /* send, recv: >= 0 */
  const char* name;  /* NULL: named by call order, which must then agree between ranks */
  const void* input; /* NULL is allowed where the rank contributes no elements */
  void* output; /* may equal input; NULL with allgather, alltoall, gather, reducescatter, scatter:
                   the allocator is asked, or the library owns the result until release */
  const int64_t* shape; /* of the input; of the expected data for broadcast and recv */
  int32_t ndim;
  int32_t nsplits;
  const int64_t* splits; /* rows of the first dimension for each member */
  double prescale;       /* applied to every input before, and to the result after the reduction; */
  double postscale;      /* integers in float64 (truncated), float16 and bfloat16 in float32 */
  uint64_t
      group; /* requests of one submit call with one non-zero group run together or not at all */
  farandole_allocator allocate;
  void* allocate_user;
  farandole_callback on_complete;
  void* on_complete_user;
  farandole_queue* queue; /* completion is also put here */
  uint64_t queue_tag;
  /* How many bytes there are at output; nothing is written behind them. Where the size of the
   * result follows from this request (allreduce, broadcast, reduce, reducescatter, recv) and is
   * larger, the call is refused. Where other ranks have a say in it (allgather, alltoall, gather,
   * scatter) the operation ends as FARANDOLE_MISMATCH on all members, and nothing has been written
   * on any. FARANDOLE_BYTES_UNKNOWN, or a struct that ends before this field: as much as this
   * request asks for itself, which is, for these four, the rows of its own shape (allgather,
   * gather: times the number of members). */
  int64_t output_bytes;
} farandole_request;
#define FARANDOLE_BYTES_UNKNOWN (-1)
#define FARANDOLE_REQUEST_INIT                                                                    \
  {                                                                                               \
    sizeof(farandole_request), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.0, 1.0, 0, 0, 0, 0, 0, \
        0, 0, FARANDOLE_BYTES_UNKNOWN                                                             \
  }

/* Starts count operations; handles[i] receives each one's handle. The requests lie struct_size
 * bytes apart, which is the same in all of them. All or nothing: on error no operation was started.
 * Buffers belong to Farandole until the handle is done. */
FARANDOLE_API farandole_code farandole_submit(const farandole_request* requests, size_t count,
                                              farandole_handle* handles);
/* Waits until done: FARANDOLE_OK or the operation's error. timeout_ms < 0: no limit of its own (a
 * lost rank still ends it). FARANDOLE_TIMEOUT and FARANDOLE_INTERRUPTED leave it running. */
FARANDOLE_API farandole_code farandole_wait(farandole_handle handle, int64_t timeout_ms);
/* Starts one operation and waits for it: submit, wait and release in one, for less. *pending
 * becomes 0, unless something is left that the caller must release: the operation after
 * FARANDOLE_TIMEOUT or FARANDOLE_INTERRUPTED, to wait for again, or a result that the library owns.
 * Not for requests with on_complete or queue. */
FARANDOLE_API farandole_code farandole_call(const farandole_request* request, int64_t timeout_ms,
                                            farandole_handle* pending);
/* *done becomes 1 when wait would return at once. Drives pending work a little. */
FARANDOLE_API farandole_code farandole_test(farandole_handle handle, int32_t* done);
/* Withdraws an operation that no other rank has been told to execute; it then ends as CANCELLED
 * here and as a mismatch naming this rank elsewhere. Otherwise FARANDOLE_UNAVAILABLE, and it goes
 * on. */
FARANDOLE_API farandole_code farandole_cancel(farandole_handle handle);
/* Frees the handle and library-owned results. A pending operation goes on and is forgotten when
 * done. */
FARANDOLE_API farandole_code farandole_release(farandole_handle handle);

typedef struct farandole_result {
  uint32_t struct_size;
  int32_t code; /* of the operation; FARANDOLE_TIMEOUT: still pending */
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

/* ---- Completion queues
 * -------------------------------------------------------------------------------- */

typedef struct farandole_completion {
  farandole_handle handle;
  uint64_t tag;
  int32_t code;
  uint32_t reserved;
} farandole_completion;

/* *event_fd (may be NULL) is readable while the queue holds completions. The queue owns it. */
FARANDOLE_API farandole_code farandole_queue_create(farandole_queue** queue, int32_t* event_fd);
FARANDOLE_API size_t farandole_queue_pop(farandole_queue* queue, farandole_completion* out,
                                         size_t capacity);
/* Only once no pending operation names it. */
FARANDOLE_API farandole_code farandole_queue_destroy(farandole_queue* queue);

/* ---- Observation
 * -------------------------------------------------------------------------------------- */

/* One Chrome trace of all ranks of a machine, appended to while it runs. Collective by convention.
 */
FARANDOLE_API farandole_code farandole_start_timeline(const char* path);
FARANDOLE_API farandole_code farandole_stop_timeline(void);

typedef struct farandole_counters {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operations;      /* completed */
  uint64_t batches;         /* engine operations they needed: fusion makes this smaller */
  uint64_t bytes;           /* of tensors completed */
  uint64_t plan_hits;       /* submissions that were one short record */
  uint64_t plan_misses;     /* submissions that carried their whole description */
  uint64_t zero_copy_bytes; /* reduced in shared memory without a copy */
} farandole_counters;
FARANDOLE_API farandole_code farandole_get_counters(farandole_counters* counters);

#ifdef __cplusplus
}
#endif
#endif
