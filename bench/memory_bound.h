// This machine's bound for an allreduce: all ranks at once do an allreduce's reads and writes, with
// the same kernels and on the same memory, but no rank waits for another inside.
//
// Shared memory: each rank reads its slice of every rank's buffer and writes it to every buffer;
// the faster of streaming and ordinary stores is taken. Ordinary memory: each rank copies what
// others reduce into slots, reduces its own part in place and into a slot, and copies the rest back
// out of slots; the faster of small slots that stay in the caches and large ones written past them
// is taken.
#pragma once

#include "base/status.h"
#include "bench/buffers.h"
#include "bench/engine_driver.h"
#include "bench/job.h"

namespace farandole::bench {

// Seconds for the traffic of one allreduce of job.bytes; called by all ranks together.
Result<double> memoryBound(const Job& job, EngineDriver& driver, Buffers& buffers);

}  // namespace farandole::bench
