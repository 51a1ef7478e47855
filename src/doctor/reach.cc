#include "doctor/reach.h"

#include <algorithm>
#include <cstdio>

#include "launch/facts/fact_access.h"
#include "launch/facts/tcp_probe.h"
#include "launch/ssh/ssh_failure.h"
#include "launch/ssh/ssh_settings.h"
#include "process/bounded_command.h"

namespace farandole::doctor {
namespace {

constexpr Duration kTcpTime = std::chrono::seconds(5);

std::string milliseconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f ms",
                std::chrono::duration<double, std::milli>(duration).count());
  return text;
}

Deadline sooner(Deadline deadline, Duration limit) { return Deadline::after(deadline.left(limit)); }

Finding fromSsh(const DoctorHost& host, const launch::ssh::SshFailure& failure) {
  return {Severity::kError, "ssh", host.name, failure.cause, failure.evidence, failure.fix};
}

launch::ssh::SshFailure explain(const launch::ssh::SshTarget& target,
                                const launch::ssh::SshOptions& options,
                                const process::CommandEnd& end) {
  if (end.startError != 0) return launch::ssh::explainSshNotStarted(options, end.startError);
  if (end.timedOut) {
    return {launch::ssh::SshFailure::Kind::kTimedOut,
            "ssh to " + target.host + " did not come to an end",
            launch::facts::printable(end.err.substr(0, end.err.find('\n'))),
            "see where it stands still: ssh -v -o BatchMode=yes " + target.host + " true"};
  }
  return launch::ssh::explainSshFailure(target, options, {end.exitCode, end.signal}, end.err);
}

Finding fromTcp(const DoctorHost& host, const launch::ssh::SshTarget& target,
                const launch::ssh::SshOptions& options, const launch::ssh::SshRoute& route,
                const launch::facts::TcpProbe& probe) {
  const std::string place = "port " + std::to_string(route.port) + " of " + route.host +
                            (probe.address.empty() ? "" : " (" + probe.address + ")");
  if (probe.state == launch::facts::TcpState::kOpen) {
    return {Severity::kOk, "tcp", host.name, place + " is open", milliseconds(probe.took), ""};
  }
  // The same words as for ssh, which would fail in the same way.
  const std::string said =
      "ssh: connect to host " + route.host + " port " + std::to_string(route.port) + ": ";
  std::string text = said + "No route to host";
  if (probe.state == launch::facts::TcpState::kRefused) text = said + "Connection refused";
  if (probe.state == launch::facts::TcpState::kFiltered) text = said + "Connection timed out";
  const std::string name = "ssh: Could not resolve hostname " + route.host + ": ";
  if (probe.state == launch::facts::TcpState::kNameUnknown) text = name + probe.evidence;
  if (probe.state == launch::facts::TcpState::kNameTimeout)
    text = name + "Temporary failure in name resolution";
  const launch::ssh::SshFailure failure =
      launch::ssh::explainSshFailure(target, options, {255, 0}, text);
  const bool named = probe.state == launch::facts::TcpState::kNameUnknown ||
                     probe.state == launch::facts::TcpState::kNameTimeout;
  return {Severity::kError,
          named ? "names" : "tcp",
          host.name,
          failure.cause,
          place + ": " + launch::facts::tcpStateName(probe.state) + ", " + probe.evidence,
          failure.fix};
}

}  // namespace

Reach checkReach(const DoctorHost& host, const launch::ssh::SshOptions& options,
                 Deadline deadline) {
  Reach reach;
  reach.host = host.name;
  const launch::ssh::SshTarget target{host.name, host.user, host.port};
  if (const Status wrong = launch::ssh::checkSshTarget(target, options); !wrong.ok()) {
    reach.findings.push_back({Severity::kError, "hosts", host.name, wrong.message(), "",
                              "correct it in -H or in the hostfile"});
    return reach;
  }
  const process::CommandEnd config =
      process::runBounded(launch::ssh::sshQuestion(target, options), sooner(deadline, kTcpTime));
  if (!config.succeeded()) {
    reach.findings.push_back(fromSsh(host, explain(target, options, config)));
    return reach;
  }
  const launch::ssh::SshRoute route = launch::ssh::sshRoute(config.out, host.name);
  reach.host = route.host;
  reach.port = route.port;
  if (!route.proxied) {
    const launch::facts::TcpProbe probe =
        launch::facts::probeTcp(route.host, route.port, sooner(deadline, kTcpTime));
    reach.findings.push_back(fromTcp(host, target, options, route, probe));
    if (probe.state != launch::facts::TcpState::kOpen) return reach;
  }
  const auto command = launch::ssh::remoteShell("true");
  const TimePoint begin = Clock::now();
  const auto limit = std::chrono::seconds(options.connectTimeoutSeconds + 5);
  const process::CommandEnd end = process::runBounded(
      launch::ssh::sshArguments(target, options, command.value()), sooner(deadline, limit));
  if (!end.succeeded()) {
    reach.findings.push_back(fromSsh(host, explain(target, options, end)));
    return reach;
  }
  reach.reachable = true;
  reach.findings.push_back({Severity::kOk, "ssh", host.name, "a command runs without questions",
                            milliseconds(Clock::now() - begin), ""});
  if (!end.out.empty()) {
    reach.findings.push_back(
        {Severity::kWarning, "ssh", host.name,
         "the login shell of " + host.name + " prints on stdout before any command",
         launch::facts::printable(end.out.substr(0, end.out.find('\n'))),
         "in ~/.bashrc (or .cshrc, config.fish) there, print only if the shell is interactive: "
         "case $- in *i*) … ;; esac"});
  }
  return reach;
}

}  // namespace farandole::doctor
