#include "doctor/doctor_hosts.h"

#include "launch/hosts/host_file.h"
#include "launch/hosts/host_spec.h"
#include "launch/hosts/locality.h"

namespace farandole::doctor {

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

}  // namespace farandole::doctor
