// The reduction kernels for AVX2 and F16C; compiled with flags of their own (base.cmake).
#if defined(__x86_64__)
#define FARANDOLE_VECTOR_BYTES 32
#define FARANDOLE_KERNELS_NAME "avx2"
#include "base/reduce_kernels.inc"

namespace farandole {
const Kernels& avx2Kernels() { return kKernels; }
}  // namespace farandole
#endif
