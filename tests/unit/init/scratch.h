// A folder for one test, removed with everything in it.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "init/setup.h"

namespace farandole::init {

class Scratch {
 public:
  explicit Scratch(const std::string& parent = std::filesystem::temp_directory_path().string()) {
    std::string path = parent + "/farandole-init-test-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp in " + parent);
    path_ = path;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), mode);
}

inline mode_t modeOf(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777 : 0;
}

inline ClusterSpec sampleSpec() {
  ClusterSpec spec;
  spec.launcher = "10.0.0.5";
  spec.launcherSlots = 2;
  spec.workers = {{"w1", "10.0.0.6", 2, 2222}, {"w2", "w2", 1, 12345}};
  spec.image = "me/train:1.0";
  spec.sshFolder = "/home/dev/.ssh";
  spec.programTree = "/opt/far";
  return spec;
}

// One worker, small RSA keys: quick.
inline SetupRequest sampleRequest(const std::string& folder) {
  SetupRequest request;
  request.spec = sampleSpec();
  request.spec.workers.resize(1);
  request.spec.uid = ::geteuid();
  request.spec.gid = ::getegid();
  request.folder = folder;
  request.maker.rsaBits = 1024;
  return request;
}

}  // namespace farandole::init
