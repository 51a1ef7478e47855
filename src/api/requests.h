// From a farandole_request to a Request: everything a caller can get wrong is found here, before
// anything starts.
#pragma once

#include <vector>

#include "base/status.h"
#include "conductor/entry.h"
#include "farandole.h"
#include "runtime/runtime.h"

struct farandole_queue {
  std::shared_ptr<farandole::conductor::CompletionQueue> queue;
};

namespace farandole::api {

// The set the request names is looked up in the runtime. `checked` is new.
Status checkRequest(runtime::Runtime& runtime, const farandole_request& request,
                    conductor::Request& checked);

// The two steps of that. An older caller's struct is shorter: what it does not have keeps its
// default.
Status completeRequest(const farandole_request& given, farandole_request& whole);
// set: the one that the request names, or null if there is none; rank: this one.
Status checkRequest(const runtime::Runtime::SetInfo* set, std::int32_t rank,
                    const farandole_request& request, conductor::Request& checked);

}  // namespace farandole::api
