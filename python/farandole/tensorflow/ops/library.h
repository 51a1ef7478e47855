// The functions of libfarandole.so that the kernels call. The library is in the process already,
// loaded by Python without its symbols being global: they are looked up in it by name.
#pragma once

#include <dlfcn.h>

#include <string>

#include "farandole.h"

namespace farandole_ops {

struct Library {
  decltype(&farandole_abi_version) abi_version = nullptr;
  decltype(&farandole_submit) submit = nullptr;
  decltype(&farandole_test) test = nullptr;
  decltype(&farandole_wait) wait = nullptr;
  decltype(&farandole_cancel) cancel = nullptr;
  decltype(&farandole_release) release = nullptr;
  decltype(&farandole_get_result) get_result = nullptr;
  decltype(&farandole_last_error) last_error = nullptr;
  decltype(&farandole_rank) rank = nullptr;
  decltype(&farandole_local_rank) local_rank = nullptr;
  decltype(&farandole_local_size) local_size = nullptr;
  decltype(&farandole_set_size) set_size = nullptr;
  decltype(&farandole_set_rank) set_rank = nullptr;

  // Empty, or what is wrong. Called once, before any kernel runs.
  std::string bind(const char* path) {
    void* loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) return dlerror();
    std::string missing;
    auto find = [&](auto& function, const char* name) {
      void* found = dlsym(loaded, name);
      if (found == nullptr) missing = std::string(path) + " has no " + name;
      function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
    };
    find(abi_version, "farandole_abi_version");
    find(submit, "farandole_submit");
    find(test, "farandole_test");
    find(wait, "farandole_wait");
    find(cancel, "farandole_cancel");
    find(release, "farandole_release");
    find(get_result, "farandole_get_result");
    find(last_error, "farandole_last_error");
    find(rank, "farandole_rank");
    find(local_rank, "farandole_local_rank");
    find(local_size, "farandole_local_size");
    find(set_size, "farandole_set_size");
    find(set_rank, "farandole_set_rank");
    if (missing.empty() && abi_version() != FARANDOLE_ABI_VERSION) {
      missing = std::string(path) + " has another ABI version than farandole.h";
    }
    return missing;
  }
};

inline Library& library() {
  static Library functions;
  return functions;
}

}  // namespace farandole_ops
