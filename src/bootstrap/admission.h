// Admission: a visitor's way through a Doorkeeper's door, the same for the agent and the meeting.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "crypto/handshake.h"

namespace farandole::bootstrap {

struct Admission {
  UniqueFd fd;
  UniqueFd host;     // pidfd of the listening process; none if it is not visible from here
  std::string text;  // the text of the verdict
};

// Connects to the abstract socket, checks the user at the other end and shakes hands, all by the
// deadline and within kHandshakeTime. `whom` is for messages: "the agent". A missing listener is
// kUnavailable at once; a refusal has the listener's own code and text.
Result<Admission> enter(const std::string& name, int type, const crypto::JobKey& key,
                        crypto::Purpose purpose, const crypto::Claim& claim,
                        const std::string& whom, Deadline deadline);

}  // namespace farandole::bootstrap
