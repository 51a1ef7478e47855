# The reduction kernels: one source, compiled once for every instruction set. No fused multiply-add and no
# -ffast-math: results must not depend on which of them runs.
set(kernel_options -O3 -ffp-contract=off -fno-trapping-math -fno-math-errno -Wno-psabi)
set_source_files_properties(base/reduce_baseline.cc PROPERTIES COMPILE_OPTIONS "${kernel_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set_source_files_properties(base/reduce_avx2.cc PROPERTIES COMPILE_OPTIONS "${kernel_options};-mavx2;-mf16c")
  set_source_files_properties(base/reduce_avx512.cc PROPERTIES COMPILE_OPTIONS
    "${kernel_options};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mf16c;-mprefer-vector-width=512")
endif()
