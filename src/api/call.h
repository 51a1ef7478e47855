// Operations whose caller waits for them.
#pragma once

#include <cstdint>

#include "api/library.h"
#include "farandole.h"

namespace farandole::api {

// An error if the calling thread is in a completion callback.
Status mayWait(runtime::Runtime& runtime);

// Returns the operation's own status, or kTimeout or kInterrupted while it goes on. `from`: when
// the timeout began. timeoutMs < 0: no timeout.
Status waitFor(runtime::Runtime& runtime, const conductor::EntryPtr& entry, std::int64_t timeoutMs,
               TimePoint from);

// Submits an operation and waits for it. `pending` is set if something remains: the operation goes
// on, or the library owns its result.
Status call(Library& library, runtime::Runtime& runtime, const farandole_request& request,
            std::int64_t timeoutMs, farandole_handle& pending);

}  // namespace farandole::api
