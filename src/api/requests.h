// Makes a Request of a farandole_request. Every mistake of a caller is found here, before anything
// starts.
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

// Looks up the set that the request names. `checked` must be new.
Status checkRequest(runtime::Runtime& runtime, const farandole_request& request,
                    conductor::Request& checked);

// These are the two steps of the above. The struct of an older caller is shorter; fields that it
// does not have keep their defaults.
Status completeRequest(const farandole_request& given, farandole_request& whole);
// set: the one that the request names, or null if there is none. rank: this rank.
Status checkRequest(const runtime::Runtime::SetInfo* set, std::int32_t rank,
                    const farandole_request& request, conductor::Request& checked);

}  // namespace farandole::api
