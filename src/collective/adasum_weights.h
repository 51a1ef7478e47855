// The arithmetic of Adasum that all engines share (the operation itself: shm/adasum.h).
#pragma once

namespace farandole {

// The weights of a and b from a·b, a·a and b·b. A zero vector changes nothing.
struct AdasumWeights {
  double a;
  double b;
};
AdasumWeights adasumWeights(const double dots[3]);

}  // namespace farandole
