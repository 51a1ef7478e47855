#include "run/consult_doctor.h"

#include "doctor/agent_probe.h"
#include "doctor/doctor.h"
#include "doctor/report.h"
#include "launch/output/console.h"

namespace farandole {

std::string consultDoctor(const RunPlan& plan) {
  DoctorSettings settings;
  for (const HostPlan& host : plan.job.hosts) {
    settings.hosts.push_back({host.name, host.ssh.user, host.ssh.port, host.slots, host.local});
  }
  settings.ranks = plan.job.total;
  settings.threads = plan.job.threads;
  settings.ssh = plan.connecting.ssh;
  settings.request.folder = plan.job.folder;
  settings.time = std::chrono::seconds(20);
  settings.makeProbe = makeAgentProbe;
  return reportTable(diagnose(settings), wantsColour(Stream::kErr));
}

}  // namespace farandole
