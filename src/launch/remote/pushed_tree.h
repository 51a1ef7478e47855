// The pushed tree: a copy of the tree (tree.h) in a user's cache folder on another machine, and
// what its own command does for it there. Nothing here waits.
//
//   CACHE/farandole/ID/          the files of the archive
//                      manifest  among them: the SHA-256 of each of the others
//                      state     written when all of them were right: sizes, times and modes. Its
//                      own
//                                time is that of the last use; agents hold a lock on it.
//
// Digests are compared once, when the tree has been copied. A start compares what lstat tells of
// the files with the state, which takes a millisecond where digests would read many megabytes from
// a file system that may be shared by hundreds of machines. A file that was cut off, replaced,
// edited or lost is found that way; bits that a disk has turned are not.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace farandole::launch::remote {

// The tree at root is as it was copied, and nobody else may write it. Counts as a use.
Status checkPushedTree(const std::string& root, const std::string& id);

// The tree at root has just been unpacked beside its place, CACHE/farandole/ID: compares all
// digests and moves it there, instead of a damaged one. If another launcher has been faster, its
// tree stays. Trees that nobody uses any more are removed.
Status adoptPushedTree(const std::string& root, const std::string& id);

// As long as the descriptor is open, the tree at root is not removed. Not open if that is no pushed
// tree.
UniqueFd holdPushedTree(const std::string& root);

}  // namespace farandole::launch::remote
