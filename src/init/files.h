// Files of the set-up: written whole or not at all, with the right mode and owner.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/status.h"

namespace farandole::init {

// Who shall own what is written. Applied only by root; others cannot give files away.
struct Owner {
  uid_t uid;
  gid_t gid;
};

struct Placement {
  mode_t mode;
  std::optional<Owner> owner;
};

// The content, nothing if the file does not exist, or an error (also for more than 1 MiB).
Result<std::optional<std::string>> readFile(const std::string& path);

// Writes a temporary file beside it and renames: a reader sees the old content or the new.
Status writeFile(const std::string& path, const std::string& content, const Placement& place);

// Makes the folder if it is absent (its parent must exist). True if it was made.
Result<bool> makeFolder(const std::string& path, const Placement& place);

// Gives an existing file or folder the mode and owner it should have. True if it had others.
Result<bool> correct(const std::string& path, const Placement& place);

// The absolute path of a folder that may not exist yet, without links, "." and "..".
Result<std::string> absoluteFolder(const std::string& path);

// A folder of its own inside another, removed with its files at the end.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> in(const std::string& parent);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace farandole::init
