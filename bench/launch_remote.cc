#include "bench/launch_remote.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/fd.h"
#include "bench/launch_lines.h"
#include "bench/launch_peers.h"
#include "launch/hosts/locality.h"

namespace farandole::bench {
namespace {

constexpr auto kCopyTime = std::chrono::seconds(120);
constexpr auto kRemoveTime = std::chrono::seconds(15);
constexpr std::string_view kPathStart = "/tmp/farandole-bench-";
constexpr std::size_t kRandomLetters = 6;  // mktemp's
constexpr std::size_t kMostAnswer = 4096;

}  // namespace

Result<RemoteHost> RemoteHost::of(const launch::hosts::HostSpec& host, int sshPort,
                                  const std::string& identityFile) {
  RemoteHost remote;
  remote.host_ = host;
  remote.ssh_.port = sshPort;
  remote.ssh_.identityFile = identityFile;
  remote.ssh_.program = launch::ssh::sshProgram();
  remote.ssh_.configFile = launch::ssh::sshConfigFile();
  FARANDOLE_RETURN_IF_ERROR(
      launch::ssh::checkSshTarget({host.name, host.user, host.port}, remote.ssh_));
  if (sshPort == 0 && launch::hosts::isThisMachine(host)) {
    return Status::invalid(fmt::format(
        "{} is this machine, which Farandole does not reach by ssh; leave --hosts out", host.name));
  }
  return remote;
}

TimedCommand RemoteHost::bare(const std::string& command) const {
  return {launch::ssh::sshArguments({host_.name, host_.user, host_.port}, ssh_, command)};
}

TimedCommand RemoteHost::run(int ranks, const std::vector<std::string>& command) const {
  launch::hosts::HostSpec host = host_;
  host.slots = ranks;
  // The working directory need not be there.
  std::vector<std::string> options = {"-H", launch::hosts::formatHost(host), "--wdir", "/"};
  if (ssh_.port != 0) options.insert(options.end(), {"-p", std::to_string(ssh_.port)});
  if (!ssh_.identityFile.empty()) options.insert(options.end(), {"-i", ssh_.identityFile});
  return startWithFarandole(ranks, command, options);
}

bool isRemoteLinesPath(const std::string& text) {
  return text.starts_with(kPathStart) && text.size() == kPathStart.size() + kRandomLetters &&
         std::all_of(text.end() - kRandomLetters, text.end(),
                     [](unsigned char c) { return c < 128 && std::isalnum(c) != 0; });
}

Result<std::unique_ptr<RemoteLines>> RemoteLines::create(const RemoteHost& host,
                                                         std::size_t lines) {
  const UniqueFd content(::memfd_create("farandole-bench-lines", MFD_CLOEXEC));
  if (!content) return Status::fromErrno("memfd_create", errno);
  FARANDOLE_RETURN_IF_ERROR(writeLines(content.get(), lines));
  ::lseek(content.get(), 0, SEEK_SET);
  auto script = launch::ssh::remoteShell(fmt::format(
      "f=$(mktemp {}XXXXXX) && {{ cat >\"$f\" || {{ rm -f \"$f\"; exit 1; }}; }} && echo \"$f\"",
      kPathStart));
  if (!script.ok()) return script.status();
  TimedCommand command = host.bare(*script);
  command.stdinFd = content.get();
  std::string answer;
  auto run = runTimed(
      command,
      [&answer](std::string_view piece) {
        answer += piece.substr(0, kMostAnswer - std::min(kMostAnswer, answer.size()));
      },
      Deadline::after(kCopyTime));
  if (!run.ok()) {
    return Status::unavailable(fmt::format("cannot put {} bytes of lines into /tmp of {}: {}",
                                           lines * kLineBytes, host.name(),
                                           run.status().message()));
  }
  // The last line: a login shell may have greeted first.
  if (answer.ends_with('\n')) answer.pop_back();
  const std::string path = answer.substr(answer.rfind('\n') + 1);
  if (!isRemoteLinesPath(path)) {
    return Status::unavailable(
        fmt::format("{} answered '{}' where a path was expected", host.name(), path));
  }
  return std::unique_ptr<RemoteLines>(new RemoteLines(host, path));
}

RemoteLines::~RemoteLines() {
  (void)runTimed(
      host_.bare("rm -f " + path_), [](std::string_view) {}, Deadline::after(kRemoveTime));
}

}  // namespace farandole::bench
