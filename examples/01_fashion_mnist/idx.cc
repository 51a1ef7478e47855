#include "idx.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace fashion {
namespace {

// Headers may claim anything; no set of small images is larger.
constexpr std::size_t kLargestArray = std::size_t{1} << 31;
constexpr std::uint8_t kUnsignedByte = 0x08;

struct Close {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// zlib reads plain files, too.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    if (!std::filesystem::is_regular_file(path)) fail("no such file");
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) fail(errno != 0 ? std::strerror(errno) : "out of memory");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(path_.string() + ": " + what);
  }

  // Reads exactly that many bytes.
  void read(std::uint8_t* to, std::size_t bytes, const char* part) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 24;
    while (bytes > 0) {
      const int got = gzread(file_.get(), to, static_cast<unsigned>(std::min(bytes, kAtOnce)));
      if (got <= 0) fail(problem(part));
      to += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }

  void expectEnd() {
    std::uint8_t more = 0;
    const int got = gzread(file_.get(), &more, 1);
    if (got > 0) fail("longer than its header says");
    // The checksum behind the data is verified here.
    if (got < 0 || !gzeof(file_.get())) fail(problem("at its end"));
    int code = Z_OK;
    gzerror(file_.get(), &code);
    if (code != Z_OK) fail(problem("at its end"));
  }

 private:
  std::string problem(const char* part) const {
    int code = Z_OK;
    const char* const text = gzerror(file_.get(), &code);
    if (code == Z_OK || code == Z_BUF_ERROR) return std::string("truncated in ") + part;
    if (code == Z_ERRNO) return std::string("cannot be read: ") + std::strerror(errno);
    return std::string("damaged ") + part + " (" + text + ")";
  }

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

std::filesystem::path find(const std::filesystem::path& directory, const std::string& name) {
  const std::filesystem::path plain = directory / name;
  const std::filesystem::path zipped = directory / (name + ".gz");
  if (std::filesystem::exists(plain)) return plain;
  if (std::filesystem::exists(zipped)) return zipped;
  throw DataError(directory.string() + ": neither " + name + " nor " + name + ".gz is there");
}

}  // namespace

IdxArray readIdx(const std::filesystem::path& path, std::size_t dimensions) {
  Reader reader(path);
  std::uint8_t magic[4];
  reader.read(magic, sizeof(magic), "its header");
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] != dimensions) {
    reader.fail("not an IDX file of bytes with " + std::to_string(dimensions) + " dimension(s)");
  }
  IdxArray array;
  std::size_t total = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    std::uint8_t size[4];
    reader.read(size, sizeof(size), "its header");
    const std::size_t extent = (std::size_t{size[0]} << 24) | (std::size_t{size[1]} << 16) |
                               (std::size_t{size[2]} << 8) | std::size_t{size[3]};
    if (extent == 0) reader.fail("its header says that it is empty");
    if (extent > kLargestArray / total) reader.fail("its header says that it is impossibly large");
    total *= extent;
    array.dimensions.push_back(extent);
  }
  // Not at once: a damaged header must not cost more memory than there are data.
  constexpr std::size_t kStep = std::size_t{1} << 20;
  while (array.values.size() < total) {
    const std::size_t have = array.values.size();
    array.values.resize(std::min(total, have + kStep));
    reader.read(array.values.data() + have, array.values.size() - have, "its data");
  }
  reader.expectEnd();
  return array;
}

ImageSet loadImages(const std::filesystem::path& directory, Split split, std::size_t limit) {
  if (!std::filesystem::is_directory(directory)) {
    throw DataError(directory.string() +
                    ": no such directory (Debian: apt install dataset-fashion-mnist, or --data)");
  }
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::filesystem::path imagePath = find(directory, prefix + "-images-idx3-ubyte");
  const std::filesystem::path labelPath = find(directory, prefix + "-labels-idx1-ubyte");
  IdxArray images = readIdx(imagePath, 3);
  IdxArray labels = readIdx(labelPath, 1);
  if (images.dimensions[0] != labels.dimensions[0]) {
    throw DataError(labelPath.string() + ": " + std::to_string(labels.dimensions[0]) +
                    " labels for " + std::to_string(images.dimensions[0]) + " images");
  }
  ImageSet set;
  set.count = images.dimensions[0];
  set.rows = images.dimensions[1];
  set.columns = images.dimensions[2];
  set.classes = std::size_t{*std::max_element(labels.values.begin(), labels.values.end())} + 1;
  set.pixels = std::move(images.values);
  set.labels = std::move(labels.values);
  if (limit > 0 && limit < set.count) {
    set.count = limit;
    set.pixels.resize(limit * set.rows * set.columns);
    set.labels.resize(limit);
  }
  return set;
}

}  // namespace fashion
