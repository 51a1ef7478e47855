// The control channel between machines: ranks of one process, real connections.
#include "control/link_control.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit/transport/pair.h"

namespace farandole::test {
namespace {

using control::LinkControl;
using control::RingRead;

std::vector<std::byte> bytesOf(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}
std::string textOf(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool soon(const auto& condition) {
  const auto end = std::chrono::steady_clock::now() + kWaitLimit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class LinkControlTest : public ::testing::Test {
 protected:
  struct Rank {
    std::unique_ptr<transport::LinkMesh> mesh;
    std::unique_ptr<control::Switchboard> board;
    std::unique_ptr<LinkControl> control;
    std::atomic<int> wakes{0};
    std::atomic<int> messages{0};  // that have come, for whichever set
    std::atomic<std::uint32_t> markOfOther{0};
  };

  void start(int size) {
    for (int rank = 0; rank < size; ++rank) {
      auto& each = *ranks_.emplace_back(std::make_unique<Rank>());
      each.mesh = startMesh(options(rank, size));
      each.board = std::make_unique<control::Switchboard>(*each.mesh);
      each.mesh->onControl([&each](int peer, std::string& message) {
        EXPECT_TRUE(each.board->control().deliver(peer, message).ok());
        each.messages.fetch_add(1);
      });
      each.mesh->onPeerEnd([](int, const Status&) {});
    }
    for (int rank = 0; rank < size; ++rank) {
      for (int other = 0; other < size; ++other) {
        if (rank == other) continue;
        ASSERT_TRUE(at(rank).mesh->introduce(other, at(other).mesh->card()).ok());
      }
    }
  }

  void makeControl(int rank, std::uint32_t mark = 0) {
    LinkControl::Options options;
    options.key = 7;
    for (int i = 0; i < static_cast<int>(ranks_.size()); ++i) options.ranks.push_back(i);
    options.me = rank;
    options.wake = [this, rank] { at(rank).wakes.fetch_add(1); };
    options.mark = [mark] { return mark; };
    options.onLeft = [this, rank](std::int32_t, std::uint32_t told) {
      at(rank).markOfOther.store(told);
    };
    at(rank).control = std::make_unique<LinkControl>(*at(rank).board, std::move(options));
  }
  void makeControls() {
    for (int i = 0; i < static_cast<int>(ranks_.size()); ++i) makeControl(i);
  }

  void TearDown() override {
    for (auto& rank : ranks_) rank->mesh->stop();
  }

  Rank& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  LinkControl& control(int rank) { return *at(rank).control; }

  std::string nextSubmission(int member) {
    std::vector<std::byte> record;
    EXPECT_TRUE(soon([&] {
      return control(0).nextSubmission(member, record) == RingRead::kRecord;
    })) << member;
    return textOf(record);
  }
  std::string nextEntry(int rank) {
    std::vector<std::byte> entry;
    EXPECT_TRUE(soon([&] { return control(rank).nextEntry(entry) == RingRead::kRecord; })) << rank;
    return textOf(entry);
  }

  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST_F(LinkControlTest, SubmissionsReachTheSequencerInOrder) {
  start(3);
  makeControls();
  for (int i = 0; i < 100; ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(control(rank).submit(
          bytesOf("rank " + std::to_string(rank) + " item " + std::to_string(i))));
    }
  }
  for (int rank = 0; rank < 3; ++rank) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(nextSubmission(rank),
                "rank " + std::to_string(rank) + " item " + std::to_string(i));
    }
  }
  EXPECT_GT(at(0).wakes.load(), 0);
}

TEST_F(LinkControlTest, EveryoneReadsTheSameLogAtTheSamePositions) {
  start(3);
  makeControls();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(control(0).append(bytesOf(std::string(static_cast<std::size_t>(i), 'x'))));
  }
  for (int i = 0; i < 50; ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(nextEntry(rank).size(), static_cast<std::size_t>(i));
      EXPECT_EQ(control(rank).position(), control(0).position());
    }
  }
  std::vector<std::byte> none;
  EXPECT_EQ(control(1).nextEntry(none), RingRead::kEmpty);
}

TEST_F(LinkControlTest, WhatComesBeforeTheSetIsMadeIsKept) {
  start(2);
  makeControl(0);
  ASSERT_TRUE(control(0).append(bytesOf("early")));
  ASSERT_TRUE(soon([&] { return at(1).messages == 1; }));
  makeControl(1);
  EXPECT_EQ(nextEntry(1), "early");
}

TEST_F(LinkControlTest, LogWaitsForTheSlowestReader) {
  start(2);
  makeControls();
  const std::vector<std::byte> entry(10'000);
  int appended = 0;
  while (appended < 10'000 && control(0).append(entry)) ++appended;
  // About a megabyte may be on its way.
  EXPECT_GT(appended, 50);
  ASSERT_LT(appended, 200);
  for (int i = 0; i < appended; ++i) nextEntry(1);
  EXPECT_TRUE(soon([&] { return control(0).append(entry); }));
}

TEST_F(LinkControlTest, SubmissionsWaitForTheSequencer) {
  start(2);
  makeControls();
  const std::vector<std::byte> record(10'000);
  int submitted = 0;
  while (submitted < 1000 && control(1).submit(record)) ++submitted;
  EXPECT_GT(submitted, 10);
  ASSERT_LT(submitted, 100);
  for (int i = 0; i < submitted; ++i) nextSubmission(1);
  EXPECT_TRUE(soon([&] { return control(1).submit(record); }));
}

TEST_F(LinkControlTest, OneThatHasLeftHoldsUpNobody) {
  start(3);
  makeControls();
  const std::vector<std::byte> entry(10'000);
  while (control(0).append(entry)) {
  }
  control(2).leave(0);
  std::vector<std::byte> read;
  int got = 0;
  // Member 1 reads on; member 2, which reads nothing, is not waited for.
  EXPECT_TRUE(soon([&] {
    while (control(1).nextEntry(read) == RingRead::kRecord) ++got;
    return control(0).append(entry);
  }));
  EXPECT_GT(got, 0);
}

TEST_F(LinkControlTest, WaitingIsToldOnceAndRemembered) {
  start(2);
  makeControls();
  EXPECT_FALSE(control(0).anyoneWaits());
  control(1).setWaiting(1);
  EXPECT_TRUE(soon([&] { return control(0).anyoneWaits(); }));
  control(1).setWaiting(-1);
  // Whoever has just waited counts for some submissions.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(control(1).submit(bytesOf("x")));
    nextSubmission(1);
  }
  EXPECT_TRUE(soon([&] { return !control(0).anyoneWaits(); }));
  control(0).setWaiting(1);
  EXPECT_TRUE(control(0).anyoneWaits());
}

TEST_F(LinkControlTest, LeavingIsKnownToAllWithItsReason) {
  start(3);
  makeControl(0);
  makeControl(1);
  makeControl(2, /*mark=*/9);
  EXPECT_FALSE(control(1).leftAt(2));
  control(2).leave(41);
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(soon([&] { return control(rank).leftAt(2).has_value(); })) << rank;
    EXPECT_EQ(control(rank).leftAt(2), 41u);
    EXPECT_EQ(at(rank).markOfOther.load(), 9u);
  }
  control(0).leave(17);
  EXPECT_TRUE(soon([&] { return control(1).leftAt(0) == 17u; }));
}

TEST_F(LinkControlTest, NonsenseIsCorrupt) {
  start(2);
  makeControls();
  ASSERT_TRUE(at(1).board->send(0, 7, bytesOf("\xff nonsense")).ok());
  std::vector<std::byte> record;
  EXPECT_TRUE(soon([&] { return control(0).nextSubmission(1, record) == RingRead::kCorrupt; }));
  ASSERT_TRUE(at(0).board->send(1, 7, bytesOf("\x06")).ok());
  EXPECT_TRUE(soon([&] { return control(1).nextEntry(record) == RingRead::kCorrupt; }));
}

// What a member and the sequencer say when they do not keep to the windows.
TEST_F(LinkControlTest, MoreThanTheWindowIsTooMuchAndIsNotKept) {
  start(2);
  makeControls();
  const std::string kilobyte(1000, 'x');
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(at(1).board->send(0, 7, bytesOf(std::string("\x01\x00", 2) + kilobyte)).ok());
    ASSERT_TRUE(at(0).board->send(1, 7, bytesOf("\x05" + kilobyte)).ok());
  }
  std::vector<std::byte> record;
  // Nothing is read before all has come: nothing has been acknowledged.
  ASSERT_TRUE(soon([&] { return at(0).wakes >= 2000 && at(1).wakes >= 2000; }));
  int submissions = 0;
  while (control(0).nextSubmission(1, record) == RingRead::kRecord) ++submissions;
  EXPECT_EQ(control(0).nextSubmission(1, record), RingRead::kTooMuch);
  EXPECT_EQ(submissions, (256 << 10) / 1008);
  int entries = 0;
  while (control(1).nextEntry(record) == RingRead::kRecord) ++entries;
  EXPECT_EQ(control(1).nextEntry(record), RingRead::kTooMuch);
  EXPECT_EQ(entries, (1 << 20) / 1008);
}

TEST_F(LinkControlTest, NobodyLeavesTwice) {
  start(2);
  makeControls();
  control(1).leave(3);
  ASSERT_TRUE(soon([&] { return control(0).leftAt(1).has_value(); }));
  ASSERT_TRUE(at(1).board->send(0, 7, bytesOf("\x04" + std::string(12, '\0'))).ok());
  std::vector<std::byte> record;
  EXPECT_TRUE(soon([&] { return control(0).nextSubmission(1, record) == RingRead::kCorrupt; }));
}

TEST_F(LinkControlTest, MessagesForASetThatIsGoneAreDropped) {
  start(2);
  makeControls();
  at(1).control.reset();
  ASSERT_TRUE(control(0).append(bytesOf("for nobody")));
  ASSERT_TRUE(soon([&] { return at(1).messages == 1; }));
  makeControl(1);
  std::vector<std::byte> entry;
  EXPECT_EQ(control(1).nextEntry(entry), RingRead::kEmpty);
}

}  // namespace
}  // namespace farandole::test
