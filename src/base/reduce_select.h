// Which kernels run: the best this processor has, unless setKernels (base/reduce.h) said otherwise.
#pragma once

#include "base/reduce_kernels.h"

namespace farandole {

// Any thread; one relaxed load after the first call.
const Kernels& activeKernels();

}  // namespace farandole
