// From a farandole_request to a Request: everything a caller can get wrong is found here, before
// anything starts.
#pragma once

#include <vector>

#include "runtime/runtime.h"
#include "base/status.h"
#include "conductor/entry.h"
#include "farandole.h"

struct farandole_queue {
  std::shared_ptr<farandole::CompletionQueue> queue;
};

namespace farandole {

// The set the request names is looked up in the runtime. `checked` is new.
Status checkRequest(Runtime& runtime, const farandole_request& request, Request& checked);

}  // namespace farandole
