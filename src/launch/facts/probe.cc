#include "launch/facts/probe.h"

#include <nlohmann/json.hpp>

#include "base/within.h"
#include "launch/facts/fact_access.h"

namespace farandole::launch::facts {
namespace {

using nlohmann::json;

json failure(const Status& status) {
  return {{"error", status.message()}, {"code", static_cast<int>(status.code())}};
}

// The status an answer carries, if it is no success.
Status statusOf(const json& answer) {
  if (!answer.is_object()) return Status::internal("a malformed answer from a host's probe");
  if (!answer.contains("error")) return {};
  const double code = factNumber(answer, "/code");
  const bool known = code >= 1 && code <= static_cast<double>(Code::kInternal);
  return {known ? static_cast<Code>(static_cast<int>(code)) : Code::kInternal,
          factText(answer, "/error")};
}

}  // namespace

Result<json> LocalProbe::facts(const FactsRequest& request, Deadline deadline) {
  Background<json> work([request] { return collectFacts(request); });
  auto facts = work.wait(deadline);
  if (!facts) return Status::timeout("the facts of this machine took too long to collect");
  return std::move(*facts);
}

Result<int> LocalProbe::openEcho(const std::string& secretHex, PortRange range,
                                 const std::string& who, Deadline) {
  auto echo = EchoListener::open(secretHex, range, who);
  if (!echo.ok()) return echo.status();
  echo_ = std::move(*echo);
  return echo_->port();
}

void LocalProbe::closeEcho() { echo_.reset(); }

Result<EchoTimes> LocalProbe::echoTo(const EchoQuestion& question, Deadline deadline) {
  return farandole::launch::facts::echoTo(question.address, question.port, question.secretHex,
                                          question.bytes, deadline);
}

Result<json> JsonProbe::facts(const FactsRequest& request, Deadline deadline) {
  auto answer = ask_({{"ask", "facts"}, {"request", toJson(request)}}, deadline);
  if (!answer.ok()) return answer.status();
  FARANDOLE_RETURN_IF_ERROR(statusOf(*answer));
  if (!factAt(*answer, "/facts").is_object()) return Status::internal("an answer without facts");
  return factAt(*answer, "/facts");
}

Result<int> JsonProbe::openEcho(const std::string& secretHex, PortRange range,
                                const std::string& who, Deadline deadline) {
  auto answer = ask_({{"ask", "open_echo"},
                      {"secret", secretHex},
                      {"first", range.first},
                      {"last", range.last},
                      {"who", who}},
                     deadline);
  if (!answer.ok()) return answer.status();
  FARANDOLE_RETURN_IF_ERROR(statusOf(*answer));
  const double port = factNumber(*answer, "/port");
  if (!(port >= 1 && port <= 65535)) return Status::internal("an answer without a port");
  return static_cast<int>(port);
}

void JsonProbe::closeEcho() {
  // Nothing to be done if it fails: the host closes it with the connection.
  (void)ask_({{"ask", "close_echo"}}, Deadline::after(std::chrono::seconds(2)));
}

Result<EchoTimes> JsonProbe::echoTo(const EchoQuestion& question, Deadline deadline) {
  // Less than we wait: it is the host that knows which address failed, and how.
  constexpr double kShare = 0.8;
  const auto time = kShare * std::chrono::duration<double>(deadline.left(kProbeAnswerTime)).count();
  auto answer = ask_({{"ask", "echo"},
                      {"address", question.address},
                      {"port", question.port},
                      {"secret", question.secretHex},
                      {"bytes", question.bytes},
                      {"seconds", time}},
                     deadline);
  if (!answer.ok()) return answer.status();
  FARANDOLE_RETURN_IF_ERROR(statusOf(*answer));
  return EchoTimes{factText(*answer, "/address"), factText(*answer, "/who"),
                   factNumber(*answer, "/round_trip_us"), factNumber(*answer, "/large_us")};
}

json ProbeService::answer(const json& question) {
  const std::string ask = factText(question, "/ask");
  const auto secret = factText(question, "/secret");
  const auto port = [&question](const char* path) {
    const double value = factNumber(question, path);
    return value >= 0 && value <= 65535 ? static_cast<int>(value) : 0;
  };
  if (ask == "facts") {
    auto request = factsRequestFromJson(factAt(question, "/request"));
    if (!request.ok()) return failure(request.status());
    auto facts = probe_.facts(*request, Deadline::after(kProbeAnswerTime));
    return facts.ok() ? json{{"facts", std::move(*facts)}} : failure(facts.status());
  }
  if (ask == "open_echo") {
    auto opened = probe_.openEcho(secret, {port("/first"), port("/last")},
                                  factText(question, "/who"), Deadline::after(kProbeAnswerTime));
    return opened.ok() ? json{{"port", *opened}} : failure(opened.status());
  }
  if (ask == "close_echo") {
    probe_.closeEcho();
    return json::object();
  }
  if (ask == "echo") {
    const double bytes = factNumber(question, "/bytes");
    if (!(bytes >= 0 && bytes <= static_cast<double>(kEchoMostBytes))) {
      return failure(Status::invalid("an echo of a size that is not allowed"));
    }
    const double limit = std::chrono::duration<double>(kProbeAnswerTime).count();
    const double seconds = std::min(limit, std::max(0.0, factNumber(question, "/seconds", limit)));
    auto times = probe_.echoTo(
        {factText(question, "/address"), port("/port"), secret, static_cast<std::size_t>(bytes)},
        Deadline::after(
            std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))));
    if (!times.ok()) return failure(times.status());
    return {{"address", times->address},
            {"who", times->who},
            {"round_trip_us", times->roundTripMicroseconds},
            {"large_us", times->largeMicroseconds}};
  }
  return failure(Status::invalid("a probe's question that is not understood"));
}

std::string ProbeService::answerText(const std::string& question) {
  const json asked = json::parse(question, nullptr, /*allow_exceptions=*/false);
  const json answered = answer(asked.is_discarded() ? json::object() : asked);
  return answered.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace farandole::launch::facts
