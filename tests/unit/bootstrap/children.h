// Children: forked processes for tests of bootstrap. They are forked before the test starts any
// thread (a forked child of a threaded process could not start its own under ThreadSanitizer) and
// wait for a line, the agent's address, before they do anything.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"

namespace farandole::test {

inline constexpr char kSecret[] =
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
inline constexpr char kOtherSecret[] =
    "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
inline constexpr char kJob[] = "job-1";

class Children {
 public:
  // What a child does: an empty text, or what went wrong. Runs in the child.
  using Work = std::function<std::string(int index, const std::string& address)>;

  Children(int count, const Work& work);
  ~Children();  // kills those that still run
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void go(const std::string& address);
  pid_t pid(int index) const { return children_[static_cast<std::size_t>(index)].pid; }
  void kill(int index, int signal);
  // What each child returned: "" is success; a death or a child that is late is told as text.
  std::vector<std::string> results(Duration limit);

 private:
  struct Child {
    pid_t pid = -1;
    UniqueFd start;   // written by the parent
    UniqueFd result;  // read by the parent
  };
  std::vector<Child> children_;
};

// One line per failed child; empty if all succeeded.
std::string failures(const std::vector<std::string>& results);

int openDescriptors();

}  // namespace farandole::test
