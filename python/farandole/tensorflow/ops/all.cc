// One unit: TensorFlow's headers take most of the time to compile.
#include "kernels.cc"        // NOLINT(bugprone-suspicious-include)
#include "registrations.cc"  // NOLINT(bugprone-suspicious-include)
