// The copy of Farandole on another machine: who may have written it, whether it is whole, and what
// becomes of old ones. The ssh client is a script that runs the remote command here.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uid_t kSomebody = 12002;

class LaunchTree : public ::testing::Test {
 protected:
  void SetUp() override {
    // ssh's words: options, "--", host, command. Programs in tools/ come first there.
    folder_.write("ssh",
                  "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nPATH=" +
                      folder_.path() + "/tools:$PATH exec sh -c \"$1\"\n",
                  /*executable=*/true);
    cache_ = folder_.path() + "/cache";
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);  // everybody may enter
    ASSERT_EQ(::mkdir(cache_.c_str(), 0700), 0);
    ASSERT_EQ(::mkdir((folder_.path() + "/tools").c_str(), 0700), 0);
    options_.env = {"FARANDOLE_SSH=" + folder_.path() + "/ssh", "HOME=" + folder_.path(),
                    "XDG_CACHE_HOME=" + cache_};
    options_.patience = std::chrono::seconds(110);  // with a sanitizer the tree has hundreds of MB
  }

  Outcome run(const std::vector<std::string>& more,
              const std::vector<std::string>& job = {"true"}) {
    std::vector<std::string> words{"run", "-H", "elsewhere.invalid:1"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), job.begin(), job.end());
    Command command(words, options_);
    return command.finish();
  }
  std::string id() const {
    std::string text = runCommand({"agent", "--id"}).out;
    return text.substr(0, text.find('\n'));
  }
  // Something that runs if it is executed at all.
  void plant(const std::string& path) const {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << "#!/bin/sh\ntouch " << folder_.path() << "/planted-ran\n";
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                              fs::perms::others_read | fs::perms::others_exec);
  }
  bool plantedRan() const { return fs::exists(folder_.path() + "/planted-ran"); }
  // With all that is in it; only root can give files away.
  static void give(const std::string& path, uid_t user) {
    ASSERT_EQ(::lchown(path.c_str(), user, user), 0);
    if (!fs::is_directory(path)) return;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      ASSERT_EQ(::lchown(entry.path().c_str(), user, user), 0);
    }
  }
  static void age(const std::string& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  TemporaryFolder folder_;
  std::string cache_;
  Command::Options options_;
};

TEST_F(LaunchTree, WhatAnotherUserHasPlantedIsRefusedByItsOwnersName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const std::string ours = cache_ + "/farandole";
  plant(ours + "/" + id() + "/bin/farandole");
  // All of the cache, the tree in a cache of our own, and its command alone.
  for (const std::string& theirs :
       {ours, ours + "/" + id(), ours + "/" + id() + "/bin/farandole"}) {
    give(theirs, kSomebody);
    const Outcome outcome = run({"--push"});
    EXPECT_NE(outcome.code, 0);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("host elsewhere.invalid: "),
                      HasSubstr(theirs + " belongs to user 12002"), HasSubstr("XDG_CACHE_HOME")));
    EXPECT_EQ(linesOf(outcome.err).size(), 1U) << outcome.err;
    // There is one here that may be executed.
    EXPECT_EQ(run({"-q"}).code, 0);
    EXPECT_FALSE(plantedRan());
    give(theirs, 0);
  }
}

TEST_F(LaunchTree, CacheThatOthersMayWriteIsRefused) {
  plant(cache_ + "/farandole/" + id() + "/bin/farandole");
  ASSERT_EQ(::chmod(cache_.c_str(), 0770), 0);
  const Outcome outcome = run({"--push"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err,
              HasSubstr(cache_ + " can be written by others: chmod go-w " + cache_ + "\n"));
  EXPECT_FALSE(plantedRan());
}

TEST_F(LaunchTree, OwnFolderIsClosedAndNobodyReachesBehindAClosedOne) {
  // As a release before this one made it under umask 0.
  ASSERT_EQ(::mkdir((cache_ + "/farandole").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((cache_ + "/farandole").c_str(), 0777), 0);
  ASSERT_EQ(::chmod(cache_.c_str(), 0755), 0);
  EXPECT_EQ(run({"--push"}).code, 0);
  struct stat about {};
  ASSERT_EQ(::stat((cache_ + "/farandole").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0022, 0u);
  // A group that may write to ~/.cache but not enter ~ does no harm.
  ASSERT_EQ(::chmod(cache_.c_str(), 0775), 0);
  EXPECT_NE(run({"--push"}).code, 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0700), 0);
  EXPECT_EQ(run({"--push"}).code, 0);
}

TEST_F(LaunchTree, LaunchersOwnPathElsewhereMayBeAnybodys) {
  const std::string bin = folder_.path() + "/shared/bin";
  fs::create_directories(bin);
  fs::copy_file(test::paths::kCommand, bin + "/farandole");
  options_.program = bin + "/farandole";
  EXPECT_EQ(run({"-q", "--no-push"}).code, 0);
  ASSERT_EQ(::chmod((folder_.path() + "/shared").c_str(), 0777), 0);
  const Outcome refused = run({"--no-push"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("/shared can be written by others: chmod go-w"));
  // There is another place for it.
  const Outcome pushed = run({"-q", "--no-prefix"}, {"sh", "-c", "readlink /proc/$PPID/exe"});
  EXPECT_THAT(pushed.out, testing::StartsWith(cache_ + "/farandole/")) << pushed.err;
}

TEST_F(LaunchTree, DamageIsSaidAndRepaired) {
  const std::string root = cache_ + "/farandole/" + id();
  ASSERT_EQ(run({"-q", "--push"}).code, 0);
  const std::string library = fs::canonical(root + "/lib/libfarandole.so");
  const auto size = fs::file_size(library);
  EXPECT_TRUE(fs::exists(root + "/include/farandole.h"));  // for TensorFlow's operations
  struct stat before {};
  ASSERT_EQ(::stat(library.c_str(), &before), 0);

  fs::resize_file(library, size / 2);
  Outcome outcome = run({"--push"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("host elsewhere.invalid: its copy of Farandole is damaged (lib/" +
                        fs::path(library).filename().string() +
                        " is not as it was copied); it is copied again\n"));
  EXPECT_EQ(fs::file_size(library), size);
  // Whole now: used as it is.
  outcome = run({"--push"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");

  fs::remove(root + "/bin/farandole");
  outcome = run({"--push"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("(bin/farandole is missing)"));
  // The same size, other content.
  const std::string init = root + "/lib/farandole/python/farandole/__init__.py";
  std::fstream(init) << "#";
  outcome = run({"--push"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("__init__.py is not as it was copied"));
  // Nothing is left of all this.
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_ + "/farandole"), {}), 1);
}

TEST_F(LaunchTree, WhatArrivesChangedIsNotUsed) {
  // A few bytes of a library on their way.
  folder_.write("tools/tar",
                "#!/bin/sh\n/bin/tar \"$@\" || exit 2\nfor n; do :; done\n"
                "f=$(readlink -f \"$n/lib/libfarandole.so\")\n"
                "printf changed | dd of=\"$f\" bs=1 seek=100000 conv=notrunc 2>/dev/null\n",
                /*executable=*/true);
  const Outcome outcome = run({"--push"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr(" is not what was sent"));
  EXPECT_TRUE(fs::is_empty(cache_ + "/farandole"));
}

TEST_F(LaunchTree, FullDiskIsOneLine) {
  folder_.write(
      "tools/tar",
      "#!/bin/sh\ncat > /dev/null\nfor f in a b c d; do echo \"tar: $f: Wrote only 512 of "
      "10240 bytes\"; echo \"tar: $f: Cannot write: No space left on device\"; done >&2\n"
      "exit 2\n",
      /*executable=*/true);
  const Outcome outcome = run({"--push"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(linesOf(outcome.err).size(), 1U) << outcome.err;
  EXPECT_EQ(countOf(outcome.err, "No space left on device"), 1) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(cache_ + "/farandole: "), HasSubstr(" MiB are needed"),
                                 HasSubstr("XDG_CACHE_HOME"), Not(HasSubstr("Wrote only"))));
  EXPECT_TRUE(fs::is_empty(cache_ + "/farandole"));
}

TEST_F(LaunchTree, RemainsAndOldTreesAreRemoved) {
  const std::string ours = cache_ + "/farandole/";
  const auto make = [&](const std::string& name, int hours) {
    fs::create_directories(ours + name + "/bin");
    std::ofstream(ours + name + "/state") << "farandole\n";
    age(ours + name + "/state", hours);
    age(ours + name, hours);
    return ours + name;
  };
  const std::string cutOff = make(".new.abcdef", 2);
  const std::string underWay = make(".new.ghijkl", 0);
  std::vector<std::string> trees;
  for (int days = 1; days <= 6; ++days) {
    trees.push_back(make(std::string(23, '0') + std::to_string(days), days * 24 + 1));
  }
  const int busy = ::open((trees[5] + "/state").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(busy, LOCK_SH), 0);
  EXPECT_EQ(run({"-q", "--push"}).code, 0);
  EXPECT_FALSE(fs::exists(cutOff));
  EXPECT_TRUE(fs::exists(underWay));
  for (const int kept : {0, 1, 2, 5}) EXPECT_TRUE(fs::exists(trees[static_cast<unsigned>(kept)]));
  for (const int gone : {3, 4}) EXPECT_FALSE(fs::exists(trees[static_cast<unsigned>(gone)]));
  ::close(busy);
}

TEST_F(LaunchTree, MissingScriptIsSaidBeforeTheStart) {
  const std::string here = folder_.path() + "/here";
  fs::create_directories(here);
  const Outcome outcome =
      run({"-q", "--wdir", here, "--no-prefix"}, {"python3", "-u", "-W", "ignore", "train.py"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("host elsewhere.invalid: there is no script 'train.py' in "
                              "the folder '" +
                              here + "'"),
                    HasSubstr("--wdir")));
  EXPECT_EQ(linesOf(outcome.err).size(), 1U) << outcome.err;
  EXPECT_THAT(run({"-q", "--wdir", here + "/no"}).err,
              HasSubstr("host elsewhere.invalid: there is no folder '" + here + "/no'"));
  // What only looks like it.
  for (const std::vector<std::string>& job :
       std::vector<std::vector<std::string>>{{"python3", "-c", "print(1)", "train.py"},
                                             {"python3", "-um", "this", "train.py"},
                                             {"sh", "-c", "true", "train.py"},
                                             {"echo", "python3", "train.py"}}) {
    EXPECT_EQ(run({"-q", "--wdir", here}, job).code, 0) << job[1];
  }
}

TEST_F(LaunchTree, SecretsStayHereUnlessNamed) {
  // As an sshd: nothing of the launcher's environment goes there but what the launcher sends.
  folder_.write("ssh",
                "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec env -i "
                "PATH=\"$PATH\" HOME=\"$HOME\" XDG_CACHE_HOME=\"$XDG_CACHE_HOME\" sh -c \"$1\"\n",
                /*executable=*/true);
  options_.env.insert(options_.env.end(), {"HF_TOKEN=word", "HF_HOME=/tmp/hf",
                                           "https_proxy=http://me:word@proxy:3128"});
  const Outcome outcome = run({}, {"env"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("HF_HOME=/tmp/hf\n"), Not(HasSubstr("HF_TOKEN=")),
                                 Not(HasSubstr("https_proxy=")), Not(HasSubstr("word"))));
  EXPECT_EQ(countOf(outcome.err, "HF_TOKEN"), 2) << outcome.err;  // its name, and what to type
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("https_proxy"), HasSubstr("-x HF_TOKEN"),
                                 Not(HasSubstr("HF_HOME")), Not(HasSubstr("word"))));
  const Outcome named = run({"-x", "HF_TOKEN", "-x", "https_proxy"}, {"env"});
  EXPECT_THAT(named.err, Not(HasSubstr("HF_TOKEN")));
  EXPECT_THAT(named.out, AllOf(HasSubstr("HF_TOKEN=word\n"),
                               HasSubstr("https_proxy=http://me:word@proxy:3128\n")));
}

}  // namespace
}  // namespace farandole::test
