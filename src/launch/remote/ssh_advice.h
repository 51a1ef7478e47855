// The sentences of ssh_failure: what happened and what to type, for each kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/remote/ssh_failure.h"

namespace farandole::ssh_advice {

struct Case {
  const SshTarget& target;
  const SshOptions& options;
  SshEnd end;
  const std::vector<std::string_view>& lines;  // of the client's stderr
};

// line: the one that told the kind; becomes the evidence, without control characters.
SshFailure advise(SshFailure::Kind kind, std::string_view line, const Case& what);

// The lines that are not empty, without trailing white space.
std::vector<std::string_view> cleanLines(std::string_view text);

// As one word for a shell; unchanged when it needs no quotes.
std::string shellWord(const std::string& word);

}  // namespace farandole::ssh_advice
