// `farandole init`: from the words a person typed to a set-up for a cluster of containers.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "init/setup.h"

namespace CLI {
class App;
}  // namespace CLI

namespace farandole::init {

// Adds its options to `app`, which is its own, and holds what they say. Lives as long as the app;
// main thread.
class InitCommand {
 public:
  explicit InitCommand(CLI::App& app);

  // After the options have been parsed. The exit code; errors are printed to stderr.
  int execute();

 private:
  void addOptions();
  void addPushOptions();
  Result<ClusterSpec> readSpec() const;
  Status readUser(ClusterSpec& spec) const;
  Result<SetupRequest> readRequest() const;
  int writeSetup(const SetupRequest& request) const;
  int pushSetup(const SetupRequest& request) const;
  // Becomes `farandole doctor`; returns only if that cannot be started.
  int verify(const std::string& folder, const std::string& hosts) const;

  CLI::App* init_;
  std::string launcher_;
  std::string workers_;
  std::string user_ = "dev";
  std::string uid_;
  std::string gid_;
  std::string port_ = "12345";
  std::string image_;
  std::string gpu_ = "none";
  std::string runtime_ = "docker";
  std::string key_;
  std::string hostKeys_;
  std::string keyType_;
  std::string interface_;
  std::string shmSize_ = "8g";
  std::string data_;
  std::string sshFolder_;
  std::string folder_ = ".";
  std::string pushUser_;
  std::string pushPort_;
  std::string pushFolder_ = "farandole";
  bool debug_ = false;
  bool dryRun_ = false;
  bool force_ = false;
  bool push_ = false;
  bool verify_ = false;
};

// "launcher:1,worker1:2" for doctor's -H, out of workload/hostfile.
Result<std::string> hostsOfHostfile(const std::string& content);

}  // namespace farandole::init
