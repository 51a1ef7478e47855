// The doctor's hands on another machine: its questions travel to an agent there.
#pragma once

#include <memory>

#include "doctor/doctor.h"
#include "launch/facts/probe.h"
#include "launch/ssh/ssh_command.h"

namespace farandole::doctor {

// Starts an agent on the host, pushing our tree if need be. Any thread; the probe may be used from
// another one.
Result<std::unique_ptr<launch::facts::HostProbe>> makeAgentProbe(
    const DoctorHost& host, const launch::ssh::SshOptions& options, Deadline deadline);

}  // namespace farandole::doctor
