// Another machine in `farandole bench launch`: reached by `farandole run -H` and by bare ssh with
// the same options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/launch_process.h"
#include "launch/hosts/host_spec.h"
#include "launch/ssh/ssh_command.h"

namespace farandole::bench {

// A value; any thread.
class RemoteHost {
 public:
  // Checked: a host that is this machine is refused, for it would not be reached by ssh.
  static Result<RemoteHost> of(const launch::hosts::HostSpec& host, int sshPort,
                               const std::string& identityFile);

  const std::string& name() const { return host_.name; }
  // `ssh … host command`, with the options that the launcher uses.
  TimedCommand bare(const std::string& command) const;
  // `farandole run -H host:ranks -np ranks command`
  TimedCommand run(int ranks, const std::vector<std::string>& command) const;

 private:
  launch::hosts::HostSpec host_;
  launch::ssh::SshOptions ssh_;
};

// A file of numbered lines (launch_lines.h) below the host's /tmp, removed with this object.
class RemoteLines {
 public:
  static Result<std::unique_ptr<RemoteLines>> create(const RemoteHost& host, std::size_t lines);
  ~RemoteLines();
  RemoteLines(const RemoteLines&) = delete;
  RemoteLines& operator=(const RemoteLines&) = delete;

  const std::string& path() const { return path_; }

 private:
  RemoteLines(RemoteHost host, std::string path) : host_(std::move(host)), path_(std::move(path)) {}

  RemoteHost host_;
  std::string path_;
};

// Whether the text is a path as RemoteLines makes them: it goes into command lines.
bool isRemoteLinesPath(const std::string& text);

}  // namespace farandole::bench
