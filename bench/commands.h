// The subcommands of `farandole bench`, from options to exit code.
#pragma once

#include <string>

#include "base/status.h"
#include "bench/hosted_ranks.h"

namespace farandole::bench {

struct CommonOptions {
  int ranks = 2;
  int rounds = 15;
  bool pin = true;
  std::string memory = "both";  // ordinary, shared, both
  std::string csv;              // files to write; "-" is standard output
  std::string json;
  std::string svg;
};

struct CollectiveOptions : CommonOptions {
  std::string work = "allreduce";
  std::string op = "sum";
  std::string dtype = "float32";
  std::string sizes = "4,64,1K,4K,16K,64K,256K,1M,4M,16M,64M,256M";
  std::string path = "both";  // engine, named, ordered, both
  std::string against;        // peers; empty: none
  bool bound = false;
  HostOptions on;
};

struct TensorsOptions : CommonOptions {
  std::string model = "both";  // resnet50, vgg16, both
};

struct MemoryOptions : CommonOptions {
  std::string sizes = "1M,16M,64M,256M";
};

// Each prints as it goes; an error is one of ours that failed, or a wrong option.
Status benchCollective(const CollectiveOptions& options);
Status benchTensors(const TensorsOptions& options);
Status benchMemory(const MemoryOptions& options);
void listPeers();
void listAlgorithms();

}  // namespace farandole::bench
