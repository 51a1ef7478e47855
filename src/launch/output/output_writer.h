// OutputWriter: writes the launcher's output without ever making the launcher wait.
//
// A reader that stops (a pager, a terminal on hold) blocks only the writer's own thread. The
// launcher's main thread pushes text and asks how much is pending, so that it can stop reading from
// the ranks; the eventfd it gave is signalled when the backlog shrinks or a destination breaks, and
// when everything is written if it has asked for that.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace farandole::launch::output {

enum class Stream : int { kOut = 0, kErr = 1 };

class OutputWriter {
 public:
  // Stop feeding the writer above kHigh bytes; it wakes the feeder when it is below kLow again.
  static constexpr std::size_t kHigh = 4 << 20;
  static constexpr std::size_t kLow = 1 << 20;

  // wakeFd is an eventfd that must outlive the writer.
  explicit OutputWriter(int wakeFd);
  // Whatever a blocked reader has not taken is dropped: see idle().
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  // Texts are written whole and in this order, to descriptor 1 or 2. Text for a broken stream is
  // dropped. The thread is started by the first text that cannot be written without waiting: a
  // silent job needs none. Where the system gives none, the text is written here, and a reader that
  // takes nothing for a while counts as gone.
  void push(Stream stream, std::string text);
  std::size_t pending() const;
  bool idle() const { return pending() == 0; }
  // From now on the feeder is also woken when nothing is pending any more.
  void tellWhenIdle();
  // An empty string with room, if one has been written and can be used again: memory that is given
  // back and taken anew costs more than writing it.
  std::string spare();
  // The errno that ended the stream, or 0.
  int error(Stream stream) const;

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);
  void writeHere(Stream stream, const std::string& text);
  std::shared_ptr<Shared> shared_;  // outlives this object when the thread hangs in a write
  bool started_ = false;
};

}  // namespace farandole::launch::output
