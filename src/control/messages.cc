#include "control/messages.h"

#include <algorithm>
#include <functional>

#include "control/codec.h"

namespace farandole::control {
namespace {

void put(Writer& writer, const PlanId& plan) {
  writer.number(plan.index);
  writer.number(plan.generation);
}
void put(Writer& writer, const Announce& m) {
  writer.text(m.name);
  m.meta.encode(writer);
  writer.number<std::uint8_t>(m.shared);
}
void put(Writer& writer, const Repeat& m) {
  put(writer, m.plan);
  writer.number<std::uint8_t>(m.shared);
}
void put(Writer&, const Join&) {}
void put(Writer& writer, const Withdraw& m) { writer.text(m.name); }
void put(Writer& writer, const Retract& m) {
  writer.text(m.name);
  writer.number<std::uint8_t>(m.shared);
}

void put(Writer& writer, const Define& m) {
  put(writer, m.plan);
  writer.text(m.name);
  m.meta.encode(writer);
}
void put(Writer& writer, const Batch& m) {
  writer.number(static_cast<std::uint32_t>(m.plans.size()));
  for (const auto& plan : m.plans) put(writer, plan);
  writer.numbers(m.joined);
}
void put(Writer& writer, const Refuse& m) {
  writer.text(m.name);
  writer.text(m.text);
  writer.number(m.culprit);
  writer.numbers(m.spared);
}
void put(Writer& writer, const Joined& m) { writer.number(m.last); }
void put(Writer& writer, const Resend& m) {
  writer.number(m.member);
  put(writer, m.plan);
}
void put(Writer& writer, const Withdrawn& m) {
  writer.number(m.member);
  writer.text(m.name);
}
void put(Writer& writer, const Abort& m) {
  writer.text(m.text);
  writer.number(m.culprit);
}

// What was received, by a member of a set of that size.
struct Source {
  Reader reader;
  int members = 0;

  // As the checks of what is read: false is a message that nobody sends.
  bool plan(PlanId& plan) {
    plan.index = reader.number<std::uint32_t>();
    plan.generation = reader.number<std::uint32_t>();
    return plan.index < kMaxPlans;
  }
  // Nothing but 0 and 1: a message has one form only.
  bool flag(bool& flag) {
    const auto value = reader.number<std::uint8_t>();
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
    member = reader.number<std::int32_t>();
    return member >= 0 && member < members;
  }
  bool culprit(std::int32_t& culprit) {
    culprit = reader.number<std::int32_t>();
    return culprit >= -1 && culprit < members;
  }
  bool someMembers(std::vector<std::int64_t>& some) {
    some = reader.numbers(kMaxSplits);
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
  const auto count = from.reader.number<std::uint32_t>();
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
void encodeVariant(const Variant& message, Writer& writer) {
  writer.clear();
  writer.number(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& m) { put(writer, m); }, message);
}

template <typename Variant>
std::vector<std::byte> encodeAlone(const Variant& message) {
  Writer writer;
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
  Source from{Reader(bytes), members};
  const std::size_t index = from.reader.number<std::uint8_t>();
  return from.reader.ok() && decodeAlternative(index, from, into);
}

template <typename Variant>
std::optional<Variant> decodeAlone(std::span<const std::byte> bytes, int members) {
  Variant message;
  if (!decodeVariant(bytes, members, message)) return std::nullopt;
  return message;
}

}  // namespace

void encode(const Submission& submission, Writer& writer) { encodeVariant(submission, writer); }
void encode(const LogEntry& entry, Writer& writer) { encodeVariant(entry, writer); }
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
