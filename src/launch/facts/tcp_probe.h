// Whether a TCP port can be reached, and if not, why: the difference between a firewall, a missing
// server and a wrong address.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace farandole::launch::facts {

enum class TcpState {
  kOpen,
  kRefused,      // the host is there, the port is not
  kFiltered,     // no answer at all until the deadline
  kUnreachable,  // the network says that there is no way
  kNameUnknown,  // the name has no address
  kNameTimeout,  // the name server does not answer
};

struct TcpProbe {
  TcpState state = TcpState::kFiltered;
  std::string address;   // the one that answered, or the last one tried
  std::string evidence;  // "connect: Connection refused"
  Duration took{};
  UniqueFd fd;  // connected and non-blocking, if kOpen
};

const char* tcpStateName(TcpState state);

// host: a name or a numeric address. All its addresses are tried one after the other, with the time
// divided between them. Thread-safe.
TcpProbe probeTcp(const std::string& host, int port, Deadline deadline);

}  // namespace farandole::launch::facts
