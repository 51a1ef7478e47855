// `farandole doctor`: from the words a person typed to a visit and its report.
#pragma once

#include <string>
#include <vector>

#include "doctor/agent_probe.h"
#include "doctor/doctor.h"

namespace CLI {
class App;
}  // namespace CLI

namespace farandole::doctor {

// Adds its options to `app`, which is its own, and holds what they say. Lives as long as the app;
// main thread.
class DoctorCommand {
 public:
  explicit DoctorCommand(CLI::App& app, MakeProbe makeProbe = makeAgentProbe);

  // The words after "doctor" as CLI11 can read them: -np, which it cannot, becomes --num-proc.
  static std::vector<std::string> prepare(std::vector<std::string> words);

  // After the options have been parsed. The exit code; errors are printed to stderr.
  int execute() const;

 private:
  Result<DoctorSettings> settings() const;

  MakeProbe makeProbe_;
  std::string hosts_;
  std::string hostFile_;
  int ranks_ = 0;
  int threads_ = 0;
  std::string portRange_;
  std::string advertise_;
  bool noCollective_ = false;
  int sshPort_ = 0;
  std::string identityFile_;
  bool acceptNewHostKeys_ = false;
  int connectTimeout_ = 5;
  std::string folder_;
  std::string script_;
  double time_ = 30;
  bool json_ = false;
  bool strict_ = false;
};

// The hosts that -H or --hostfile names (at most one of them is given; none: this machine).
Result<std::vector<DoctorHost>> doctorHosts(const std::string& list, const std::string& file);

}  // namespace farandole::doctor
