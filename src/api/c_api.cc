// The C ABI: each function checks the process, finds the runtime, converts, and turns a Status into
// a code.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <vector>

#include "api/call.h"
#include "api/library.h"
#include "api/requests.h"
#include "farandole.h"

namespace farandole::api {
namespace {

// The numbers of the ABI and of the core are the same.
static_assert(FARANDOLE_INTERNAL == static_cast<int>(Code::kInternal));
static_assert(FARANDOLE_PEER_LOST == static_cast<int>(Code::kPeerLost));
static_assert(FARANDOLE_NOT_INITIALISED == static_cast<int>(Code::kNotInitialised));
static_assert(FARANDOLE_COMPLEX128 == static_cast<int>(DType::kComplex128));
static_assert(FARANDOLE_FLOAT32 == static_cast<int>(DType::kFloat32));
static_assert(FARANDOLE_ADASUM == static_cast<int>(ReduceOp::kAdasum));
static_assert(FARANDOLE_RECV == static_cast<int>(control::Kind::kReceive));
static_assert(FARANDOLE_JOIN == static_cast<int>(control::Kind::kJoin));
static_assert(FARANDOLE_ANY_RANK == collective::kAnyMember);

thread_local Status lastError_;

farandole_code report(Status status) {
  if (status.ok()) return FARANDOLE_OK;
  lastError_ = std::move(status);
  return static_cast<farandole_code>(lastError_.code());
}

void fill(farandole_error& error, const Status& status) {
  error.code = static_cast<std::int32_t>(status.code());
  error.rank = status.rank();
  error.host = status.host().c_str();
  error.tensor = status.tensor().c_str();
  error.message = status.message().c_str();
}

// Runs the body of an ABI function: never in a fork child, and nothing is ever thrown out of it.
template <typename Body>
farandole_code guarded(Body&& body) noexcept {
  try {
    if (Status status = Library::checkProcess(); !status.ok()) return report(std::move(status));
    return report(body());
  } catch (const std::bad_alloc&) {
    return report(Status::outOfMemory("no memory left"));
  } catch (const std::exception& error) {
    return report(Status::internal(error.what()));
  }
}

Status noSuchHandle() {
  return Status::invalid("no such handle: it was never given out, or has been released");
}

// One of the runtime's numbers, or -1.
template <typename Get>
std::int32_t identity(Get&& get) noexcept {
  try {
    if (!Library::checkProcess().ok()) return -1;
    const auto runtime = Library::instance().runtime();
    return runtime ? get(*runtime) : -1;
  } catch (...) {
    return -1;
  }
}

}  // namespace

// The functions of farandole.h. A definition inside a namespace is another declaration to the
// compiler, which forgets the header's visibility.
#pragma GCC visibility push(default)
extern "C" {

uint32_t farandole_abi_version(void) { return FARANDOLE_ABI_VERSION; }
const char* farandole_version(void) { return FARANDOLE_VERSION; }

farandole_code farandole_init(const farandole_init_options* options) {
  return guarded([&]() -> Status {
    std::int64_t timeout = 0;
    if (options != nullptr && options->struct_size >= sizeof(farandole_init_options))
      timeout = options->timeout_ms;
    if (timeout < 0) return Status::invalid("timeout_ms must not be negative");
    return Library::instance().init(std::chrono::milliseconds(timeout));
  });
}

farandole_code farandole_shutdown(void) {
  return guarded([] { return Library::instance().shutdown(); });
}

farandole_code farandole_end_with_process(int32_t failing) {
  return guarded([=] { return Library::instance().endWithProcess(failing != 0); });
}

int32_t farandole_is_initialised(void) {
  return identity([](runtime::Runtime&) { return 1; }) == 1 ? 1 : 0;
}
int32_t farandole_rank(void) {
  return identity([](runtime::Runtime& r) { return r.config().rank; });
}
int32_t farandole_size(void) {
  return identity([](runtime::Runtime& r) { return r.config().size; });
}
int32_t farandole_local_rank(void) {
  return identity([](runtime::Runtime& r) { return r.config().localRank; });
}
int32_t farandole_local_size(void) {
  return identity([](runtime::Runtime& r) { return r.config().localSize; });
}
int32_t farandole_cross_rank(void) {
  return identity([](runtime::Runtime& r) { return r.cross().rank; });
}
int32_t farandole_cross_size(void) {
  return identity([](runtime::Runtime& r) { return r.cross().size; });
}
uint64_t farandole_epoch(void) { return Library::instance().epoch(); }

farandole_code farandole_last_error(farandole_error* error) {
  if (error == nullptr || error->struct_size < sizeof(farandole_error))
    return FARANDOLE_INVALID_ARGUMENT;
  fill(*error, lastError_);
  return FARANDOLE_OK;
}

const char* farandole_code_name(farandole_code code) {
  return codeName(static_cast<Code>(code)).data();
}

farandole_code farandole_allocate(size_t bytes, void** memory) {
  return guarded([&]() -> Status {
    if (memory == nullptr) return Status::invalid("memory is NULL");
    auto allocated = Library::instance().allocate(bytes);
    *memory = allocated.ok() ? allocated.value() : nullptr;
    return allocated.status();
  });
}

farandole_code farandole_free(void* memory) {
  return guarded([&] { return Library::instance().free(memory); });
}

int32_t farandole_is_shared(const void* memory, size_t bytes) {
  return identity([&](runtime::Runtime& r) { return r.arena().owns(memory, bytes) ? 1 : 0; }) == 1
             ? 1
             : 0;
}

farandole_code farandole_add_set(const int32_t* ranks, int32_t count, farandole_set* set) {
  return guarded([&]() -> Status {
    auto runtime = Library::instance().requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    if (set == nullptr || count < 0 || (ranks == nullptr && count > 0)) {
      return Status::invalid("ranks or set is NULL");
    }
    auto added = (*runtime)->addSet(std::vector<std::int32_t>(ranks, ranks + count));
    if (added.ok()) *set = added.value();
    return added.status();
  });
}

farandole_code farandole_remove_set(farandole_set set) {
  return guarded([&]() -> Status {
    auto runtime = Library::instance().requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    return (*runtime)->removeSet(set);
  });
}

int32_t farandole_set_size(farandole_set set) {
  return identity([&](runtime::Runtime& r) {
    const auto info = r.set(set);
    return info ? static_cast<std::int32_t>(info->ranks.size()) : -1;
  });
}

int32_t farandole_set_rank(farandole_set set) {
  return identity([&](runtime::Runtime& r) {
    const auto info = r.set(set);
    return info ? info->me : -1;
  });
}

farandole_code farandole_set_ranks(farandole_set set, int32_t* ranks, int32_t capacity) {
  return guarded([&]() -> Status {
    auto runtime = Library::instance().requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    const auto info = (*runtime)->set(set);
    if (!info) return Status::invalid("there is no process set " + std::to_string(set));
    if (ranks == nullptr || capacity < static_cast<std::int32_t>(info->ranks.size())) {
      return Status::invalid("process set " + std::to_string(set) + " has " +
                             std::to_string(info->ranks.size()) + " ranks: no room for them");
    }
    std::copy(info->ranks.begin(), info->ranks.end(), ranks);
    return {};
  });
}

int32_t farandole_set_count(void) {
  return identity([](runtime::Runtime& r) { return static_cast<std::int32_t>(r.setIds().size()); });
}

farandole_code farandole_set_ids(farandole_set* sets, int32_t capacity) {
  return guarded([&]() -> Status {
    auto runtime = Library::instance().requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    const auto ids = (*runtime)->setIds();
    if (sets == nullptr || capacity < static_cast<std::int32_t>(ids.size())) {
      return Status::invalid("there are " + std::to_string(ids.size()) +
                             " process sets: no room for them");
    }
    std::copy(ids.begin(), ids.end(), sets);
    return {};
  });
}

farandole_code farandole_submit(const farandole_request* requests, size_t count,
                                farandole_handle* handles) {
  return guarded([&]() -> Status {
    Library& library = Library::instance();
    auto runtime = library.requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    if (count == 0) return {};
    if (requests == nullptr || handles == nullptr)
      return Status::invalid("requests or handles is NULL");
    // Mostly it is one: that takes no memory.
    conductor::EntryPtr single;
    std::vector<conductor::EntryPtr> several(count > 1 ? count : 0);
    const std::span<conductor::EntryPtr> entries =
        count > 1 ? std::span(several) : std::span(&single, 1);
    const TimePoint now = Clock::now();
    // An older caller's structs are shorter.
    const std::size_t stride = requests[0].struct_size;
    if (count > 1 && stride % alignof(farandole_request) != 0) {
      return Status::invalid("farandole_request.struct_size is " + std::to_string(stride));
    }
    for (size_t i = 0; i < count; ++i) {
      const auto& request = *reinterpret_cast<const farandole_request*>(
          reinterpret_cast<const std::byte*>(requests) + i * stride);
      if (request.struct_size != stride) {
        return Status::invalid("all requests of one submit call must have the same struct_size");
      }
      if (request.set != requests[0].set) {
        return Status::invalid("all requests of one submit call must name the same process set");
      }
      entries[i] = std::make_shared<conductor::Entry>();
      FARANDOLE_RETURN_IF_ERROR(checkRequest(**runtime, request, entries[i]->request));
      entries[i]->set = requests[0].set;
      entries[i]->submitted = now;
    }
    // Handles first: a callback may run before submit returns.
    for (size_t i = 0; i < count; ++i) {
      library.handles().add(entries[i]);
      handles[i] = entries[i]->handle;
    }
    Status status = (*runtime)->conductor().submit(requests[0].set, entries);
    if (!status.ok()) {
      for (size_t i = 0; i < count; ++i) {
        library.handles().release(handles[i]);
        handles[i] = 0;
      }
    }
    return status;
  });
}

farandole_code farandole_wait(farandole_handle handle, int64_t timeout_ms) {
  return guarded([&]() -> Status {
    Library& library = Library::instance();
    const conductor::EntryPtr entry = library.handles().find(handle);
    if (!entry) return noSuchHandle();
    if (!entry->done.load(std::memory_order_acquire)) {
      const auto runtime = library.runtime();
      // Between the moment a shutdown takes the runtime away and the moment it ends what is in
      // flight.
      if (!runtime) return Status(Code::kShutdown, "farandole is being shut down on this rank");
      FARANDOLE_RETURN_IF_ERROR(mayWait(*runtime));
      return waitFor(*runtime, entry, timeout_ms, Clock::now());
    }
    return entry->outcome.status;
  });
}

farandole_code farandole_call(const farandole_request* request, int64_t timeout_ms,
                              farandole_handle* pending) {
  if (pending != nullptr) *pending = 0;
  return guarded([&]() -> Status {
    if (request == nullptr || pending == nullptr) {
      return Status::invalid("request or pending is NULL");
    }
    Library& library = Library::instance();
    auto runtime = library.requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    return call(library, **runtime, *request, timeout_ms, *pending);
  });
}

farandole_code farandole_test(farandole_handle handle, int32_t* done) {
  return guarded([&]() -> Status {
    Library& library = Library::instance();
    const conductor::EntryPtr entry = library.handles().find(handle);
    if (!entry) return noSuchHandle();
    if (done == nullptr) return Status::invalid("done is NULL");
    bool finished = entry->done.load(std::memory_order_acquire);
    if (!finished) {
      if (const auto runtime = library.runtime()) finished = runtime->conductor().test(entry);
    }
    *done = finished ? 1 : 0;
    return {};
  });
}

farandole_code farandole_cancel(farandole_handle handle) {
  return guarded([&]() -> Status {
    Library& library = Library::instance();
    const conductor::EntryPtr entry = library.handles().find(handle);
    if (!entry) return noSuchHandle();
    const auto runtime = library.runtime();
    // The answer comes from the set's first member; should that one not answer, the operation
    // simply goes on.
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));
    if (runtime && runtime->conductor().cancel(entry, deadline)) return {};
    if (entry->done.load(std::memory_order_acquire) &&
        entry->outcome.status.code() == Code::kCancelled)
      return {};
    return Status::unavailable("'" + conductor::nameOf(*entry) +
                               "' could not be cancelled: it is running or done");
  });
}

farandole_code farandole_release(farandole_handle handle) {
  return guarded([&]() -> Status {
    return Library::instance().handles().release(handle) ? Status() : noSuchHandle();
  });
}

farandole_code farandole_get_result(farandole_handle handle, farandole_result* result) {
  return guarded([&]() -> Status {
    const conductor::EntryPtr entry = Library::instance().handles().find(handle);
    if (!entry) return noSuchHandle();
    if (result == nullptr || result->struct_size < sizeof(farandole_result)) {
      return Status::invalid("farandole_result.struct_size is not set");
    }
    const std::uint32_t size = result->struct_size;
    std::memset(result, 0, sizeof *result);
    result->struct_size = size;
    result->last_joined = -1;
    result->source = -1;
    result->error.struct_size = sizeof result->error;
    if (!entry->done.load(std::memory_order_acquire)) {
      static const Status kPending(Code::kTimeout, "the operation is still pending");
      result->code = FARANDOLE_TIMEOUT;
      fill(result->error, kPending);
      return {};
    }
    const conductor::Outcome& outcome = entry->outcome;
    result->code = static_cast<std::int32_t>(outcome.status.code());
    fill(result->error, outcome.status);
    result->data = outcome.data;
    result->bytes = outcome.bytes;
    result->shape = outcome.shape.data();
    result->ndim = static_cast<std::int32_t>(outcome.shape.size());
    result->splits = outcome.splits.data();
    result->nsplits = static_cast<std::int32_t>(outcome.splits.size());
    result->last_joined = outcome.lastJoined;
    result->source = outcome.source;
    return {};
  });
}

farandole_code farandole_queue_create(farandole_queue** queue, int32_t* event_fd) {
  return guarded([&]() -> Status {
    if (queue == nullptr) return Status::invalid("queue is NULL");
    auto created = conductor::CompletionQueue::create();
    FARANDOLE_RETURN_IF_ERROR(created.status());
    if (event_fd != nullptr) *event_fd = (*created)->eventFd();
    *queue = new farandole_queue{std::move(created).value()};
    return {};
  });
}

size_t farandole_queue_pop(farandole_queue* queue, farandole_completion* out, size_t capacity) {
  if (queue == nullptr || out == nullptr) return 0;
  size_t popped = 0;
  guarded([&]() -> Status {
    conductor::Completion completions[64];
    while (popped < capacity) {
      const std::size_t got =
          queue->queue->pop(completions, std::min<std::size_t>(64, capacity - popped));
      for (std::size_t i = 0; i < got; ++i) {
        out[popped++] = {completions[i].handle, completions[i].tag,
                         static_cast<std::int32_t>(completions[i].code), 0};
      }
      if (got == 0) break;
    }
    return {};
  });
  return popped;
}

farandole_code farandole_queue_destroy(farandole_queue* queue) {
  return guarded([&]() -> Status {
    if (queue != nullptr && !queue->queue->awaitQuiet(std::chrono::milliseconds(100))) {
      return Status::invalid("the queue is still named by pending operations");
    }
    delete queue;
    return {};
  });
}

farandole_code farandole_start_timeline(const char* path) {
  return guarded([&]() -> Status {
    Library& library = Library::instance();
    auto runtime = library.requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    if (path == nullptr || *path == '\0') return Status::invalid("the timeline needs a path");
    return library.startTimeline(path, (*runtime)->config());
  });
}

farandole_code farandole_stop_timeline(void) {
  return guarded([] { return Library::instance().stopTimeline(); });
}

farandole_code farandole_get_counters(farandole_counters* counters) {
  return guarded([&]() -> Status {
    auto runtime = Library::instance().requireRuntime();
    FARANDOLE_RETURN_IF_ERROR(runtime.status());
    if (counters == nullptr || counters->struct_size < sizeof(farandole_counters)) {
      return Status::invalid("farandole_counters.struct_size is not set");
    }
    const auto now = (*runtime)->conductor().counters();
    counters->operations = now.operations;
    counters->batches = now.batches;
    counters->bytes = now.bytes;
    counters->plan_hits = now.planHits;
    counters->plan_misses = now.planMisses;
    counters->zero_copy_bytes = now.zeroCopyBytes;
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop

}  // namespace farandole::api
