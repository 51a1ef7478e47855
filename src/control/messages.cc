#include "control/messages.h"

#include "control/codec.h"

namespace farandole {
namespace {

void put(Writer& writer, const PlanId& plan) {
  writer.number(plan.index);
  writer.number(plan.generation);
}
PlanId getPlan(Reader& reader) {
  PlanId plan;
  plan.index = reader.number<std::uint32_t>();
  plan.generation = reader.number<std::uint32_t>();
  return plan;
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

// Nothing but 0 and 1: a message has one form only.
bool getFlag(Reader& reader, bool& flag) {
  const auto value = reader.number<std::uint8_t>();
  flag = value == 1;
  return value <= 1;
}

bool get(Reader& reader, Announce& m) {
  m.name = reader.text(kMaxNameBytes);
  auto meta = Meta::decode(reader);
  if (!meta) return false;
  m.meta = std::move(*meta);
  return getFlag(reader, m.shared);
}
bool get(Reader& reader, Repeat& m) {
  m.plan = getPlan(reader);
  return getFlag(reader, m.shared);
}
bool get(Reader&, Join&) { return true; }
bool get(Reader& reader, Withdraw& m) {
  m.name = reader.text(kMaxNameBytes);
  return true;
}
bool get(Reader& reader, Retract& m) {
  m.name = reader.text(kMaxNameBytes);
  return getFlag(reader, m.shared);
}

bool get(Reader& reader, Define& m) {
  m.plan = getPlan(reader);
  m.name = reader.text(kMaxNameBytes);
  auto meta = Meta::decode(reader);
  if (!meta) return false;
  m.meta = std::move(*meta);
  return true;
}
bool get(Reader& reader, Batch& m) {
  const auto count = reader.number<std::uint32_t>();
  if (count == 0 || count > kMaxBatchPlans) return false;
  m.plans.resize(count);
  for (auto& plan : m.plans) plan = getPlan(reader);
  m.joined = reader.numbers(kMaxSplits);
  return true;
}
bool get(Reader& reader, Refuse& m) {
  m.name = reader.text(kMaxNameBytes);
  m.text = reader.text(kMaxTextBytes);
  m.culprit = reader.number<std::int32_t>();
  m.spared = reader.numbers(kMaxSplits);
  return true;
}
bool get(Reader& reader, Joined& m) {
  m.last = reader.number<std::int32_t>();
  return true;
}
bool get(Reader& reader, Resend& m) {
  m.member = reader.number<std::int32_t>();
  m.plan = getPlan(reader);
  return true;
}
bool get(Reader& reader, Withdrawn& m) {
  m.member = reader.number<std::int32_t>();
  m.name = reader.text(kMaxNameBytes);
  return true;
}
bool get(Reader& reader, Abort& m) {
  m.text = reader.text(kMaxTextBytes);
  m.culprit = reader.number<std::int32_t>();
  return true;
}

// A message is its index in the variant, then its fields.
template <typename Variant>
std::vector<std::byte> encodeVariant(const Variant& message) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& m) { put(writer, m); }, message);
  return {writer.bytes().begin(), writer.bytes().end()};
}

template <typename Variant, std::size_t I = 0>
std::optional<Variant> decodeAlternative(std::size_t index, Reader& reader) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return std::nullopt;
  } else {
    if (index != I) return decodeAlternative<Variant, I + 1>(index, reader);
    std::variant_alternative_t<I, Variant> message;
    if (!get(reader, message) || !reader.finished()) return std::nullopt;
    return Variant(std::move(message));
  }
}

template <typename Variant>
std::optional<Variant> decodeVariant(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const std::size_t index = reader.number<std::uint8_t>();
  if (!reader.ok()) return std::nullopt;
  return decodeAlternative<Variant>(index, reader);
}

}  // namespace

std::vector<std::byte> encode(const Submission& submission) { return encodeVariant(submission); }
std::vector<std::byte> encode(const LogEntry& entry) { return encodeVariant(entry); }
std::optional<Submission> decodeSubmission(std::span<const std::byte> bytes) {
  return decodeVariant<Submission>(bytes);
}
std::optional<LogEntry> decodeLogEntry(std::span<const std::byte> bytes) {
  return decodeVariant<LogEntry>(bytes);
}

}  // namespace farandole
