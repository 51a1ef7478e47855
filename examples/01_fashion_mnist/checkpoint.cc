#include "checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace fashion {
namespace {

constexpr char kMagic[8] = {'F', 'R', 'N', 'D', 'C', 'K', 'P', '1'};
constexpr std::uint64_t kLargestPayload = std::uint64_t{1} << 40;
constexpr std::size_t kHeaderBytes = sizeof(kMagic) + 8 + 4;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw CheckpointError("checkpoint " + path.string() + ": " + what);
}
[[noreturn]] void failErrno(const std::filesystem::path& path, const char* what) {
  fail(path, std::string(what) + ": " + std::strerror(errno));
}

class File {
 public:
  File(const std::filesystem::path& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) failErrno(path, "cannot be opened");
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const char* data, std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t done = ::write(fd_, data, bytes);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) failErrno(path_, "cannot be written");
      data += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }
  // False at the end of the file.
  bool read(char* data, std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t done = ::read(fd_, data, bytes);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) failErrno(path_, "cannot be read");
      if (done == 0) return false;
      data += done;
      bytes -= static_cast<std::size_t>(done);
    }
    return true;
  }
  void sync() {
    if (::fsync(fd_) != 0) failErrno(path_, "cannot be synced");
  }
  std::uint64_t size() {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) failErrno(path_, "cannot be examined");
    if (!S_ISREG(status.st_mode)) fail(path_, "not a file");
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  std::filesystem::path path_;
  int fd_;
};

// The length is part of the sum, so that a damaged header is found, too.
std::uint32_t checksum(std::uint64_t length, const std::string& payload) {
  uLong sum = ::crc32(0, reinterpret_cast<const Bytef*>(&length), sizeof(length));
  for (std::size_t at = 0; at < payload.size();) {
    const std::size_t part = std::min(payload.size() - at, std::size_t{1} << 30);
    sum =
        ::crc32(sum, reinterpret_cast<const Bytef*>(payload.data() + at), static_cast<uInt>(part));
    at += part;
  }
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

// Layout, little-endian as the machine: magic (8), length (8), checksum (4), payload.
void writeCheckpoint(const std::filesystem::path& path, const std::string& payload) {
  std::array<char, kHeaderBytes> header{};
  const std::uint64_t length = payload.size();
  const std::uint32_t sum = checksum(length, payload);
  std::memcpy(header.data(), kMagic, sizeof(kMagic));
  std::memcpy(header.data() + 8, &length, sizeof(length));
  std::memcpy(header.data() + 16, &sum, sizeof(sum));

  std::filesystem::path unfinished = path;
  unfinished += ".tmp";
  {
    File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(header.data(), header.size());
    file.write(payload.data(), payload.size());
    // Before the rename: or a power cut could keep the new name and lose the data.
    file.sync();
  }
  if (::rename(unfinished.c_str(), path.c_str()) != 0) failErrno(path, "cannot be put in place");
  const std::filesystem::path parent = path.parent_path();
  File(parent.empty() ? std::filesystem::path(".") : parent, O_RDONLY | O_DIRECTORY).sync();
}

std::string readCheckpoint(const std::filesystem::path& path) {
  File file(path, O_RDONLY);
  std::array<char, kHeaderBytes> header{};
  if (!file.read(header.data(), header.size())) fail(path, "truncated: not even a header");
  if (std::memcmp(header.data(), kMagic, sizeof(kMagic)) != 0) fail(path, "not a checkpoint");
  std::uint64_t length = 0;
  std::uint32_t sum = 0;
  std::memcpy(&length, header.data() + 8, sizeof(length));
  std::memcpy(&sum, header.data() + 16, sizeof(sum));
  const std::uint64_t size = file.size();
  if (length > kLargestPayload || size != kHeaderBytes + length) {
    fail(path, "damaged: " + std::to_string(size) + " bytes, but its header says " +
                   std::to_string(kHeaderBytes) + " + " + std::to_string(length));
  }
  std::string payload(static_cast<std::size_t>(length), '\0');
  if (!file.read(payload.data(), payload.size())) fail(path, "truncated");
  if (checksum(length, payload) != sum) fail(path, "damaged: wrong checksum");
  return payload;
}

}  // namespace fashion
