// How TCP shares the way with others: the congestion control of the connections between ranks.
#pragma once

#include <string>

#include "base/status.h"

namespace farandole::transport {

// auto: the system's own, but none that paces. Such a one (bbr) spreads out what it is given
// according to what it has seen of the connection, and a rank sends in bursts after pauses: a
// megabyte takes twice as long. It is replaced by cubic, or by reno, which needs no permission.
inline constexpr const char* kAutoCongestion = "auto";
inline constexpr const char* kSystemCongestion = "system";  // as it is

// Whether that can be chosen here; the error names what can.
Status checkCongestion(const std::string& wish);
// For a socket that does not connect yet, or one that listens, whose connections then have the
// same: a connection that has begun with one that paces goes on pacing under another. Never fails:
// a connection works with any.
void chooseCongestion(int fd, const std::string& wish);

}  // namespace farandole::transport
