#include "bench/launch_lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace farandole::bench {
namespace {

constexpr std::size_t kBody = kLineBytes - 1;
constexpr std::size_t kDigits = 10;
constexpr std::size_t kLetters = kBody - 2 * kDigits;
constexpr std::size_t kAlphabet = 26;
constexpr std::size_t kPiece = 8192;
constexpr std::string_view kAfterRank = "]<stdout>:";
// A prefix and a line are shorter; what is longer is no line, and need not be kept.
constexpr std::size_t kLongest = 1024;

// The alphabet over and over; a line's letters begin at its number.
const std::string& letters() {
  static const std::string text = [] {
    std::string made(kLetters + kAlphabet, ' ');
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>('a' + i % kAlphabet);
    return made;
  }();
  return text;
}

// False unless the text is all digits.
bool readNumber(std::string_view text, std::size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool isLine(std::string_view body, std::size_t& number) {
  if (body.size() != kBody || !readNumber(body.substr(0, kDigits), number)) return false;
  return body.substr(0, kDigits) == body.substr(kBody - kDigits) &&
         std::memcmp(body.data() + kDigits, letters().data() + number % kAlphabet, kLetters) == 0;
}

Status writeAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::fromErrno("cannot write lines", errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

// Formats by hand: a writer that formats slowly would be what is measured.
void putLine(char* at, std::size_t number) {
  std::memcpy(at + kDigits, letters().data() + number % kAlphabet, kLetters);
  std::size_t rest = number;
  for (std::size_t i = kDigits; i-- > 0; rest /= 10) at[i] = static_cast<char>('0' + rest % 10);
  std::memcpy(at + kBody - kDigits, at, kDigits);
  at[kBody] = '\n';
}

}  // namespace

std::string lineOf(std::size_t number) {
  std::string line(kLineBytes, ' ');
  putLine(line.data(), number);
  return line;
}

std::size_t linesIn(std::size_t bytes) { return std::max<std::size_t>(1, bytes / kLineBytes); }

Status writeLines(int fd, std::size_t lines) {
  char piece[kPiece + kLineBytes];
  std::size_t filled = 0;
  for (std::size_t number = 0; number < lines; ++number) {
    putLine(piece + filled, number);
    filled += kLineBytes;
    if (filled < kPiece) continue;
    FARANDOLE_RETURN_IF_ERROR(writeAll(fd, {piece, kPiece}));
    filled -= kPiece;
    std::memcpy(piece, piece + kPiece, filled);
  }
  return writeAll(fd, {piece, filled});
}

LineCount& LineCount::operator+=(const LineCount& other) {
  whole += other.whole;
  torn += other.torn;
  lost += other.lost;
  repeated += other.repeated;
  disordered += other.disordered;
  return *this;
}

std::string LineCount::text() const {
  if (allRight()) return fmt::format("all {} whole", whole);
  std::string text = fmt::format("{} whole", whole);
  const auto add = [&text](std::size_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(torn, "torn");
  add(lost, "lost");
  add(repeated, "repeated");
  add(disordered, "out of order");
  return text;
}

void LineCheck::take(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      begun_.append(piece.substr(0, kLongest - std::min(kLongest, begun_.size())));
      return;
    }
    if (begun_.empty()) {
      look(piece.substr(0, end));
    } else {
      begun_.append(piece.substr(0, std::min(end, kLongest)));
      look(begun_);
      begun_.clear();
    }
    piece.remove_prefix(end + 1);
  }
}

void LineCheck::look(std::string_view line) {
  std::size_t rank = next_.size();
  if (line.starts_with('[')) {
    const std::size_t end = line.find(kAfterRank);
    if (end == std::string_view::npos || !readNumber(line.substr(1, end - 1), rank) ||
        rank >= next_.size()) {
      ++count_.torn;
      return;
    }
    line.remove_prefix(end + kAfterRank.size());
  }
  std::size_t number = 0;
  if (!isLine(line, number) || number >= seen_.size()) {
    ++count_.torn;
    return;
  }
  if (rank < next_.size()) {
    if (number != next_[rank]) ++count_.disordered;
    next_[rank] = number + 1;
  }
  if (seen_[number] == ranks_) {
    ++count_.repeated;
    return;
  }
  ++seen_[number];
  ++count_.whole;
}

LineCount LineCheck::finish() {
  if (!begun_.empty()) ++count_.torn;
  begun_.clear();
  count_.lost = seen_.size() * static_cast<std::size_t>(ranks_) - count_.whole;
  return count_;
}

}  // namespace farandole::bench
