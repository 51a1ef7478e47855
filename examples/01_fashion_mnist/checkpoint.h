// Checkpoint files that are either whole or not there: a header with length and checksum, written
// beside the old file, synced, and moved over it.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace fashion {

// One line for a person: which file, and what is wrong with it.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A kill or power cut at any moment leaves either the old file or the new one under this name; what
// is left of an unfinished one ("….tmp") is overwritten by the next. One writer at a time. Throws
// CheckpointError.
void writeCheckpoint(const std::filesystem::path& path, const std::string& payload);

// Throws CheckpointError if it is missing, not a checkpoint, truncated, or has a wrong checksum.
std::string readCheckpoint(const std::filesystem::path& path);

}  // namespace fashion
