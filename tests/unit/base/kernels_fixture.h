// Runs a test with every set of kernels this processor has, and puts the chosen one back.
#pragma once

#include <string>
#include <vector>

#include "base/reduce.h"

namespace farandole {

inline std::vector<std::string> availableKernels() {
  const std::string chosen(kernels());
  std::vector<std::string> names;
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    if (setKernels(name)) names.emplace_back(name);
  }
  setKernels(chosen);
  return names;
}

class KernelsGuard {
 public:
  KernelsGuard() : chosen_(kernels()) {}
  ~KernelsGuard() { setKernels(chosen_); }
  KernelsGuard(const KernelsGuard&) = delete;
  KernelsGuard& operator=(const KernelsGuard&) = delete;

 private:
  std::string chosen_;
};

}  // namespace farandole
