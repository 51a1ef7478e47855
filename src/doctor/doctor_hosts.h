// The hosts a doctor's visit is about.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace farandole::doctor {

struct DoctorHost {
  std::string name;
  std::string user;
  int port = 0;
  int slots = 0;
  bool local = false;
};

// From -H and --hostfile (at most one of them not empty; none: this machine).
Result<std::vector<DoctorHost>> doctorHosts(const std::string& list, const std::string& file);

}  // namespace farandole::doctor
