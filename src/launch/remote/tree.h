// The tree: the files of this installation that another machine needs to run its part of a job.
//
// It is relocatable: bin/ finds lib/ beside it. Two trees with the same id were built the same: the
// id is made of the linker's build ids of whole programs and libraries and of the bytes of all
// else.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace farandole::launch::remote {

struct TreeFile {
  std::string name;  // in the tree, such as "bin/farandole"
  std::string path;  // where it lies here
  std::string link;  // not empty: a symbolic link to this name
};

struct Tree {
  std::string id;  // hexadecimal
  std::vector<TreeFile> files;
  // Where the command lies here; a shared file system may show the same file to other machines.
  std::string command;
};

// The tree that this process was started from.
Result<Tree> ownTree();
// Its id, "" if it cannot be found out.
std::string treeId();

// In the archive: "farandole ID", and for each other file a line "file SHA256 NAME" or "link TARGET
// NAME".
inline constexpr char kManifest[] = "manifest";

// SHA-256, hexadecimal.
Result<std::string> digestOf(const std::string& path);

// How large archive() will be.
Result<std::size_t> archiveBytes(const Tree& tree);
// The tree with its manifest as a tar archive, for /usr/bin/tar of any kind.
Result<std::string> archive(const Tree& tree);

}  // namespace farandole::launch::remote
