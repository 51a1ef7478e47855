// The whole C++ API of Farandole: RAII and exceptions over the C ABI in <farandole.h>.
//
//   farandole::Session session;                       // joins the job
//   farandole::SharedBuffer<float> gradient(1 << 20);  // reduced without a copy
//   auto handle = farandole::allreduceAsync(gradient, farandole::ReduceOp::kAverage, {.name =
//   "g"}); …                                                 // goes on meanwhile handle.wait(); //
//   throws farandole::Error if a rank is lost
#pragma once

#include <farandole/collectives.h>
#include <farandole/error.h>
#include <farandole/handle.h>
#include <farandole/memory.h>
#include <farandole/process_set.h>
#include <farandole/session.h>
#include <farandole/types.h>
