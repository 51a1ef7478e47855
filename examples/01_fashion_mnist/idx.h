// Reading image sets in MNIST's format (IDX), plain or gzipped, checked byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace fashion {

// One line for a person: which file, and what is wrong with it.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An array of bytes with its dimensions.
struct IdxArray {
  std::vector<std::size_t> dimensions;
  std::vector<std::uint8_t> values;
};

// Throws DataError if the file is missing, truncated, longer than its header says, damaged, or not
// an IDX file of unsigned bytes with this many dimensions.
IdxArray readIdx(const std::filesystem::path& path, std::size_t dimensions);

struct ImageSet {
  std::size_t count = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t classes = 0;           // the highest label + 1
  std::vector<std::uint8_t> pixels;  // count × rows × columns
  std::vector<std::uint8_t> labels;  // count
};

enum class Split { kTrain, kTest };

// Reads train-… or t10k-… from the directory, each file plain or with .gz. limit 0: all; otherwise
// only the first `limit` images are kept. Throws DataError.
ImageSet loadImages(const std::filesystem::path& directory, Split split, std::size_t limit = 0);

}  // namespace fashion
