// The doctor's hands on another machine: its questions travel to an agent there.
#pragma once

#include <memory>

#include "doctor/doctor.h"
#include "launch/facts/probe.h"
#include "launch/ssh/ssh_command.h"

namespace farandole {

// Starts an agent on the host, pushing our tree if need be. Any thread; the probe may be used from
// another one.
Result<std::unique_ptr<HostProbe>> makeAgentProbe(const DoctorHost& host, const SshOptions& options,
                                                  Deadline deadline);

}  // namespace farandole
