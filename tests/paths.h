// Where the programs, libraries and files are that tests start and read. CMake writes the texts
// into a source of their own (paths.cc.in): no other object knows where the tree lies, so that in a
// second clone the compiler's cache has all others.
#pragma once

namespace farandole::test::paths {

extern const char kSource[];  // the repository
extern const char kCommand[];
extern const char kLibrary[];
extern const char kGlooEngine[];
extern const char kVenvs[];  // of tools/venv
extern const char kLabTool[];
// Programs of the tests.
extern const char kLabDelay[];
extern const char kLaunchActor[];
extern const char kRelayActor[];
extern const char kConformanceRank[];
extern const char kBatchesRank[];
extern const char kCoreRank[];

}  // namespace farandole::test::paths
