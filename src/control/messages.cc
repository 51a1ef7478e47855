#include "control/messages.h"

#include <algorithm>
#include <functional>

#include "base/bytes.h"

namespace farandole::control {
namespace {

void put(ByteWriter& writer, const PlanId& plan) {
  writer.integer(plan.index);
  writer.integer(plan.generation);
}
void put(ByteWriter& writer, const Announce& m) {
  writer.text(m.name);
  m.meta.encode(writer);
  writer.integer<std::uint8_t>(m.shared);
}
void put(ByteWriter& writer, const Repeat& m) {
  put(writer, m.plan);
  writer.integer<std::uint8_t>(m.shared);
}
void put(ByteWriter&, const Join&) {}
void put(ByteWriter& writer, const Withdraw& m) { writer.text(m.name); }
void put(ByteWriter& writer, const Retract& m) {
  writer.text(m.name);
  writer.integer<std::uint8_t>(m.shared);
}

void put(ByteWriter& writer, const Define& m) {
  put(writer, m.plan);
  writer.text(m.name);
  m.meta.encode(writer);
}
void put(ByteWriter& writer, const Batch& m) {
  writer.integer(static_cast<std::uint32_t>(m.plans.size()));
  for (const auto& plan : m.plans) put(writer, plan);
  writer.integers(m.joined);
}
void put(ByteWriter& writer, const Refuse& m) {
  writer.text(m.name);
  writer.text(m.text);
  writer.integer(m.culprit);
  writer.integers(m.spared);
}
void put(ByteWriter& writer, const Joined& m) { writer.integer(m.last); }
void put(ByteWriter& writer, const Resend& m) {
  writer.integer(m.member);
  put(writer, m.plan);
}
void put(ByteWriter& writer, const Withdrawn& m) {
  writer.integer(m.member);
  writer.text(m.name);
}
void put(ByteWriter& writer, const Abort& m) {
  writer.text(m.text);
  writer.integer(m.culprit);
}

// What was received, by a member of a set of that size.
struct Source {
  ByteReader reader;
  int members = 0;

  // As the checks of what is read: false is a message that nobody sends.
  bool plan(PlanId& plan) {
    plan.index = reader.integer<std::uint32_t>();
    plan.generation = reader.integer<std::uint32_t>();
    return plan.index < kMaxPlans;
  }
  // Nothing but 0 and 1: a message has one form only.
  bool flag(bool& flag) {
    const auto value = reader.integer<std::uint8_t>();
    flag = value == 1;
    return value <= 1;
  }
  bool name(std::string& name) {
    name = reader.text(kMaxNameBytes);
    return !name.empty();
  }
  bool text(std::string& text) {
    text = reader.text(kMaxTextBytes);
    return true;
  }
  bool meta(Meta& meta) {
    auto decoded = Meta::decode(reader, members);
    if (decoded) meta = std::move(*decoded);
    return decoded.has_value();
  }
  bool member(std::int32_t& member) {
    member = reader.integer<std::int32_t>();
    return member >= 0 && member < members;
  }
  bool culprit(std::int32_t& culprit) {
    culprit = reader.integer<std::int32_t>();
    return culprit >= -1 && culprit < members;
  }
  bool someMembers(std::vector<std::int64_t>& some) {
    some = reader.integers(kMaxSplits);
    const bool ascend =
        std::adjacent_find(some.begin(), some.end(), std::greater_equal<>()) == some.end();
    return ascend && (some.empty() || (some.front() >= 0 && some.back() < members));
  }
};

bool get(Source& from, Announce& m) {
  return from.name(m.name) && from.meta(m.meta) && from.flag(m.shared);
}
bool get(Source& from, Repeat& m) { return from.plan(m.plan) && from.flag(m.shared); }
bool get(Source&, Join&) { return true; }
bool get(Source& from, Withdraw& m) { return from.name(m.name); }
bool get(Source& from, Retract& m) { return from.name(m.name) && from.flag(m.shared); }

bool get(Source& from, Define& m) {
  return from.plan(m.plan) && from.name(m.name) && from.meta(m.meta);
}
bool get(Source& from, Batch& m) {
  const auto count = from.reader.integer<std::uint32_t>();
  if (count == 0 || count > kMaxGroupPlans) return false;
  m.plans.resize(count);
  for (auto& plan : m.plans) {
    if (!from.plan(plan)) return false;
  }
  // Somebody has submitted it.
  return from.someMembers(m.joined) && m.joined.size() < static_cast<std::size_t>(from.members);
}
bool get(Source& from, Refuse& m) {
  return from.name(m.name) && from.text(m.text) && from.culprit(m.culprit) &&
         from.someMembers(m.spared);
}
bool get(Source& from, Joined& m) { return from.member(m.last); }
bool get(Source& from, Resend& m) { return from.member(m.member) && from.plan(m.plan); }
bool get(Source& from, Withdrawn& m) { return from.member(m.member) && from.name(m.name); }
bool get(Source& from, Abort& m) { return from.text(m.text) && from.culprit(m.culprit); }

// A message is its index in the variant, then its fields.
template <typename Variant>
void encodeVariant(const Variant& message, ByteWriter& writer) {
  writer.clear();
  writer.integer(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& m) { put(writer, m); }, message);
}

template <typename Variant>
std::vector<std::byte> encodeAlone(const Variant& message) {
  ByteWriter writer;
  encodeVariant(message, writer);
  return writer.take();
}

template <std::size_t I = 0, typename Variant>
bool decodeAlternative(std::size_t index, Source& from, Variant& into) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return false;
  } else {
    if (index != I) return decodeAlternative<I + 1>(index, from, into);
    // Messages of one kind follow each other, and leave their memory to the next.
    auto* last = std::get_if<I>(&into);
    return get(from, last != nullptr ? *last : into.template emplace<I>()) &&
           from.reader.finished();
  }
}

template <typename Variant>
bool decodeVariant(std::span<const std::byte> bytes, int members, Variant& into) {
  Source from{ByteReader(bytes), members};
  const std::size_t index = from.reader.integer<std::uint8_t>();
  return from.reader.good() && decodeAlternative(index, from, into);
}

template <typename Variant>
std::optional<Variant> decodeAlone(std::span<const std::byte> bytes, int members) {
  Variant message;
  if (!decodeVariant(bytes, members, message)) return std::nullopt;
  return message;
}

}  // namespace

void encode(const Submission& submission, ByteWriter& writer) { encodeVariant(submission, writer); }
void encode(const LogEntry& entry, ByteWriter& writer) { encodeVariant(entry, writer); }
std::vector<std::byte> encode(const Submission& submission) { return encodeAlone(submission); }
std::vector<std::byte> encode(const LogEntry& entry) { return encodeAlone(entry); }
bool decode(std::span<const std::byte> bytes, int members, Submission& into) {
  return decodeVariant(bytes, members, into);
}
bool decode(std::span<const std::byte> bytes, int members, LogEntry& into) {
  return decodeVariant(bytes, members, into);
}
std::optional<Submission> decodeSubmission(std::span<const std::byte> bytes, int members) {
  return decodeAlone<Submission>(bytes, members);
}
std::optional<LogEntry> decodeLogEntry(std::span<const std::byte> bytes, int members) {
  return decodeAlone<LogEntry>(bytes, members);
}

}  // namespace farandole::control
