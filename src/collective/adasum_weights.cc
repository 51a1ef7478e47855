#include "collective/adasum_weights.h"

namespace farandole {

AdasumWeights adasumWeights(const double dots[3]) {
  return {dots[1] == 0.0 ? 1.0 : 1.0 - dots[0] / (2.0 * dots[1]),
          dots[2] == 0.0 ? 1.0 : 1.0 - dots[0] / (2.0 * dots[2])};
}

}  // namespace farandole
