#include "control/link_control.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/mutex.h"

namespace farandole::control {
namespace {

constexpr std::uint64_t kLogWindow = 1 << 20;
constexpr std::uint64_t kSubmissionWindow = 256 << 10;
// Acknowledged in lumps: an eighth of the window.
constexpr std::uint64_t kLogLump = kLogWindow / 8;
constexpr std::uint64_t kSubmissionLump = kSubmissionWindow / 8;
// Whoever has just waited is likely to wait again.
constexpr int kRecent = 8;

enum class Type : std::uint8_t {
  // To the sequencer.
  kSubmit = 1,   // waits u8, record
  kWaiting = 2,  // waits u8
  kRead = 3,     // position u64
  kLeave = 4,    // executed u64, mark u32
  // From it.
  kEntry = 5,       // entry
  kTaken = 6,       // bytes u64
  kMemberLeft = 7,  // member u32, executed u64, mark u32
};

// What a record or an entry counts in the windows and in positions.
std::uint64_t weight(std::span<const std::byte> bytes) { return bytes.size() + 8; }

ByteWriter begin(Type type) {
  ByteWriter writer;
  writer.integer(static_cast<std::uint8_t>(type));
  return writer;
}

}  // namespace

LinkControl::LinkControl(Switchboard& switchboard, Options options)
    : switchboard_(switchboard), options_(std::move(options)), members_(options_.ranks.size()) {
  switchboard_.control().attach(options_.key, [this](int from, const std::string& message) {
    receive(from, std::as_bytes(std::span(message)).subspan(Switchboard::kFront));
  });
}

LinkControl::~LinkControl() { switchboard_.control().detach(options_.key); }

int LinkControl::memberOf(int rank) const {
  const auto found = std::find(options_.ranks.begin(), options_.ranks.end(), rank);
  return found == options_.ranks.end() ? -1 : static_cast<int>(found - options_.ranks.begin());
}

// A connection that has ended tells the watch; here there is nobody to tell.
void LinkControl::send(int member, std::span<const std::byte> message) {
  [[maybe_unused]] const Status sent =
      switchboard_.send(options_.ranks[static_cast<std::size_t>(member)], options_.key, message);
}

bool LinkControl::submit(std::span<const std::byte> record) {
  bool waits = false;
  {
    const MutexLock lock(mutex_);
    if (sequencing()) {
      members_[0].submissions.emplace_back(record.begin(), record.end());
      members_[0].something.store(true, std::memory_order_release);
      return true;
    }
    if (untaken_ > 0 && untaken_ + weight(record) > kSubmissionWindow) return false;
    untaken_ += weight(record);
    announcedWaiting_ = waiting_.load(std::memory_order_relaxed) > 0 || recentWait_ > 0;
    if (recentWait_ > 0) --recentWait_;
    waits = announcedWaiting_;
  }
  ByteWriter message = begin(Type::kSubmit);
  message.integer(static_cast<std::uint8_t>(waits));
  message.remainder(record);
  send(0, message.bytes());
  return true;
}

RingRead LinkControl::nextEntry(std::vector<std::byte>& entry) {
  bool acknowledge = false;
  if (!somethingLogged_.load(std::memory_order_acquire)) return RingRead::kEmpty;
  {
    const MutexLock lock(mutex_);
    if (log_.empty()) {
      somethingLogged_ = logTrouble_ != RingRead::kEmpty;
      return logTrouble_;
    }
    entry = std::move(log_.front());
    log_.pop_front();
    position_ += weight(entry);
    if (sequencing()) members_[0].logRead = position_;
    acknowledge = !sequencing() && position_ - acknowledged_ >= kLogLump;
    // Before it is told: more may come as soon as it is.
    if (acknowledge) acknowledged_ = position_;
  }
  if (acknowledge) {
    ByteWriter message = begin(Type::kRead);
    message.integer(position_);
    send(0, message.bytes());
  }
  return RingRead::kRecord;
}

RingRead LinkControl::nextSubmission(int index, std::vector<std::byte>& record) {
  std::uint64_t taken = 0;
  Member& member = members_[static_cast<std::size_t>(index)];
  if (!member.something.load(std::memory_order_acquire)) return RingRead::kEmpty;
  {
    const MutexLock lock(mutex_);
    if (member.submissions.empty()) {
      member.something = member.trouble != RingRead::kEmpty;
      return member.trouble;
    }
    record = std::move(member.submissions.front());
    member.submissions.pop_front();
    member.owed += weight(record);
    if (index != 0 && member.owed >= kSubmissionLump) taken = std::exchange(member.owed, 0);
    member.untaken -= taken;
  }
  if (taken > 0) {
    ByteWriter message = begin(Type::kTaken);
    message.integer(taken);
    send(index, message.bytes());
  }
  return RingRead::kRecord;
}

bool LinkControl::append(std::span<const std::byte> entry) {
  {
    const MutexLock lock(mutex_);
    for (int i = 1; i < size(); ++i) {
      // One that has left reads no more and must not hold up the others.
      if (!leftAt(i) &&
          head_ + weight(entry) > members_[static_cast<std::size_t>(i)].logRead + kLogWindow) {
        return false;
      }
    }
    head_ += weight(entry);
    log_.emplace_back(entry.begin(), entry.end());
    somethingLogged_.store(true, std::memory_order_release);
  }
  ByteWriter message = begin(Type::kEntry);
  message.remainder(entry);
  for (int i = 1; i < size(); ++i) {
    if (!leftAt(i)) send(i, message.bytes());
  }
  return true;
}

void LinkControl::setWaiting(int delta) {
  const int before = waiting_.fetch_add(delta, std::memory_order_relaxed);
  if (before != 0 || delta <= 0 || sequencing()) return;
  {
    const MutexLock lock(mutex_);
    recentWait_ = kRecent;
    if (std::exchange(announcedWaiting_, true)) return;
  }
  ByteWriter message = begin(Type::kWaiting);
  message.integer(std::uint8_t{1});
  send(0, message.bytes());
}

bool LinkControl::anyoneWaits() const {
  if (waiting_.load(std::memory_order_relaxed) > 0) return true;
  const MutexLock lock(mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.waits; });
}

void LinkControl::leave(std::uint64_t executed) {
  auto& left = members_[static_cast<std::size_t>(options_.me)].left;
  if (left.exchange(executed + 1, std::memory_order_acq_rel) != 0) return;
  const std::uint32_t mark = options_.mark ? options_.mark() : 0;
  if (!sequencing()) {
    ByteWriter message = begin(Type::kLeave);
    message.integer(executed);
    message.integer(mark);
    send(0, message.bytes());
    return;
  }
  ByteWriter message = begin(Type::kMemberLeft);
  message.integer(std::uint32_t{0});
  message.integer(executed);
  message.integer(mark);
  for (int i = 1; i < size(); ++i) {
    if (!leftAt(i)) send(i, message.bytes());
  }
}

std::optional<std::uint64_t> LinkControl::leftAt(int member) const {
  const auto left = members_[static_cast<std::size_t>(member)].left.load(std::memory_order_acquire);
  if (left == 0) return std::nullopt;
  return left - 1;
}

void LinkControl::noteLeft(int member, std::uint64_t executed, std::uint32_t mark) {
  // The reason first: whoever sees that it left asks why.
  if (options_.onLeft) options_.onLeft(options_.ranks[static_cast<std::size_t>(member)], mark);
  members_[static_cast<std::size_t>(member)].left.store(executed + 1, std::memory_order_release);
}

void LinkControl::receive(int from, std::span<const std::byte> message) {
  const int member = memberOf(from);
  // A rank that is no member has no say here.
  if (member < 0 || member == options_.me) return;
  const RingRead read = sequencing()  ? receiveAsSequencer(member, message)
                        : member == 0 ? receiveAsMember(message)
                                      : RingRead::kCorrupt;
  if (read != RingRead::kRecord) {
    const MutexLock lock(mutex_);
    auto& trouble = sequencing() ? members_[static_cast<std::size_t>(member)].trouble : logTrouble_;
    if (trouble == RingRead::kEmpty) trouble = read;
    (sequencing() ? members_[static_cast<std::size_t>(member)].something : somethingLogged_) = true;
  }
  if (options_.wake) options_.wake();
}

RingRead LinkControl::receiveAsSequencer(int index, std::span<const std::byte> message) {
  ByteReader reader(message);
  const auto type = static_cast<Type>(reader.integer<std::uint8_t>());
  Member& member = members_[static_cast<std::size_t>(index)];
  if (type == Type::kSubmit) {
    const bool waits = reader.integer<std::uint8_t>() != 0;
    if (!reader.good()) return RingRead::kCorrupt;
    const auto record = message.subspan(2);
    const MutexLock lock(mutex_);
    if (member.trouble != RingRead::kEmpty) return member.trouble;
    // As in submit(): one that is larger than the window comes alone.
    if (member.untaken > 0 && member.untaken + weight(record) > kSubmissionWindow) {
      return RingRead::kTooMuch;
    }
    member.untaken += weight(record);
    member.waits = waits;
    member.submissions.emplace_back(record.begin(), record.end());
    member.something.store(true, std::memory_order_release);
    return RingRead::kRecord;
  }
  if (type == Type::kWaiting) {
    const bool waits = reader.integer<std::uint8_t>() != 0;
    if (!reader.finished()) return RingRead::kCorrupt;
    const MutexLock lock(mutex_);
    member.waits = waits;
    return RingRead::kRecord;
  }
  if (type == Type::kRead) {
    const auto position = reader.integer<std::uint64_t>();
    if (!reader.finished()) return RingRead::kCorrupt;
    const MutexLock lock(mutex_);
    if (position < member.logRead || position > head_) return RingRead::kCorrupt;
    member.logRead = position;
    return RingRead::kRecord;
  }
  if (type != Type::kLeave) return RingRead::kCorrupt;
  const auto executed = reader.integer<std::uint64_t>();
  const auto mark = reader.integer<std::uint32_t>();
  // Each is told to everybody.
  if (!reader.finished() || executed == UINT64_MAX || leftAt(index)) return RingRead::kCorrupt;
  noteLeft(index, executed, mark);
  ByteWriter relayed = begin(Type::kMemberLeft);
  relayed.integer(static_cast<std::uint32_t>(index));
  relayed.integer(executed);
  relayed.integer(mark);
  for (int i = 1; i < size(); ++i) {
    if (i != index && !leftAt(i)) send(i, relayed.bytes());
  }
  return RingRead::kRecord;
}

RingRead LinkControl::receiveAsMember(std::span<const std::byte> message) {
  ByteReader reader(message);
  const auto type = static_cast<Type>(reader.integer<std::uint8_t>());
  if (type == Type::kEntry) {
    const auto entry = message.subspan(1);
    const MutexLock lock(mutex_);
    if (logTrouble_ != RingRead::kEmpty) return logTrouble_;
    if (received_ + weight(entry) > acknowledged_ + kLogWindow) return RingRead::kTooMuch;
    received_ += weight(entry);
    log_.emplace_back(entry.begin(), entry.end());
    somethingLogged_.store(true, std::memory_order_release);
    return RingRead::kRecord;
  }
  if (type == Type::kTaken) {
    const auto bytes = reader.integer<std::uint64_t>();
    if (!reader.finished()) return RingRead::kCorrupt;
    const MutexLock lock(mutex_);
    if (bytes > untaken_) return RingRead::kCorrupt;
    untaken_ -= bytes;
    return RingRead::kRecord;
  }
  if (type != Type::kMemberLeft) return RingRead::kCorrupt;
  const auto index = reader.integer<std::uint32_t>();
  const auto executed = reader.integer<std::uint64_t>();
  const auto mark = reader.integer<std::uint32_t>();
  if (!reader.finished() || executed == UINT64_MAX || index >= members_.size())
    return RingRead::kCorrupt;
  if (static_cast<int>(index) == options_.me) return RingRead::kCorrupt;
  noteLeft(static_cast<int>(index), executed, mark);
  return RingRead::kRecord;
}

}  // namespace farandole::control
