// A rank that goes through the C ABI: named, asynchronous operations, as a training script uses
// them.
#pragma once

namespace farandole::bench {

// The whole life of a rank that was started by `farandole run`; returns its exit code.
int namedRankMain();

}  // namespace farandole::bench
