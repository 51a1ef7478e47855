// The lines that chatty ranks write in `farandole bench launch`, and whether all of them arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::bench {

inline constexpr std::size_t kLineBytes = 100;  // with its end

// "0000000007hijk…0000000007" and a line end: the number at both ends and letters that depend on
// it between, so that no line can be put together from pieces of others.
std::string lineOf(std::size_t number);
// How many whole lines fit into these bytes; at least one.
std::size_t linesIn(std::size_t bytes);
// Lines 0, 1, …, in pieces of 8 KiB as buffered streams of C and Python write them: most pieces end
// within a line.
Status writeLines(int fd, std::size_t lines);

struct LineCount {
  std::size_t whole = 0;
  std::size_t torn = 0;  // anything that is not a line as it was written
  std::size_t lost = 0;
  std::size_t repeated = 0;
  std::size_t disordered = 0;  // not after its predecessor of the same rank

  bool allRight() const { return torn + lost + repeated + disordered == 0; }
  LineCount& operator+=(const LineCount& other);
  std::string text() const;  // "all 1310720 whole", or "1310000 whole, 12 torn, 720 lost"
};

// Looks at the merged output of `ranks` ranks that wrote lines 0 … lines-1 each, piece by piece.
// Lines may have the launcher's prefix [rank]<stdout>: and then their order is looked at, too.
class LineCheck {
 public:
  LineCheck(int ranks, std::size_t lines)
      : ranks_(ranks), seen_(lines, 0), next_(static_cast<std::size_t>(ranks), 0) {}

  void take(std::string_view piece);
  // After the last piece.
  LineCount finish();

 private:
  void look(std::string_view line);

  int ranks_;
  std::string begun_;                // a line whose end has not come yet
  std::vector<std::uint16_t> seen_;  // how often, by number
  std::vector<std::size_t> next_;    // expected, by rank
  LineCount count_;
};

}  // namespace farandole::bench
