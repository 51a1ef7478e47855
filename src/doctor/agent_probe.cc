#include "doctor/agent_probe.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "launch/remote/remote_host.h"

namespace farandole::doctor {
namespace {

using launch::remote::Connecting;
using launch::remote::PushMode;
using launch::remote::RemoteHost;
using launch::remote::Tree;
using nlohmann::json;
using std::chrono::milliseconds;

// One host, one conversation, one question at a time.
class Conversation : private RemoteHost::Listener {
 public:
  Conversation(const DoctorHost& host, const launch::ssh::SshOptions& options, Tree tree,
               std::size_t bytes)
      : connecting_{options, std::move(tree),      bytes,
                    {},      PushMode::kIfMissing, std::chrono::seconds(30)},
        host_(0, {host.name, false, {host.name, host.user, host.port}, host.slots}, connecting_,
              *this) {}

  ~Conversation() override {
    host_.finish();
    const Deadline farewell = Deadline::after(std::chrono::seconds(1));
    while (!host_.over() && !farewell.passed()) step(farewell);
    host_.drop();
    // ssh ends when its pipe does; a moment for the politest way.
    for (const Deadline deadline = Deadline::after(std::chrono::seconds(2)); !reap();) {
      if (deadline.passed()) ::kill(host_.pid(), SIGKILL);
      ::poll(nullptr, 0, 5);
    }
  }

  Status open(Deadline deadline) {
    process::InheritedSignals signals;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &signals.mask);
    signals.pipe.sa_handler = SIG_DFL;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    host_.connect(signals, files);
    return wait(deadline, [this] { return ready_; });
  }

  Result<json> ask(const json& question, Deadline deadline) {
    reply_.reset();
    host_.send(launch::remote::encode(launch::remote::Type::kAsk,
                                      question.dump(-1, ' ', true, json::error_handler_t::replace),
                                      ++lastId_));
    FARANDOLE_RETURN_IF_ERROR(wait(deadline, [this] { return reply_.has_value(); }));
    json answer = json::parse(*reply_, nullptr, /*allow_exceptions=*/false);
    if (answer.is_discarded()) return Status::internal("an answer that is not JSON");
    return answer;
  }

 private:
  Status wait(Deadline deadline, auto condition) {
    while (!condition() && failure_.empty()) {
      if (deadline.passed()) return Status::timeout("no answer in time");
      step(deadline);
    }
    return failure_.empty() ? Status() : Status(Code::kUnavailable, failure_);
  }

  void step(Deadline deadline) {
    std::vector<pollfd> entries;
    for (const auto& [fd, events] : host_.waits()) {
      if (fd >= 0) entries.push_back({fd, static_cast<short>(events), 0});
    }
    const auto limit = std::chrono::ceil<milliseconds>(deadline.left(milliseconds(200)));
    ::poll(entries.data(), entries.size(), static_cast<int>(limit.count()));
    host_.ready();
    host_.tick(Clock::now());
    reap();
  }

  // True when ssh has ended, or was never started.
  bool reap() {
    if (host_.pid() <= 0 || reaped_) return true;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(host_.pid()), &info, WEXITED | WNOHANG) != 0) {
      reaped_ = true;
    } else if (info.si_pid != 0) {
      reaped_ = true;
      host_.childEnded(host_.pid(), info);
    }
    return reaped_;
  }

  void hostReady(RemoteHost&) override { ready_ = true; }
  void hostFailed(RemoteHost&, const std::string& why, bool) override { failure_ = why; }
  void hostReplied(RemoteHost&, std::uint64_t id, const std::string& text) override {
    if (id == lastId_) reply_ = text;
  }
  void hostStarted(RemoteHost&, const std::vector<std::pair<int, int>>&) override {}
  void remoteWrote(int, launch::output::Stream, std::string_view) override {}
  void remoteEnded(bootstrap::RankEnd, bool) override {}
  void rankSaid(int, std::string) override {}
  void hostFinished(RemoteHost&, const std::string&) override {}
  void inputTaken(std::size_t) override {}
  void storeOpened() override {}
  void hostRemarked(RemoteHost&, const std::string&) override {}
  void hostWarned(RemoteHost&, const std::string&) override {}

  Connecting connecting_;
  RemoteHost host_;
  bool ready_ = false;
  bool reaped_ = false;
  std::string failure_;
  std::uint64_t lastId_ = 0;
  std::optional<std::string> reply_;
};

}  // namespace

Result<std::unique_ptr<launch::facts::HostProbe>> makeAgentProbe(
    const DoctorHost& host, const launch::ssh::SshOptions& options, Deadline deadline) {
  auto tree = launch::remote::ownTree();
  if (!tree.ok()) return tree.status();
  auto bytes = launch::remote::archiveBytes(*tree);
  if (!bytes.ok()) return bytes.status();
  auto conversation = std::make_shared<Conversation>(host, options, std::move(*tree), *bytes);
  FARANDOLE_RETURN_IF_ERROR(conversation->open(deadline));
  return std::unique_ptr<launch::facts::HostProbe>(
      std::make_unique<launch::facts::JsonProbe>([conversation](const json& question, Deadline by) {
        return conversation->ask(question, by);
      }));
}

}  // namespace farandole::doctor
