#include "run/consult_doctor.h"

#include "doctor/agent_probe.h"
#include "doctor/doctor.h"
#include "doctor/report.h"
#include "launch/output/console.h"

namespace farandole::run {

std::string consultDoctor(const RunPlan& plan) {
  doctor::DoctorSettings settings;
  for (const launch::plan::HostPlan& host : plan.job.hosts) {
    settings.hosts.push_back({host.name, host.ssh.user, host.ssh.port, host.slots, host.local});
  }
  settings.ranks = plan.job.total;
  settings.threads = plan.job.threads;
  settings.ssh = plan.connecting.ssh;
  settings.request.folder = plan.job.folder;
  settings.time = std::chrono::seconds(20);
  settings.makeProbe = doctor::makeAgentProbe;
  return doctor::reportTable(doctor::diagnose(settings),
                             launch::output::wantsColour(launch::output::Stream::kErr));
}

}  // namespace farandole::run
