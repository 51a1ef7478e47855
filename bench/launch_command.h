// `farandole bench launch`: how long ranks take to start, and how fast their output arrives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::bench {

struct LaunchOptions {
  std::string ranks = "2,64";
  int rounds = 15;
  std::string what = "both";   // start, output, both
  std::string output = "64M";  // bytes that each of two ranks writes
  std::string against = "all";
  std::string hosts;  // not empty: these machines instead of this one
  int sshPort = 0;
  std::string identityFile;
  std::string csv;  // files to write; "-" is standard output
  std::string json;
};

// Prints as it goes; an error is one of ours that failed, or a wrong option.
Status benchLaunch(const LaunchOptions& options);

// "2,64"; each from 1 to 1024.
Result<std::vector<int>> parseRankCounts(std::string_view text);

}  // namespace farandole::bench
