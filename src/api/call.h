// An operation that its caller waits for.
#pragma once

#include <cstdint>

#include "api/library.h"
#include "farandole.h"

namespace farandole::api {

// An error inside of a completion callback.
Status mayWait(runtime::Runtime& runtime);

// The operation's own outcome, or kTimeout or kInterrupted while it goes on. `from`: when the
// timeout began. timeoutMs < 0: none.
Status waitFor(runtime::Runtime& runtime, const conductor::EntryPtr& entry, std::int64_t timeoutMs,
               TimePoint from);

// Starts it and waits for it. `pending` is set if there is something left: it goes on, or the
// library owns its result.
Status call(Library& library, runtime::Runtime& runtime, const farandole_request& request,
            std::int64_t timeoutMs, farandole_handle& pending);

}  // namespace farandole::api
