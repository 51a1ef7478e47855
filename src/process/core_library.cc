#include "process/core_library.h"

#include <dlfcn.h>

#include <string>

namespace farandole::process {
namespace {

std::string reason() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

template <typename Function>
Status find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function != nullptr) return {};
  return Status::unavailable("the library has no " + std::string(name) + ": " + reason());
}

}  // namespace

Result<CoreLibrary> CoreLibrary::load() {
  // Found through the command's own path; never unloaded, for its threads live as long as we do.
  void* library = ::dlopen(FARANDOLE_CORE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status::unavailable("cannot load the library: " + reason());
  CoreLibrary core;
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_allocate", core.allocate));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_call", core.call));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_free", core.free));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_init", core.init));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_last_error", core.lastError));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_rank", core.rank));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_release", core.release));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_shutdown", core.shutdown));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_size", core.size));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_submit", core.submit));
  FARANDOLE_RETURN_IF_ERROR(find(library, "farandole_wait", core.wait));
  return core;
}

}  // namespace farandole::process
