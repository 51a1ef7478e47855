// The control groups that this process is in, as /proc and the usual mounts show them. Any thread.
#pragma once

#include <string>
#include <vector>

namespace farandole::process {

struct OwnCgroup {
  std::string controller;  // "pids" or "name=systemd" in version 1, "" in version 2
  std::string mount;       // /sys/fs/cgroup, /sys/fs/cgroup/unified, /sys/fs/cgroup/pids
  std::string path;        // below it: "/", "/user.slice"
  std::string folder() const { return path == "/" ? mount : mount + path; }
};

// Where they should be: whether the folder exists, and whether it may be written, is not looked at.
// Those that lie outside of what we can see are left out.
std::vector<OwnCgroup> ownCgroups();

}  // namespace farandole::process
