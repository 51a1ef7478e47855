#include "process/machine_identity.h"

#include <unistd.h>

#include <fstream>

namespace farandole::process {
namespace {

std::string bootAnd(const char* space) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char name[64] = {};
  const ssize_t n = ::readlink(space, name, sizeof(name) - 1);
  return boot + " " + std::string(name, n > 0 ? static_cast<std::size_t>(n) : 0);
}

}  // namespace

std::string machineIdentity() { return bootAnd("/proc/self/ns/pid"); }
std::string networkIdentity() { return bootAnd("/proc/self/ns/net"); }

}  // namespace farandole::process
