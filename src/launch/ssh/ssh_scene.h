// What is known about a failed ssh: from the options we gave and the lines the client printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/ssh/ssh_failure.h"

namespace farandole::launch::ssh {

// Words for commands (host, portOption, login) are safe to be typed into a shell: the lines may
// have been written by the other side.
struct Scene {
  std::string line;        // the one that shows the kind
  std::string name;        // the host as the user knows it
  std::string host;        // where ssh really went: ssh_config may lead elsewhere
  std::string port;        // "22" if nothing says another
  std::string at;          // "name (port 22)"
  std::string portOption;  // "-p 2222 ", or nothing for 22
  std::string login;       // user@host
  std::string key;         // -i; may be empty
  SshEnd end;
  const std::vector<std::string>& lines;
};

Scene makeScene(const std::string& line, const SshTarget& target, const SshOptions& options,
                SshEnd end, const std::vector<std::string>& lines);

// The lines that are not empty, with blanks for control characters, without trailing white space.
std::vector<std::string> cleanLines(std::string_view text);

// The first line with this text; empty if there is none.
std::string lineWith(std::string_view text, const std::vector<std::string>& lines);

// The text between two marks of a line (the last mark empty: up to the end); empty if it has not
// both.
std::string between(std::string_view line, std::string_view before, std::string_view after);

// The file with the key that is no longer right; empty if ssh did not say.
std::string knownHostsFile(const Scene& scene);

// A file as one word for a shell, which is to replace a ~ in it.
std::string fileWord(const std::string& path);

// What happened and what to type, for each kind of failure (ssh_advice.cc).
SshFailure advise(SshFailure::Kind kind, const Scene& scene);

}  // namespace farandole::launch::ssh
