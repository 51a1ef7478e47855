# The reduction kernels: one source, compiled once for every instruction set. No fused multiply-add and no
# -ffast-math: results must not depend on which of them runs.
set(kernel_options -O3 -ffp-contract=off -fno-trapping-math -fno-math-errno -Wno-psabi)
# With both sanitizers and -O3 a kernel takes minutes to compile. The baseline shows undefined behaviour of the common
# source; the others are checked for their addresses.
if(FARANDOLE_SANITIZE)
  list(TRANSFORM kernel_options REPLACE "^-O3$" "-O1")
endif()
if(FARANDOLE_SANITIZE MATCHES undefined)
  set(vector_options -fno-sanitize=undefined)
endif()
set(baseline_options ${kernel_options})
if(FARANDOLE_SANITIZE MATCHES undefined)
  list(TRANSFORM baseline_options REPLACE "^-O1$" "-O0")
endif()
set_source_files_properties(base/reduce_baseline.cc PROPERTIES COMPILE_OPTIONS "${baseline_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set_source_files_properties(base/reduce_avx2.cc PROPERTIES COMPILE_OPTIONS "${kernel_options};${vector_options};-mavx2;-mf16c")
  set_source_files_properties(base/reduce_avx512.cc PROPERTIES COMPILE_OPTIONS
    "${kernel_options};${vector_options};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mf16c;-mprefer-vector-width=512")
endif()
