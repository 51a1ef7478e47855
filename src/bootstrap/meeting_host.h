// MeetingHost: local rank 0's part of a meeting: opens the room, lets the others in, collects what
// they bring, and gives everyone the whole table. Used once, by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/doorkeeper.h"
#include "bootstrap/meeting_messages.h"
#include "crypto/handshake.h"

namespace farandole::bootstrap::meeting {

// What all parts of one meeting have in common.
struct Terms {
  Bootstrap& bootstrap;
  crypto::JobKey key;
  std::uint64_t epoch = 0;
  int rank = 0;
  int size = 1;
  std::string prefix;
  TimePoint start;
  Deadline deadline;

  std::string roomKey() const { return prefix + "/meet"; }
  std::string failureKey() const { return prefix + "/meet-failed"; }
};

// Asks the agent, now and then, whether waiting still makes sense: an error if a rank has ended or
// the host has given up. `last` is when it was asked last.
Status stillWorthWaiting(const Terms& terms, TimePoint& last);

// What the agent or the host knows about a failure, if that is more than what was seen here. Asks
// for as long as `timeout`, because the peers of a process see its end before its agent reports it.
Status explained(const Terms& terms, Status seen, Duration timeout);

// To all others of the meeting: why it fails. Instead of opening the room, only by local rank 0.
void sayWhy(const Terms& terms, const Status& status);
void sayWhyThereIsNoRoom(const Terms& terms, const Status& status);
// What the value at the room's key says; ok: it is the room's address.
Status whyThereIsNoRoom(std::string_view room);

class MeetingHost {
 public:
  MeetingHost(Terms terms, Member own);
  // Member i of the result belongs to local rank i.
  Result<std::vector<Member>> run();

 private:
  struct Guest {
    UniqueFd fd;
    pid_t pid = 0;  // by the socket's credentials; 0: not visible from here
    bool presented = false;
  };

  Status gather();
  Status handOut();
  void welcome(Visitor visitor);
  Status hear(int rank, Guest& guest);
  bool complete() const;
  Status notAllCame() const;

  Terms terms_;
  std::unique_ptr<Doorkeeper> doorkeeper_;
  std::vector<Member> table_;
  std::map<int, Guest> guests_;          // by local rank
  std::map<int, std::string> refusals_;  // local rank → why
};

}  // namespace farandole::bootstrap::meeting
