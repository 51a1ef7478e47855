// Console: the launcher's own stdout and stderr, as one place where whole lines are put.
//
// Used by the main thread only. Texts of one stream keep their order; when both streams lead to the
// same file or terminal they share one writer, so that no line is torn by the other stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "launch/output/output_writer.h"

namespace farandole::launch::output {

class Console {
 public:
  static Result<Console> open();

  void write(Stream stream, std::string text);
  // "farandole: text", on stderr.
  void message(std::string_view text);

  // A line that stays below everything else, on a terminal; "": none. Nothing happens elsewhere.
  void setStatus(const std::string& text);

  // An empty text with room for many lines, if there is one to be used again.
  std::string spare(Stream stream) { return writer(stream).spare(); }

  // Readable when congested() or error() may have changed, and idle() if tellWhenIdle() was called;
  // acknowledge() resets it.
  int eventFd() const { return event_.get(); }
  void acknowledge();
  // Whether so much is waiting for our reader that the ranks should be made to wait too.
  bool congested() const;
  bool idle() const;
  void tellWhenIdle();
  // The errno that ended a stream (EPIPE: its reader has gone), or 0.
  int error(Stream stream) const { return writer(stream).error(stream); }

 private:
  Console(UniqueFd event, bool shared);
  OutputWriter& writer(Stream stream) const;
  // Whether what is written there appears where the status line is.
  bool sharesTerminal(Stream stream) const { return stream == Stream::kErr || !err_; }

  UniqueFd event_;  // outlives the writers, which signal it
  std::unique_ptr<OutputWriter> out_;
  std::unique_ptr<OutputWriter> err_;  // empty: shares out_
  bool terminal_ = false;              // stderr is one that can erase a line
  std::string status_;                 // as it is shown now
};

// Whether colours are welcome on that stream: a terminal that can, and no NO_COLOR.
bool wantsColour(Stream stream);

}  // namespace farandole::launch::output
