#include "api/call.h"

#include <span>
#include <utility>

#include "api/requests.h"

namespace farandole::api {
namespace {

// The operations of a thread follow each other, so they can share the memory of one entry.
conductor::EntryPtr& spareOfThread() {
  thread_local conductor::EntryPtr spare;
  return spare;
}

conductor::EntryPtr freshEntry(conductor::EntryPtr& spare) {
  // The driver may hold the entry for a moment after its end.
  if (!spare || spare.use_count() > 1) return std::make_shared<conductor::Entry>();
  spare->renew();
  // It is taken out, because an allocator of the caller's may call in again.
  return std::exchange(spare, nullptr);
}

Deadline deadlineOf(std::int64_t timeoutMs, TimePoint from) {
  if (timeoutMs < 0) return Deadline::never();
  return Deadline::after(std::chrono::milliseconds(timeoutMs), from);
}

}  // namespace

Status mayWait(runtime::Runtime& runtime) {
  if (!runtime.conductor().inCallback()) return {};
  return Status::invalid("a completion callback must not wait: other callbacks would wait with it");
}

Status waitFor(runtime::Runtime& runtime, const conductor::EntryPtr& entry, std::int64_t timeoutMs,
               TimePoint from) {
  switch (runtime.conductor().wait(entry, deadlineOf(timeoutMs, from), from)) {
    case Code::kTimeout:
      return Status::timeout("'" + conductor::nameOf(*entry) + "' is not done after " +
                             std::to_string(timeoutMs) + " ms")
          .withTensor(conductor::nameOf(*entry));
    case Code::kInterrupted:
      return Status(Code::kInterrupted,
                    "a signal interrupted the wait for '" + conductor::nameOf(*entry) + "'");
    default: return entry->outcome.status;
  }
}

Status call(Library& library, runtime::Runtime& runtime, const farandole_request& request,
            std::int64_t timeoutMs, farandole_handle& pending) {
  FARANDOLE_RETURN_IF_ERROR(mayWait(runtime));
  conductor::EntryPtr& spare = spareOfThread();
  conductor::EntryPtr entry = freshEntry(spare);
  FARANDOLE_RETURN_IF_ERROR(checkRequest(runtime, request, entry->request));
  if (entry->request.onComplete || entry->request.queue) {
    return Status::invalid(
        "farandole_call waits by itself: a request with on_complete or queue is for "
        "farandole_submit");
  }
  entry->request.willWait = true;
  entry->set = request.set;
  entry->submitted = Clock::now();
  FARANDOLE_RETURN_IF_ERROR(runtime.conductor().submit(request.set, std::span(&entry, 1)));
  Status status = waitFor(runtime, entry, timeoutMs, entry->submitted);
  if (!entry->done.load(std::memory_order_acquire) || entry->outcome.owned) {
    library.handles().add(entry);
    pending = entry->handle;
  } else {
    spare = std::move(entry);
  }
  return status;
}

}  // namespace farandole::api
