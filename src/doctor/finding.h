// What the doctor has to say: one sentence about one thing of one host.
#pragma once

#include <string>
#include <vector>

namespace farandole::doctor {

enum class Severity { kOk, kWarning, kError };

struct Finding {
  Severity severity = Severity::kOk;
  std::string check;  // "names", "ssh", "cpu", …: the row of the table
  std::string host;   // empty: all of them
  std::string cause;
  std::string evidence;
  std::string fix;  // a command or what to change; empty for kOk
};

using Findings = std::vector<Finding>;

}  // namespace farandole::doctor
