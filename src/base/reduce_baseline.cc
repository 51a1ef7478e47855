// The reduction kernels for any processor of the architecture (x86-64: SSE2; arm64: NEON).
#define FARANDOLE_VECTOR_BYTES 16
#define FARANDOLE_KERNELS_NAME "baseline"
#include "base/reduce_kernels.inc"

namespace farandole {
const Kernels& baselineKernels() { return kKernels; }
}  // namespace farandole
