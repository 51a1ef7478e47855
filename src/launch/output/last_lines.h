// LastLines: the end of a stream of lines, in bounded memory. No locking of its own.
#pragma once

#include <string>
#include <string_view>

namespace farandole::launch::output {

class LastLines {
 public:
  // One line, with or without its newline; the middle of a very long one is not kept.
  void add(std::string_view line);
  // At most count lines, each with a newline.
  std::string get(int count) const;

 private:
  std::string text_;
};

}  // namespace farandole::launch::output
