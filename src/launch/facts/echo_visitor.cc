// The connecting side of the echo.
#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/posix.h"
#include "base/text.h"
#include "crypto/handshake.h"
#include "launch/facts/echo.h"
#include "launch/facts/echo_wire.h"
#include "launch/facts/tcp_probe.h"

namespace farandole::launch::facts {
namespace {

constexpr std::size_t kSmall = 64;

double microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// One message there and back, compared byte by byte.
Result<double> roundTrip(int fd, std::size_t bytes, Deadline deadline) {
  std::vector<std::uint8_t> message(4 + bytes);
  storeLength(message.data(), bytes);
  FARANDOLE_RETURN_IF_ERROR(fillRandom(std::span(message).subspan(4, std::min(bytes, kSmall))));
  std::vector<std::uint8_t> answer(bytes);
  const TimePoint begin = Clock::now();
  FARANDOLE_RETURN_IF_ERROR(sendExactly(fd, message, deadline));
  FARANDOLE_RETURN_IF_ERROR(receiveExactly(fd, answer, deadline));
  const double took = microseconds(Clock::now() - begin);
  if (!std::equal(answer.begin(), answer.end(), message.begin() + 4)) {
    return Status(Code::kMismatch, "the bytes came back changed: a proxy stands between");
  }
  return took;
}

Status explain(const TcpProbe& probe, const std::string& place) {
  switch (probe.state) {
    case TcpState::kFiltered:
      return Status::timeout("no answer from " + place +
                             ": filtered (firewall, or a port that is "
                             "not published)");
    case TcpState::kRefused:
      return Status::unavailable(place +
                                 " refused the connection: that address leads to another "
                                 "machine, or the port is not forwarded");
    default: return Status::unavailable(place + " cannot be reached: " + probe.evidence);
  }
}

}  // namespace

Result<EchoTimes> echoTo(const std::string& address, int port, const std::string& secretHex,
                         std::size_t bytes, Deadline deadline) {
  if (bytes > kEchoMostBytes) return Status::invalid("too large a message for an echo");
  auto key = crypto::JobKey::make(kEchoJob, secretHex);
  if (!key.ok()) return key.status();
  const std::string place = address + " port " + std::to_string(port);
  const TcpProbe probe = probeTcp(address, port, deadline);
  if (probe.state != TcpState::kOpen) return explain(probe, place);
  auto verdict = crypto::visit(probe.fd.get(), *key, kEchoPurpose, crypto::Claim{}, deadline);
  if (!verdict.ok()) {
    return Status(verdict.status().code() == Code::kTimeout ? Code::kTimeout : Code::kMismatch,
                  "somebody else answers at " + place + ": " + verdict.status().message());
  }
  EchoTimes times;
  times.address = probe.address;
  times.who = *verdict;
  for (int round = 0; round < 3; ++round) {
    auto took = roundTrip(probe.fd.get(), kSmall, deadline);
    if (!took.ok()) return took.status();
    times.roundTripMicroseconds = round == 0 ? *took : std::min(times.roundTripMicroseconds, *took);
  }
  auto large = roundTrip(probe.fd.get(), bytes, deadline);
  if (!large.ok()) {
    if (large.status().code() != Code::kTimeout) return large.status();
    return Status::timeout("small messages pass between here and " + place + ", but " +
                           std::to_string(bytes) +
                           " bytes do not: a link on the way has a "
                           "smaller MTU");
  }
  times.largeMicroseconds = *large;
  return times;
}

std::string describe(PortRange range) {
  if (range.first == 0) return {};
  return std::to_string(range.first) + "-" + std::to_string(range.last);
}

Result<PortRange> parsePortRange(const std::string& text) {
  const auto wrong = [&text] {
    return Status::invalid("--port-range takes two ports, such as 29400-29431, not '" + text + "'");
  };
  const auto number = [](std::string_view digits) {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    return whole && value >= 1 && value <= 65535 ? value : 0;
  };
  const std::string_view view = text;
  const auto dash = view.find('-');
  PortRange range;
  range.first = number(view.substr(0, dash));
  range.last = dash == view.npos ? range.first : number(view.substr(dash + 1));
  if (range.first == 0 || range.last == 0 || range.last < range.first) return wrong();
  return range;
}

Result<std::string> makeEchoSecret() {
  std::array<std::uint8_t, 32> bytes;
  FARANDOLE_RETURN_IF_ERROR(fillRandom(bytes));
  return hexOf(bytes);
}

}  // namespace farandole::launch::facts
