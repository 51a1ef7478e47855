// Whether some process of this machine (of its network namespace) listens on a TCP port.
#pragma once

namespace farandole::process {

// A glance at the kernel's table; false if it cannot be read.
bool isListening(int port);

}  // namespace farandole::process
