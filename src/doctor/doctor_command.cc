#include "doctor/doctor_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "doctor/diagnosis.h"
#include "doctor/report.h"
#include "launch/hosts/host_file.h"
#include "launch/hosts/host_spec.h"
#include "launch/hosts/locality.h"
#include "launch/output/console.h"

namespace farandole::doctor {
namespace {

constexpr int kUsage = 2;

constexpr const char* kExamples =
    "Examples:\n"
    "  farandole doctor                          (this machine)\n"
    "  farandole doctor -H alpha:4,beta:4 -np 8 --script train.py\n"
    "  farandole doctor --hostfile hosts -p 12345 -i ~/.ssh/cluster --strict\n"
    "  farandole doctor -H alpha,beta --port-range 29400-29431 --json\n"
    "Exit code: 0 nothing is in the way, 1 warnings (with --strict), 2 errors.";

}  // namespace

Result<std::vector<DoctorHost>> doctorHosts(const std::string& list, const std::string& file) {
  if (list.empty() && file.empty()) return std::vector<DoctorHost>{{"localhost", "", 0, 0, true}};
  if (!list.empty() && !file.empty()) {
    return Status::invalid("-H and --hostfile are both given: leave one out");
  }
  auto specs = list.empty() ? launch::hosts::readHostFile(file) : launch::hosts::parseHosts(list);
  if (!specs.ok()) return specs.status();
  std::vector<DoctorHost> hosts;
  const std::vector<bool> ours = launch::hosts::whichAreThisMachine(*specs);
  for (std::size_t i = 0; i < specs->size(); ++i) {
    const launch::hosts::HostSpec& spec = (*specs)[i];
    hosts.push_back({spec.name, spec.user, spec.port, spec.slots, ours[i]});
  }
  return hosts;
}

DoctorCommand::DoctorCommand(CLI::App& app, MakeProbe makeProbe)
    : makeProbe_(std::move(makeProbe)) {
  CLI::App* const doctor = &app;
  doctor->footer(kExamples);
  doctor->add_option("-H,--hosts", hosts_, "Hosts, as for farandole run")->type_name("LIST");
  doctor->add_option("--hostfile", hostFile_, "A file with the hosts")->type_name("FILE");
  doctor->add_option("-n,--num-proc", ranks_, "Ranks of the planned job (also -np N)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  doctor->add_option("--threads", threads_, "Threads of each rank")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16));
  doctor
      ->add_option("--port-range,--data-ports", portRange_, "Ports the ranks may listen on, as A-B")
      ->type_name("A-B");
  doctor
      ->add_option("--advertise", advertise_,
                   "Address under which a host is reached from outside (NAT, docker -p)")
      ->type_name("HOST=ADDRESS,…");
  doctor->add_flag("--no-collective", noCollective_, "Do not run a small job on the hosts");
  doctor->add_option("-p,--ssh-port", sshPort_, "Port of ssh on hosts without one of their own")
      ->type_name("P")
      ->check(CLI::Range(1, 65535));
  doctor->add_option("-i,--ssh-identity-file", identityFile_, "Private key for ssh")
      ->type_name("FILE");
  doctor->add_flag("--accept-new-host-keys", acceptNewHostKeys_,
                   "Let ssh remember keys of hosts it has not seen before");
  doctor->add_option("--connect-timeout", connectTimeout_, "Seconds for an ssh connection")
      ->type_name("S")
      ->check(CLI::Range(1, 600));
  doctor->add_option("--wdir", folder_, "The job's working folder (default: this one)")
      ->type_name("FOLDER");
  doctor->add_option("--script", script_, "A file that must be the same on all hosts")
      ->type_name("FILE");
  doctor->add_option("--timeout", time_, "Seconds for everything (default 30)")
      ->type_name("S")
      ->check(CLI::Range(1.0, 3600.0));
  doctor->add_flag("--json", json_, "Print everything, facts included, as JSON");
  doctor->add_flag("--strict", strict_, "Exit with 1 if there are warnings");
}

std::vector<std::string> DoctorCommand::prepare(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (word == "-np" || word.starts_with("-np=")) word.replace(0, 3, "--num-proc");
  }
  return words;
}

Result<DoctorSettings> DoctorCommand::settings() const {
  DoctorSettings settings;
  auto hosts = doctorHosts(hosts_, hostFile_);
  if (!hosts.ok()) return hosts.status();
  settings.hosts = std::move(*hosts);
  if (!portRange_.empty()) {
    auto range = launch::facts::parsePortRange(portRange_);
    if (!range.ok()) return range.status();
    settings.ports = *range;
  }
  std::vector<std::string> names;
  for (const DoctorHost& host : settings.hosts) names.push_back(host.name);
  if (auto pairs = launch::hosts::parseAdvertised(advertise_, names); !pairs.ok())
    return pairs.status();
  settings.advertise = advertise_;
  settings.collective = !noCollective_;
  settings.ranks = ranks_;
  settings.threads = threads_;
  settings.ssh.port = sshPort_;
  settings.ssh.identityFile = identityFile_;
  settings.ssh.acceptNewHostKeys = acceptNewHostKeys_;
  settings.ssh.connectTimeoutSeconds = connectTimeout_;
  settings.ssh.program = launch::ssh::sshProgram();
  settings.ssh.configFile = launch::ssh::sshConfigFile();
  std::error_code error;
  // What a job would use: the folder we are in, wherever a rank runs.
  settings.request.folder =
      folder_.empty() ? std::filesystem::current_path(error).string() : folder_;
  settings.request.script = script_;
  // The launcher passes it on to all ranks: it decides which Python they find.
  if (const char* path = std::getenv("PATH")) settings.request.searchPath = path;
  settings.time = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time_));
  settings.makeProbe = makeProbe_;
  return settings;
}

int DoctorCommand::execute() const {
  auto planned = settings();
  if (!planned.ok()) {
    std::fprintf(stderr, "farandole doctor: %s\n", planned.status().message().c_str());
    return kUsage;
  }
  const Diagnosis diagnosis = diagnose(*planned);
  const int code = exitCodeOf(diagnosis.findings, strict_);
  using nlohmann::json;
  const std::string text =
      json_ ? reportJson(diagnosis, code).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
            : reportTable(diagnosis, launch::output::wantsColour(launch::output::Stream::kOut));
  std::fputs(text.c_str(), stdout);
  return code;
}

}  // namespace farandole::doctor
