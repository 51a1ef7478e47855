// The whole C++ API of Farandole: RAII and exceptions over the C ABI of <farandole.h>.
//
//   farandole::Session session;                        // joins the job
//   farandole::SharedBuffer<float> gradient(1 << 20);  // reduced without a copy
//
//   auto handle = farandole::allreduceAsync(gradient, farandole::ReduceOp::kAverage,
//                                           {.name = "layer1.weight"});
//   …                                                  // computes something else meanwhile
//   handle.wait();                                     // throws farandole::Error if a rank is lost
//
// session.h      joining a job, and this rank's place in it
// collectives.h  the operations
// handle.h       an operation that has been started
// memory.h       memory that the ranks of a machine share
// process_set.h  operations among some of the ranks
// types.h        element types, buffers, reduction operators
// error.h        failures
#pragma once

#include <farandole/collectives.h>
#include <farandole/error.h>
#include <farandole/handle.h>
#include <farandole/memory.h>
#include <farandole/process_set.h>
#include <farandole/session.h>
#include <farandole/types.h>
