#include "base/clock.h"

#include <cstdio>

namespace farandole {

std::string describeSeconds(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  char text[48];
  std::snprintf(text, sizeof text, seconds < 100 ? "%.2g s" : "%.0f s", seconds);
  return text;
}

}  // namespace farandole
