// Fuzzes the files that the example reads: images (IDX, plain or gzipped) and checkpoints. The
// first byte chooses.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "checkpoint.h"
#include "fuzz.h"
#include "idx.h"

namespace farandole::fuzz {
namespace {

// Nobody writes checkpoints into a fuzzer's file system.
std::string checkpointOf(const std::string& payload) {
  char name[] = "/tmp/farandole-fuzz-XXXXXX";
  require(::mkdtemp(name) != nullptr);
  const std::filesystem::path folder = name;
  fashion::writeCheckpoint(folder / "file", payload);
  UniqueFd file(::open((folder / "file").c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(payload.size() + 64, '\0');
  const ssize_t got = ::read(file.get(), bytes.data(), bytes.size());
  require(got > 0);
  bytes.resize(static_cast<std::size_t>(got));
  std::filesystem::remove_all(folder);
  return bytes;
}

bool runIdx(const std::string& path, std::size_t dimensions) {
  try {
    const fashion::IdxArray array = fashion::readIdx(path, dimensions);
    std::size_t total = 1;
    for (const std::size_t extent : array.dimensions) total *= extent;
    require(array.dimensions.size() == dimensions && array.values.size() == total);
    return true;
  } catch (const fashion::DataError& error) {
    requireOneLine(error.what());
    return false;
  }
}

bool runCheckpoint(const std::string& path, std::size_t size) {
  try {
    require(fashion::readCheckpoint(path).size() + 20 == size);
    return true;
  } catch (const fashion::CheckpointError& error) {
    requireOneLine(error.what());
    return false;
  }
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string labels("\0\0\x08\1\0\0\0\3\1\2\3", 11);
  const std::string images("\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2\1\2\3\4", 20);
  return {choose(1, labels), choose(3, images), choose(0, checkpointOf("weights")),
          choose(0, checkpointOf(""))};
}

bool run(std::string_view input) {
  if (input.empty()) return false;
  const int what = input.front() & 3;
  input.remove_prefix(1);
  UniqueFd file(::memfd_create("input", MFD_CLOEXEC));
  require(file &&
          ::write(file.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  return what == 0 ? runCheckpoint(path, input.size())
                   : runIdx(path, static_cast<std::size_t>(what));
}

}  // namespace farandole::fuzz
