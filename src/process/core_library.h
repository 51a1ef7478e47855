// The library behind the C ABI, loaded when a rank of `farandole bench` or of the doctor needs it:
// linked to the command, it would cost every start of every job more time than the ranks take.
#pragma once

#include <farandole.h>

#include "base/status.h"

namespace farandole::process {

struct CoreLibrary {
  decltype(&farandole_allocate) allocate = nullptr;
  decltype(&farandole_call) call = nullptr;
  decltype(&farandole_free) free = nullptr;
  decltype(&farandole_init) init = nullptr;
  decltype(&farandole_last_error) lastError = nullptr;
  decltype(&farandole_rank) rank = nullptr;
  decltype(&farandole_release) release = nullptr;
  decltype(&farandole_shutdown) shutdown = nullptr;
  decltype(&farandole_size) size = nullptr;
  decltype(&farandole_submit) submit = nullptr;
  decltype(&farandole_wait) wait = nullptr;

  // Loads the library of the tree that this command belongs to.
  static Result<CoreLibrary> load();
};

}  // namespace farandole::process
