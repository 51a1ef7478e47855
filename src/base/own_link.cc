#include "base/own_link.h"

#include <sys/stat.h>
#include <unistd.h>

namespace farandole {

bool isOwnLink(const std::string& path) {
  const auto trusted = [](const struct stat& about) {
    return about.st_uid == ::geteuid() || about.st_uid == 0;
  };
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0 || !S_ISLNK(about.st_mode) || !trusted(about))
    return false;
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::stat(folder.c_str(), &about) != 0 || !trusted(about)) return false;
  return (about.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (about.st_mode & S_ISVTX) != 0;
}

}  // namespace farandole
