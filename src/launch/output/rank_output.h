// RankOutput: turns what one rank writes, in whatever pieces it arrives, into whole prefixed lines.
//
// Main thread only. Every byte of the rank's appears exactly once; added are the prefixes, a
// newline at the end of an unfinished last line, and line breaks every kLongestLine bytes. One
// exception: a progress bar rewrites its line with carriage returns and may not send a newline for
// hours, so a lone carriage return counts as the end of a line and becomes a newline (none for an
// empty line).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "launch/output/last_lines.h"
#include "launch/output/output_writer.h"

namespace farandole::launch::output {

struct OutputFormat {
  bool prefix = true;            // [0]<stdout>:
  bool tag = false;              // [1,0]<stdout>: as mpirun --tag-output writes it
  bool timestamp = false;        // before the prefix
  std::array<bool, 2> colour{};  // by stream
};

class RankOutput {
 public:
  static constexpr std::size_t kLongestLine = 64 << 10;

  RankOutput(int rank, const OutputFormat& format);

  // Also keeps everything, as it came, in folder/rank.N/stdout and stderr, which are created.
  // Symbolic links that another user may have prepared there are not followed.
  Status copyTo(const std::string& folder);
  // Why a part of it could not be kept, and where; 0: nothing is lost.
  int copyError() const { return copyError_; }
  const std::string& copyFolder() const { return copyFolder_; }

  // Appends to text the lines that data completes.
  void feed(Stream stream, std::string_view data, std::string& text);
  // The rank has ended: appends what is unfinished, completed with a newline.
  void finish(Stream stream, std::string& text);

  // The last lines of both streams, in the order in which they were completed.
  std::string lastLines(int count) const;

 private:
  struct Part {
    std::string prefix;
    std::string unfinished;
    UniqueFd file;
  };
  Part& part(Stream stream) { return parts_[static_cast<std::size_t>(stream)]; }
  // line may end with a newline.
  void addLine(Part& part, std::string_view line, std::string& text);
  // Adds as many whole plain lines as there are from begin on, without a carriage return before
  // end; their bytes.
  std::size_t addPlainLines(const Part& part, const char* begin, const char* end,
                            std::string& text);
  void addPiece(Part& part, std::string_view piece, std::string& text);
  void writeCopy(UniqueFd& file, std::string_view data);

  const int rank_;
  std::string copyFolder_;
  int copyError_ = 0;
  bool timestamp_;
  std::string time_;  // of the current feed
  // Only the last lines of a large piece can be among the rank's last lines.
  static constexpr int kMemorable = 64;
  bool memorable_ = true;
  std::array<Part, 2> parts_;
  LastLines tail_;
};

}  // namespace farandole::launch::output
