// Fuzzes the control channel: the messages, and the ring in shared memory that carries them. The
// first byte chooses: a submission, an entry of the log, an ordered operation or its head, or a
// ring whose memory another rank wrote.
#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>

#include "control/byte_ring.h"
#include "control/messages.h"
#include "control/ordered_record.h"
#include "fuzz.h"

namespace farandole::fuzz {
namespace {

using control::encode;
using control::encodeOrdered;
using control::RingRead;

constexpr std::size_t kRing = 256;
constexpr std::uint32_t kEpoch = 1;
constexpr int kMembers = 6;

std::span<const std::byte> asBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool checkMeta(const control::Meta& meta) {
  require(meta.elements() >= 0 && meta.bytes() >= 0 && !control::name(meta.kind).empty());
  require(meta.kind <= control::Kind::kBarrier);
  require(!control::isReduction(meta.kind) || supports(meta.op, meta.dtype));
  require(meta.root >= 0 && meta.root < kMembers);
  require(!control::objection(meta, kMembers));
  require(control::agree(meta, meta) && control::difference(meta, "a", meta, "b").empty());
  return true;
}

bool isMember(std::int64_t member) { return member >= 0 && member < kMembers; }

void checkMembers(const std::vector<std::int64_t>& members) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    require(isMember(members[i]) && (i == 0 || members[i - 1] < members[i]));
  }
}

// What decodes can be acted upon: whoever does it checks no more than whether it fits what it
// knows.
template <typename Message>
bool checkMessage(const Message& m) {
  if constexpr (requires { m.meta; }) checkMeta(m.meta);
  if constexpr (requires { m.name; })
    require(!m.name.empty() && m.name.size() <= control::kMaxNameBytes);
  if constexpr (requires { m.plan; }) require(m.plan.index < control::kMaxPlans);
  if constexpr (requires { m.culprit; }) require(m.culprit == -1 || isMember(m.culprit));
  if constexpr (requires { m.member; }) require(isMember(m.member));
  if constexpr (requires { m.last; }) require(isMember(m.last));
  if constexpr (requires { m.spared; }) checkMembers(m.spared);
  if constexpr (std::is_same_v<Message, control::Batch>) {
    require(!m.plans.empty() && m.plans.size() <= control::kMaxGroupPlans);
    for (const auto& plan : m.plans) require(plan.index < control::kMaxPlans);
    checkMembers(m.joined);
    require(m.joined.size() < kMembers);
  }
  return true;
}

template <typename Message>
bool runMessage(std::string_view input, const std::optional<Message>& message) {
  if (!message) return false;
  require(asText(encode(*message)) == input);
  return std::visit([](const auto& m) { return checkMessage(m); }, *message);
}

bool runHead(std::span<const std::byte> bytes) {
  const auto head = control::decodeOrderedHead(bytes, kMembers);
  if (!head) return false;
  require(head->name.size() <= control::kMaxNameBytes);
  require(asText(control::encodeOrderedHead(head->name, head->meta)) == asText(bytes));
  return checkMeta(head->meta);
}

// A record is well-formed whatever its head; the head is a decoder's of its own.
bool runOrdered(std::string_view input) {
  const auto record = control::decodeOrdered(asBytes(input));
  if (!record) return false;
  require(!record->leaves || (record->head.empty() && record->payload.empty()));
  require(encodeOrdered(*record, 3) == std::string(3, '\0').append(input));
  return record->leaves || runHead(record->head);
}

// 8 bytes of head, then the ring's memory.
bool runRing(std::string_view input) {
  if (input.size() < 8) return false;
  std::uint64_t claimed = 0;
  std::memcpy(&claimed, input.data(), sizeof claimed);
  input.remove_prefix(sizeof claimed);
  std::vector<std::byte> memory(kRing);  // on the heap, so that a read beyond it is seen
  if (!input.empty()) std::memcpy(memory.data(), input.data(), std::min(input.size(), kRing));
  const std::atomic<std::uint64_t> head(claimed);
  control::RingReader reader(memory.data(), kRing, &head, kEpoch);
  std::vector<std::byte> record;
  // Every record takes at least 8 of at most kRing bytes.
  for (std::size_t i = 0; i <= kRing / 8; ++i) {
    const RingRead read = reader.read(record);
    if (read != RingRead::kRecord) return read == RingRead::kEmpty && reader.position() == claimed;
    require(record.size() <= kRing);
  }
  std::abort();
}

std::string ringSeed() {
  std::vector<std::byte> memory(kRing);
  std::atomic<std::uint64_t> head(0);
  control::RingWriter writer(memory.data(), kRing, &head, kEpoch);
  for (const char* record : {"", "one", "a longer record"})
    require(writer.write(asBytes(record), 0));
  const std::uint64_t at = head.load();
  return std::string(reinterpret_cast<const char*>(&at), sizeof at) + asText(memory);
}

}  // namespace

std::vector<std::string> seeds() {
  control::Meta meta;
  meta.kind = control::Kind::kReducescatter;
  meta.shape = {4, 3};
  meta.splits = {1, 0, 2, 0, 0, 1};
  const std::vector<control::Submission> submissions = {
      control::Announce{"tensor", meta, true}, control::Repeat{{1, 2}, false}, control::Join{},
      control::Withdraw{"tensor"}, control::Retract{"tensor", true}};
  const std::vector<control::LogEntry> entries = {control::Define{{1, 2}, "tensor", meta},
                                                  control::Batch{{{1, 2}, {3, 4}}, {0, 5}},
                                                  control::Refuse{"tensor", "differs", 1},
                                                  control::Joined{3},
                                                  control::Resend{1, {1, 2}},
                                                  control::Withdrawn{1, "tensor"},
                                                  control::Abort{"text", 2}};
  std::vector<std::string> all;
  for (const auto& message : submissions) all.push_back(choose(0, asText(encode(message))));
  for (const auto& entry : entries) all.push_back(choose(1, asText(encode(entry))));
  all.push_back(choose(2, ringSeed()));
  const auto head = control::encodeOrderedHead("tensor", meta);
  all.push_back(choose(3, encodeOrdered({false, 7, head, asBytes("data")}, 0)));
  all.push_back(choose(3, encodeOrdered({true, 0, {}, {}}, 0)));
  all.push_back(choose(4, asText(head)));
  return all;
}

bool run(std::string_view input) {
  if (input.empty()) return false;
  const char reader = input.front();
  input.remove_prefix(1);
  if (reader == 0) return runMessage(input, control::decodeSubmission(asBytes(input), kMembers));
  if (reader == 1) return runMessage(input, control::decodeLogEntry(asBytes(input), kMembers));
  if (reader == 3) return runOrdered(input);
  if (reader == 4) return runHead(asBytes(input));
  return runRing(input);
}

}  // namespace farandole::fuzz
