#include "launch/output/rank_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/files.h"

namespace farandole::launch::output {
namespace {

std::string makePrefix(int rank, Stream stream, const OutputFormat& format) {
  if (!format.prefix && !format.tag) return {};
  std::string prefix = format.tag ? "[1," : "[";
  prefix += std::to_string(rank) + (stream == Stream::kOut ? "]<stdout>:" : "]<stderr>:");
  if (!format.colour[static_cast<std::size_t>(stream)]) return prefix;
  // Cyan, green, yellow, magenta, blue: legible on dark and light; red is left for errors.
  constexpr int kColours[] = {36, 32, 33, 35, 34};
  return "\033[" + std::to_string(kColours[rank % 5]) + "m" + prefix + "\033[0m";
}

std::string currentTime() {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  ::localtime_r(&now, &fields);
  char text[64];
  return std::string(text, std::strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &fields));
}

// Where the last `count` lines of data begin.
const char* lastLinesOf(std::string_view data, int count) {
  std::size_t end = data.size();
  for (; count >= 0 && end > 0; --count) {
    const auto newline = data.rfind('\n', end - 1);
    if (newline == std::string_view::npos) return data.data();
    if (count == 0) return data.data() + newline + 1;
    end = newline;
  }
  return data.data();
}

const char* barOr(const char* begin, const char* end) {
  const void* bar = std::memchr(begin, '\r', static_cast<std::size_t>(end - begin));
  return bar != nullptr ? static_cast<const char*>(bar) : end;
}

// Made if it is missing; a link to one only if it is our own.
Result<UniqueFd> openFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return Status::fromErrno("cannot create the folder '" + path + "'", errno);
  }
  const int links = isOwnLink(path) ? 0 : O_NOFOLLOW;
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | links));
  if (folder) return folder;
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) {
    return Status::invalid("'" + path +
                           "' is a symbolic link that somebody else may have prepared: remove it, "
                           "or name another folder with --output-filename");
  }
  return Status::fromErrno("cannot open the folder '" + path + "'", errno);
}

}  // namespace

RankOutput::RankOutput(int rank, const OutputFormat& format)
    : rank_(rank), timestamp_(format.timestamp) {
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    part(stream).prefix = makePrefix(rank, stream, format);
  }
}

Status RankOutput::copyTo(const std::string& folder) {
  const std::string own = folder + "/rank." + std::to_string(rank_);
  if (auto made = openFolder(folder); !made.ok()) return made.status();
  auto place = openFolder(own);
  if (!place.ok()) return place.status();
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    const char* name = stream == Stream::kOut ? "stdout" : "stderr";
    // A new file, never that of another user: what had the name before may be a link to anything.
    ::unlinkat(place->get(), name, 0);
    UniqueFd file(
        ::openat(place->get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file) return Status::fromErrno("cannot write '" + own + "/" + name + "'", errno);
    part(stream).file = std::move(file);
  }
  copyFolder_ = own;
  return {};
}

// Regular files: these writes wait for no reader. A full disk loses the copy, not the job.
void RankOutput::writeCopy(UniqueFd& file, std::string_view data) {
  while (file && !data.empty()) {
    const ssize_t n = ::write(file.get(), data.data(), data.size());
    if (n >= 0) {
      data.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      copyError_ = errno;
      file.reset();
    }
  }
}

void RankOutput::feed(Stream stream, std::string_view data, std::string& text) {
  Part& to = part(stream);
  writeCopy(to.file, data);
  if (timestamp_) time_ = currentTime();
  const char* memorable = lastLinesOf(data, kMemorable);
  const char* plain = data.data();  // up to here, or to the first carriage return before memorable
  while (!data.empty()) {
    if (to.unfinished.empty() && data.data() < memorable) {
      if (plain <= data.data()) plain = barOr(data.data(), memorable);
      data.remove_prefix(addPlainLines(to, data.data(), plain, text));
    }
    const auto newline = data.find('\n');
    if (newline == std::string_view::npos) break;
    const std::string_view line = data.substr(0, newline + 1);
    memorable_ = line.data() >= memorable;
    if (to.unfinished.empty()) {
      addLine(to, line, text);
    } else {
      to.unfinished += line;
      addLine(to, to.unfinished, text);
      to.unfinished.clear();
    }
    data.remove_prefix(newline + 1);
  }
  memorable_ = true;
  // What can be said already although the line is not finished. A carriage return in last place may
  // still become "\r\n", so the place before the new data is looked at again.
  const std::size_t before = to.unfinished.size();
  to.unfinished += data;
  const std::string_view rest = to.unfinished;
  const std::size_t from = before == 0 ? 0 : before - 1;
  const std::size_t until = rest.empty() ? 0 : rest.size() - 1;
  const void* found = from < until ? ::memrchr(rest.data() + from, '\r', until - from) : nullptr;
  std::size_t done = 0;
  if (found != nullptr) {
    done = static_cast<std::size_t>(static_cast<const char*>(found) - rest.data()) + 1;
  }
  while (rest.size() - done > kLongestLine) done += kLongestLine;
  if (done > 0) {
    addLine(to, rest.substr(0, done), text);
    to.unfinished.erase(0, done);
  }
}

// By far the most of all output is lines without a carriage return, none of them very long and none
// remembered: prefix and line, millions of times. They are gathered in a block that stays in the
// processor's nearest memory.
std::size_t RankOutput::addPlainLines(const Part& to, const char* begin, const char* end,
                                      std::string& text) {
  constexpr std::size_t kBlock = std::size_t{16} << 10;
  constexpr std::size_t kPlain = std::size_t{4} << 10;  // the longest line that counts as plain
  const std::string before = timestamp_ ? time_ + to.prefix : to.prefix;
  const std::size_t prefix = before.size();
  if (prefix > kBlock - kPlain) return 0;
  const char* at = begin;
  char block[kBlock];
  std::size_t filled = 0;
  while (at < end) {
    const auto room = std::min(kPlain, static_cast<std::size_t>(end - at));
    const auto* newline = static_cast<const char*>(std::memchr(at, '\n', room));
    if (newline == nullptr) break;
    const auto length = static_cast<std::size_t>(newline - at) + 1;
    if (filled + prefix + length > kBlock) {
      text.append(block, filled);
      filled = 0;
    }
    std::memcpy(block + filled, before.data(), prefix);
    std::memcpy(block + filled + prefix, at, length);
    filled += prefix + length;
    at += length;
  }
  text.append(block, filled);
  return static_cast<std::size_t>(at - begin);
}

void RankOutput::finish(Stream stream, std::string& text) {
  Part& to = part(stream);
  if (timestamp_) time_ = currentTime();
  if (!to.unfinished.empty()) addLine(to, to.unfinished, text);
  to.unfinished.clear();
  // Some file systems tell only now that there was no room.
  if (to.file && ::close(to.file.release()) != 0 && errno != EINTR) copyError_ = errno;
}

void RankOutput::addLine(Part& to, std::string_view line, std::string& text) {
  while (!line.empty()) {
    const auto* bar = static_cast<const char*>(std::memchr(line.data(), '\r', line.size()));
    std::size_t length = line.size();  // of this piece's text, without what ends it
    std::size_t end = 0;               // length of what ends it
    if (bar != nullptr) length = static_cast<std::size_t>(bar - line.data());
    const bool lone = bar != nullptr && (length + 1 == line.size() || line[length + 1] != '\n');
    if (lone) {
      end = 1;
    } else if (line.back() == '\n') {
      length = line.size() - 1;
      end = 1;
    }
    const std::string_view next = line.substr(length + end);
    while (length > kLongestLine) {
      addPiece(to, line.substr(0, kLongestLine), text);
      line.remove_prefix(kLongestLine);
      length -= kLongestLine;
    }
    if (length > 0 || !lone) addPiece(to, line.substr(0, length), text);
    line = next;
  }
}

void RankOutput::addPiece(Part& to, std::string_view piece, std::string& text) {
  if (timestamp_) text += time_;
  text += to.prefix;
  text += piece;
  text += '\n';
  if (memorable_) tail_.add(piece);
}

std::string RankOutput::lastLines(int count) const {
  LastLines all = tail_;
  for (const Part& to : parts_) {
    if (!to.unfinished.empty()) all.add(to.unfinished);
  }
  return all.get(count);
}

}  // namespace farandole::launch::output
