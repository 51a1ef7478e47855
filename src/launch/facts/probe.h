// HostProbe: the doctor's hands on one host.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "launch/facts/echo.h"
#include "launch/facts/facts.h"

namespace farandole::launch::facts {

struct EchoQuestion {
  std::string address;  // numeric
  int port = 0;
  std::string secretHex;
  std::size_t bytes = kEchoLargeBytes;
};

// Calls of one probe never overlap; distinct probes are used from distinct threads. Every call
// returns at its deadline at the latest.
class HostProbe {
 public:
  virtual ~HostProbe() = default;

  virtual Result<nlohmann::json> facts(const FactsRequest& request, Deadline deadline) = 0;
  // The port listened on, until closeEcho() or the probe's end. who: see EchoListener::open.
  virtual Result<int> openEcho(const std::string& secretHex, PortRange range,
                               const std::string& who, Deadline deadline) = 0;
  virtual void closeEcho() = 0;
  // Visits an echo elsewhere from that host.
  virtual Result<EchoTimes> echoTo(const EchoQuestion& question, Deadline deadline) = 0;
};

// The machine we are on.
class LocalProbe : public HostProbe {
 public:
  Result<nlohmann::json> facts(const FactsRequest& request, Deadline deadline) override;
  Result<int> openEcho(const std::string& secretHex, PortRange range, const std::string& who,
                       Deadline deadline) override;
  void closeEcho() override;
  Result<EchoTimes> echoTo(const EchoQuestion& question, Deadline deadline) override;

 private:
  std::unique_ptr<EchoListener> echo_;
};

// A probe whose questions travel as JSON objects: ask() brings one to a ProbeService elsewhere and
// its answer back.
class JsonProbe : public HostProbe {
 public:
  using Ask = std::function<Result<nlohmann::json>(const nlohmann::json&, Deadline)>;
  explicit JsonProbe(Ask ask) : ask_(std::move(ask)) {}

  Result<nlohmann::json> facts(const FactsRequest& request, Deadline deadline) override;
  Result<int> openEcho(const std::string& secretHex, PortRange range, const std::string& who,
                       Deadline deadline) override;
  void closeEcho() override;
  Result<EchoTimes> echoTo(const EchoQuestion& question, Deadline deadline) override;

 private:
  Ask ask_;
};

// The other end of a JsonProbe. Answers take at most kProbeAnswerTime; a malformed question gets an
// answer that says so. Not thread-safe.
inline constexpr Duration kProbeAnswerTime = std::chrono::seconds(6);
class ProbeService {
 public:
  nlohmann::json answer(const nlohmann::json& question);
  // The same for texts; what is not JSON is an empty question.
  std::string answerText(const std::string& question);

 private:
  LocalProbe probe_;
};

}  // namespace farandole::launch::facts
