// The messages of the control channel: what members tell the sequencer, and what the log tells all
// members.
//
// Submissions (member → sequencer)
//
//   Announce   the first time, or after a change: the name and its whole Meta
//   Repeat     the same as last time: plan and generation
//   Join       this member has no more data
//   Withdraw   takes a submission back; those of the other members fail as cancelled
//   Retract    takes a submission back as if it had never been made
//
// Log entries (sequencer → all members, which execute them in order)
//
//   Define     from now on `plan` stands for this name and meta
//   Batch      run these plans as one engine operation, or as a whole group if they are one;
//              members listed as joined contribute neutral elements
//   Refuse     the submission of this name fails on all members with this text
//   Joined     all members have joined
//   Resend     this member's Repeat named a plan that was forgotten: it announces it again
//   Withdrawn  this member's submission of that name no longer counts
//   Abort      the epoch is over for all members
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "control/meta.h"

namespace farandole::control {

struct PlanId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const PlanId&, const PlanId&) = default;
};

struct Announce {
  std::string name;
  Meta meta;
  bool shared = false;  // the buffers lie in shared memory now
};
struct Repeat {
  PlanId plan;
  bool shared = false;
};
struct Join {};
struct Withdraw {
  std::string name;
};
struct Retract {
  std::string name;
  bool shared = false;  // as it was submitted
};
using Submission = std::variant<Announce, Repeat, Join, Withdraw, Retract>;

struct Define {
  PlanId plan;
  std::string name;
  Meta meta;
};
struct Batch {
  std::vector<PlanId> plans;
  std::vector<std::int64_t> joined;  // member indices
};
struct Refuse {
  std::string name;
  std::string text;
  std::int32_t culprit = -1;  // member index
  // Members whose submission was withdrawn before: what they have submitted since is another one.
  std::vector<std::int64_t> spared{};
};
struct Joined {
  std::int32_t last = -1;  // member index
};
struct Resend {
  std::int32_t member = -1;
  PlanId plan;
};
struct Withdrawn {
  std::int32_t member = -1;
  std::string name;
};
struct Abort {
  std::string text;
  std::int32_t culprit = -1;
};
using LogEntry = std::variant<Define, Batch, Refuse, Joined, Resend, Withdrawn, Abort>;

inline constexpr std::size_t kMaxBatchPlans = 1024;
// Of a group that is one batch, because others decide how large a result of it is.
inline constexpr std::size_t kMaxGroupPlans = 4096;
// Of a process set, so that an index costs nobody more memory than this many plans take. So many
// operations can be in flight in it.
inline constexpr std::uint32_t kMaxPlans = 1 << 16;
inline constexpr std::size_t kMaxTextBytes = 16384;

// Instead of what was written there.
void encode(const Submission& submission, ByteWriter& writer);
void encode(const LogEntry& entry, ByteWriter& writer);
std::vector<std::byte> encode(const Submission& submission);
std::vector<std::byte> encode(const LogEntry& entry);
// False, or nullopt, for anything that is not exactly one message that a member of a set of that
// size could have sent: names are those that a caller may give, metas pass objection(), indices are
// of plans and members that can be, lists of members ascend. What is decoded replaces what was
// there; after false that is anything.
bool decode(std::span<const std::byte> bytes, int members, Submission& into);
bool decode(std::span<const std::byte> bytes, int members, LogEntry& into);
std::optional<Submission> decodeSubmission(std::span<const std::byte> bytes, int members);
std::optional<LogEntry> decodeLogEntry(std::span<const std::byte> bytes, int members);

}  // namespace farandole::control
