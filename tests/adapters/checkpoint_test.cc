// Checkpoints: damage is found, and a kill never leaves a torn one.
#include "checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "temporary_directory.h"

namespace fashion {
namespace {

using ::testing::HasSubstr;

class Checkpoint : public ::testing::Test {
 protected:
  std::string problem() {
    try {
      (void)readCheckpoint(file_);
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file_.string()));
      return error.what();
    }
    return "no problem";
  }
  TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_ / "checkpoint";
};

TEST_F(Checkpoint, KeepsItsPayload) {
  for (const std::string& payload :
       {std::string(), std::string("abc"), std::string(100000, '\0')}) {
    writeCheckpoint(file_, payload);
    EXPECT_EQ(readCheckpoint(file_), payload);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "checkpoint.tmp"));
}

TEST_F(Checkpoint, EveryFlippedBitIsFound) {
  writeCheckpoint(file_, "some weights");
  const std::string good = TemporaryDirectory::read(file_);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      TemporaryDirectory::write(file_, bad);
      EXPECT_THROW((void)readCheckpoint(file_), CheckpointError) << "byte " << i;
    }
  }
}

TEST_F(Checkpoint, EveryTruncationIsFound) {
  writeCheckpoint(file_, "some weights");
  const std::string good = TemporaryDirectory::read(file_);
  for (std::size_t length = 0; length < good.size(); ++length) {
    TemporaryDirectory::write(file_, good.substr(0, length));
    EXPECT_THROW((void)readCheckpoint(file_), CheckpointError) << length;
  }
  TemporaryDirectory::write(file_, good + "x");
  EXPECT_THAT(problem(), HasSubstr("damaged"));
}

TEST_F(Checkpoint, SaysWhatIsWrong) {
  EXPECT_THAT(problem(), HasSubstr("No such file"));
  TemporaryDirectory::write(file_, std::string(100, 'x'));
  EXPECT_THAT(problem(), HasSubstr("not a checkpoint"));
  file_ = directory_ / "no/such/directory";
  EXPECT_THROW(writeCheckpoint(file_, "x"), CheckpointError);
}

TEST_F(Checkpoint, AFailedWriteLeavesTheOldOne) {
  writeCheckpoint(file_, "old");
  std::filesystem::create_directory(directory_ / "checkpoint.tmp");
  EXPECT_THROW(writeCheckpoint(file_, "new"), CheckpointError);
  EXPECT_EQ(readCheckpoint(file_), "old");
}

// Writes checkpoints until killed. Each is made of one letter, and long enough to be interrupted.
[[noreturn]] void writeForEver(const std::filesystem::path& file, int readyFd) {
  for (unsigned i = 0;; ++i) {
    writeCheckpoint(file, std::string(300000 + 1000 * (i % 7), static_cast<char>('a' + i % 26)));
    if (i == 0 && ::write(readyFd, "x", 1) != 1) ::_exit(1);
  }
}

TEST_F(Checkpoint, AKillNeverLeavesATornOne) {
  std::mt19937 random(7);
  int unfinished = 0;
  for (int round = 0; round < 40; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      try {
        writeForEver(file_, pipe[1]);
      } catch (...) {
        ::_exit(1);
      }
    }
    ::close(pipe[1]);
    char ready = 0;
    EXPECT_EQ(::read(pipe[0], &ready, 1), 1) << "the child ended before its first checkpoint";
    ::close(pipe[0]);
    ::usleep(std::uniform_int_distribution<useconds_t>(0, 8000)(random));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::string payload = readCheckpoint(file_);
    ASSERT_GE(payload.size(), 300000U);
    EXPECT_EQ(payload, std::string(payload.size(), payload[0]));
    if (std::filesystem::exists(directory_ / "checkpoint.tmp")) ++unfinished;
  }
  // Otherwise no kill came while one was being written, and this has shown nothing.
  EXPECT_GT(unfinished, 0);
}

}  // namespace
}  // namespace fashion
