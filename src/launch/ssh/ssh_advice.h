// The sentences of ssh_failure: what happened and what to type, for each kind.
#pragma once

#include "launch/ssh/ssh_failure.h"
#include "launch/ssh/ssh_scene.h"

namespace farandole::launch::ssh {

SshFailure advise(SshFailure::Kind kind, const Scene& scene);

}  // namespace farandole::launch::ssh
