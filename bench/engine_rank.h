// A rank that drives the shared-memory engine itself: no conductor, no names. The fastest thing
// this library can do, and what the peers' own collectives are compared with.
#pragma once

namespace farandole::bench {

// The whole life of a forked rank; returns its exit code. Finds the driver by the environment.
int engineRankMain(int rank, int size);

}  // namespace farandole::bench
