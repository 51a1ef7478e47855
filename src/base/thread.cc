#include "base/thread.h"

#include <string>

#include "base/limits.h"

namespace farandole {

Status noThread(const char* name, int error) {
  const Status status =
      Status::fromErrno(std::string("cannot start a thread (") + name + ")", error);
  return Status(status.code(), status.message() + ": " + describeTaskLimits());
}

}  // namespace farandole
