// The reduction kernels for AVX-512 (F, BW, VL, DQ); compiled with flags of their own (base.cmake).
#if defined(__x86_64__)
#define FARANDOLE_VECTOR_BYTES 64
#define FARANDOLE_KERNELS_NAME "avx512"
#include "base/reduce_kernels.inc"

namespace farandole {
const Kernels& avx512Kernels() { return kKernels; }
}  // namespace farandole
#endif
