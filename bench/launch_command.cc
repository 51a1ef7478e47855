#include "bench/launch_command.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "bench/launch_peers.h"
#include "bench/launch_remote.h"
#include "bench/launch_report.h"
#include "bench/report.h"
#include "bench/sizes.h"
#include "process/command_lookup.h"

namespace farandole::bench {
namespace {

constexpr int kMostStartedRanks = 1024;
constexpr std::size_t kMostOutput = std::size_t{4} << 30;
constexpr int kChattyRanks = 2;
// A start gets no more than this: some launchers wait for ever for ranks that ended at once.
constexpr auto kCommandTime = std::chrono::seconds(30);
constexpr auto kOutputTime = std::chrono::seconds(120);

// Until the command has ended.
LaunchContender whole(std::string name, Side side, TimedCommand command) {
  return {std::move(name), side, [command]() -> Result<LaunchSample> {
            auto run = runTimed(
                command, [](std::string_view) {}, Deadline::after(kCommandTime));
            if (!run.ok()) return run.status();
            return LaunchSample{run->ended};
          }};
}

// Until its first output has arrived.
LaunchContender firstOutput(std::string name, Side side, TimedCommand command) {
  return {std::move(name), side, [command]() -> Result<LaunchSample> {
            auto run = runTimed(
                command, [](std::string_view) {}, Deadline::after(kCommandTime));
            if (!run.ok()) return run.status();
            if (run->firstByte == 0) return Status::internal("the rank's output did not arrive");
            return LaunchSample{run->firstByte};
          }};
}

// Timed from its first output to its last, which must be `lines` lines of each rank.
LaunchContender chatty(std::string name, Side side, TimedCommand command, int times,
                       std::size_t lines) {
  return {std::move(name), side, [command, times, lines]() -> Result<LaunchSample> {
            LineCheck check(times, lines);
            auto run = runTimed(
                command, [&check](std::string_view piece) { check.take(piece); },
                Deadline::after(kOutputTime));
            if (!run.ok()) return run.status();
            return LaunchSample{run->lastByte - run->firstByte, check.finish()};
          }};
}

// One run of the command: settles who takes part, then one contest after the other.
class LaunchBench {
 public:
  explicit LaunchBench(const LaunchOptions& options) : options_(options) {}

  Status run() {
    FARANDOLE_RETURN_IF_ERROR(prepare());
    say(fmt::format("{} processors; {} interleaved rounds; speed above 1: Farandole is faster",
                    allowedProcessors().size(), options_.rounds));
    for (const Launcher& one : launchers_) {
      if (one.program.empty()) {
        say(fmt::format("peer {} is missing ({} not found); install it with: {}", one.name,
                        one.missing, one.install));
      }
    }
    std::erase_if(launchers_, [](const Launcher& one) { return one.program.empty(); });
    say(LaunchReport::header());
    if (hosts_.empty()) {
      for (const int ranks : counts_) measureStart(ranks);
      if (options_.what != "start") measureOutput();
    }
    for (const RemoteHost& host : hosts_) {
      if (options_.what != "output") measureStart(host);
      if (options_.what != "start") FARANDOLE_RETURN_IF_ERROR(measureOutput(host));
    }
    FARANDOLE_RETURN_IF_ERROR(put(options_.csv, report_.csv()));
    FARANDOLE_RETURN_IF_ERROR(put(options_.json, report_.json()));
    return result_;
  }

 private:
  // Whatever may be wrong with the options is reported before anything is started.
  Status prepare() {
    auto counts = parseRankCounts(options_.ranks);
    if (!counts.ok()) return counts.status();
    if (options_.what != "output") counts_ = std::move(*counts);
    auto output = parseSize(options_.output);
    if (!output.ok()) return output.status();
    if (*output > kMostOutput) return Status::invalid("--output is at most 4G");
    lines_ = linesIn(*output);
    if (options_.hosts.empty()) {
      auto launchers = selectLaunchers(options_.against);
      if (!launchers.ok()) return launchers.status();
      launchers_ = std::move(*launchers);
      return {};
    }
    auto hosts = launch::hosts::parseHosts(options_.hosts);
    if (!hosts.ok()) return hosts.status();
    for (const launch::hosts::HostSpec& host : *hosts) {
      auto remote = RemoteHost::of(host, options_.sshPort, options_.identityFile);
      if (!remote.ok()) return remote.status();
      hosts_.push_back(std::move(*remote));
    }
    return {};
  }

  void measureStart(int ranks) {
    std::vector<LaunchContender> contenders = {
        whole("farandole", Side::kOurs, startWithFarandole(ranks, {"true"}))};
    for (const Launcher& one : launchers_) {
      contenders.push_back(whole(one.name, Side::kPeer, startWith(one, ranks, {"true"})));
    }
    contest(fmt::format("start, {} rank{}", ranks, ranks == 1 ? "" : "s"), 0, contenders);
  }

  void measureOutput() {
    const auto writer = [](std::size_t lines) {
      return std::vector<std::string>{process::ownProgram(), "bench", "chatter",
                                      std::to_string(lines)};
    };
    std::vector<LaunchContender> contenders;
    const auto add = [&](const std::string& name, Side side, TimedCommand command) {
      contenders.push_back(chatty(name, side, std::move(command), kChattyRanks, lines_));
    };
    add("farandole", Side::kOurs, startWithFarandole(kChattyRanks, writer(lines_)));
    for (const Launcher& one : launchers_) {
      if (!one.forwardsOutput) continue;
      add(one.name, Side::kPeer, startWith(one, kChattyRanks, writer(lines_)));
    }
    // What a pipe and the bench's own reading allow: one writer, nobody between.
    contenders.push_back(chatty("bare pipe", Side::kBound, {writer(lines_ * kChattyRanks)}, 1,
                                lines_ * kChattyRanks));
    contest(fmt::format("output, {} ranks", kChattyRanks), outputBytes(), contenders);
  }

  void measureStart(const RemoteHost& host) {
    contest(fmt::format("start on {}", host.name()), 0,
            {firstOutput("farandole first rank", Side::kOurs, host.run(1, {"echo", "up"})),
             whole("farandole to its end", Side::kOurs, host.run(1, {"true"})),
             whole("ssh true", Side::kPeer, host.bare("true"))});
  }

  Status measureOutput(const RemoteHost& host) {
    auto file = RemoteLines::create(host, lines_);
    if (!file.ok()) return file.status();
    const std::string& path = (*file)->path();
    contest(fmt::format("output from {}", host.name()), outputBytes(),
            {chatty("farandole", Side::kOurs, host.run(kChattyRanks, {"cat", path}), kChattyRanks,
                    lines_),
             chatty("ssh cat", Side::kPeer, host.bare(fmt::format("cat {0} {0}", path)),
                    kChattyRanks, lines_)});
    return {};
  }

  // The bytes without the launcher's prefixes.
  std::size_t outputBytes() const { return lines_ * kLineBytes * kChattyRanks; }

  void contest(const std::string& subject, std::size_t bytes,
               const std::vector<LaunchContender>& contenders) {
    const auto measurements = runLaunchContest(subject, bytes, contenders, options_.rounds);
    for (const LaunchRow& row : report_.add(measurements)) say(LaunchReport::text(row));
    for (const LaunchMeasurement& m : measurements) {
      if (m.failure.empty()) continue;
      const std::string what = fmt::format("{}: {} failed: {}", m.subject, m.contender, m.failure);
      say(what);
      if (m.side == Side::kOurs) result_ = Status::internal(what);
    }
  }

  static Status put(const std::string& path, const std::string& content) {
    if (path.empty()) return {};
    if (path != "-") return writeFile(path, content);
    say(content);
    return {};
  }

  const LaunchOptions& options_;
  std::vector<int> counts_;
  std::size_t lines_ = 0;
  std::vector<Launcher> launchers_;
  std::vector<RemoteHost> hosts_;
  LaunchReport report_;
  Status result_;
};

}  // namespace

Status benchLaunch(const LaunchOptions& options) { return LaunchBench(options).run(); }

Result<std::vector<int>> parseRankCounts(std::string_view text) {
  std::vector<int> counts;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    int count = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size() || count < 1 ||
        count > kMostStartedRanks) {
      return Status::invalid(
          fmt::format("'{}' is not a number of ranks from 1 to {}; write for example 2,64", word,
                      kMostStartedRanks));
    }
    counts.push_back(count);
    if (comma == std::string_view::npos) return counts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace farandole::bench
