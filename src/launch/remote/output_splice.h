// OutputSplice: hands what lies in a rank's pipe on to ssh's pipe without a copy: the kernel moves
// the pages. A frame's head is written, which says how many bytes follow, and then these bytes are
// moved as the pipe has room for them; nothing else may be written to it meanwhile.
//
// Main thread of the agent only. Nothing here waits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace farandole::launch::remote {

class OutputSplice {
 public:
  // Finds out whether `to` is a pipe, and gives it room. Without a pipe nothing is ever begun.
  void open(int to);
  bool possible() const { return to_ >= 0; }
  // Whether the pipe is so large that, once full, it is not empty again in a moment.
  bool roomy() const { return roomy_; }

  // How many bytes of `from` are worth it, at most `most`; 0: none.
  std::size_t worth(int from, std::size_t most) const;
  // Writes the head, if there is room for it now, and owes so many bytes.
  enum class Begun { kYes, kNoRoom, kBroken };
  Begun begin(int from, std::string_view head, std::size_t bytes);
  bool busy() const { return owed_ > 0; }
  // Moves what there is room for now. False if the pipe is broken.
  bool advance();
  // What is still owed, read after all: it is to be written before anything else.
  std::string recall();

 private:
  int to_ = -1;
  bool roomy_ = false;
  int from_ = -1;
  std::size_t owed_ = 0;
};

}  // namespace farandole::launch::remote
