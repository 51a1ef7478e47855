#include "bootstrap/bootstrap_store.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace farandole::bootstrap {
namespace {

class RendezvousTest : public ::testing::Test {
 protected:
  struct Said {
    Status status;
    std::string value;
    int times = 0;
  };
  BootstrapStore room_{
      4, [this](int rank, std::uint64_t id, const Status& status, std::string_view value) {
        Said& said = said_[{rank, id}];
        said.status = status;
        said.value = value;
        ++said.times;
      }};
  std::map<std::pair<int, std::uint64_t>, Said> said_;

  const Said& said(int rank, std::uint64_t id) { return said_[{rank, id}]; }
  Code code(int rank, std::uint64_t id) {
    EXPECT_EQ(said(rank, id).times, 1) << "rank " << rank << ", request " << id;
    return said(rank, id).status.code();
  }
  bool silent(int rank, std::uint64_t id) { return said(rank, id).times == 0; }
  void fence(int rank, std::uint64_t id, std::uint32_t count) {
    room_.fence(rank, id, {"f", count});
  }
};

TEST_F(RendezvousTest, GetWaitsForPut) {
  room_.get(1, 1, {"k"});
  room_.get(2, 1, {"k"});
  EXPECT_TRUE(silent(1, 1));
  room_.put(0, 1, {"k", "v"});
  EXPECT_EQ(code(0, 1), Code::kOk);
  EXPECT_EQ(code(1, 1), Code::kOk);
  EXPECT_EQ(said(1, 1).value, "v");
  EXPECT_EQ(said(2, 1).value, "v");
  room_.get(3, 1, {"k"});
  EXPECT_EQ(said(3, 1).value, "v");
  EXPECT_EQ(room_.waiting(), 0u);
}

TEST_F(RendezvousTest, AValueIsWrittenOnce) {
  room_.put(0, 1, {"k", "v"});
  room_.put(0, 2, {"k", "v"});
  EXPECT_EQ(code(0, 2), Code::kOk) << "a repetition";
  room_.put(0, 3, {"k", "w"});
  EXPECT_EQ(code(0, 3), Code::kDuplicateName);
  room_.put(1, 1, {"k", "v"});
  EXPECT_EQ(code(1, 1), Code::kDuplicateName);
  EXPECT_NE(said(1, 1).status.message().find("rank 0"), std::string::npos);
}

TEST_F(RendezvousTest, TheStoreIsBounded) {
  const std::string value(wire::kMaxValue, 'v');
  std::uint64_t id = 0;
  for (; id < 63; ++id) room_.put(0, id, {"k" + std::to_string(id), value});
  EXPECT_EQ(code(0, 62), Code::kOk);
  room_.put(0, 63, {"last", value});
  EXPECT_EQ(code(0, 63), Code::kOutOfMemory);
  room_.put(0, 64, {"small", "v"});
  EXPECT_EQ(code(0, 64), Code::kOk);
}

TEST_F(RendezvousTest, FenceOpensForDistinctRanks) {
  fence(0, 1, 3);
  fence(0, 2, 3);
  EXPECT_EQ(code(0, 2), Code::kDuplicateName);
  fence(1, 1, 3);
  EXPECT_TRUE(silent(0, 1));
  fence(3, 1, 3);
  EXPECT_EQ(code(0, 1), Code::kOk);
  EXPECT_EQ(code(1, 1), Code::kOk);
  EXPECT_EQ(code(3, 1), Code::kOk);
  // The same key again is a new fence.
  fence(0, 5, 1);
  EXPECT_EQ(code(0, 5), Code::kOk);
}

TEST_F(RendezvousTest, FenceWithDifferentCountsFailsForAll) {
  fence(0, 1, 3);
  fence(1, 1, 2);
  EXPECT_EQ(code(0, 1), Code::kMismatch);
  EXPECT_EQ(code(1, 1), Code::kMismatch);
  fence(2, 1, 0);
  EXPECT_EQ(code(2, 1), Code::kInvalidArgument);
  fence(2, 2, 5);
  EXPECT_EQ(code(2, 2), Code::kInvalidArgument);
}

TEST_F(RendezvousTest, CancelSaysWhatWasMissing) {
  room_.get(1, 1, {"k"});
  room_.cancel(1, 1);
  EXPECT_EQ(code(1, 1), Code::kTimeout);
  EXPECT_NE(said(1, 1).status.message().find("\"k\""), std::string::npos);
  fence(0, 1, 4);
  fence(2, 1, 4);
  room_.cancel(2, 1);
  EXPECT_NE(said(2, 1).status.message().find("missing: rank(s) 1,3"), std::string::npos)
      << said(2, 1).status.message();
  // A withdrawn rank does not count any more; it may come again.
  fence(1, 1, 4);
  fence(3, 1, 4);
  EXPECT_TRUE(silent(0, 1));
  fence(2, 2, 4);
  EXPECT_EQ(code(0, 1), Code::kOk);
  room_.cancel(2, 2);
  EXPECT_EQ(code(2, 2), Code::kOk) << "answered once only";
}

TEST_F(RendezvousTest, AForgottenRankIsNotAnswered) {
  room_.get(1, 1, {"k"});
  fence(1, 2, 2);
  room_.forget(1);
  EXPECT_EQ(room_.waiting(), 0u);
  room_.put(0, 1, {"k", "v"});
  fence(0, 2, 2);
  EXPECT_TRUE(silent(1, 1));
  EXPECT_TRUE(silent(1, 2));
  EXPECT_TRUE(silent(0, 2));
}

TEST_F(RendezvousTest, AnAbnormalEndFailsEverythingThatWaits) {
  room_.put(0, 1, {"there", "v"});
  room_.get(0, 2, {"k"});
  fence(2, 1, 4);
  room_.rankEnded({1, "alpha", true, 9, ""});
  EXPECT_EQ(code(0, 2), Code::kPeerLost);
  EXPECT_EQ(said(0, 2).status.rank(), 1);
  EXPECT_EQ(said(0, 2).status.host(), "alpha");
  EXPECT_NE(said(0, 2).status.message().find("killed by signal 9"), std::string::npos);
  EXPECT_EQ(code(2, 1), Code::kPeerLost);
  EXPECT_EQ(room_.waiting(), 0u);
  room_.get(3, 1, {"k"});
  EXPECT_EQ(code(3, 1), Code::kPeerLost);
  fence(3, 2, 2);
  EXPECT_EQ(code(3, 2), Code::kPeerLost);
  room_.get(3, 3, {"there"});
  EXPECT_EQ(code(3, 3), Code::kOk) << "what is there can still be had";
  room_.rankEnded({1, "alpha", true, 9, ""});
  EXPECT_EQ(room_.abnormalEnds().size(), 1u);
}

TEST_F(RendezvousTest, ANormalEndFailsOnlyFencesThatNeedThatRank) {
  room_.get(0, 1, {"k"});
  room_.fence(0, 2, {"all", 4});
  room_.fence(0, 3, {"some", 3});
  room_.rankEnded({2, "alpha", false, 0, ""});
  EXPECT_TRUE(silent(0, 1));
  EXPECT_EQ(code(0, 2), Code::kPeerLost);
  EXPECT_EQ(said(0, 2).status.rank(), 2);
  EXPECT_TRUE(silent(0, 3));
  room_.fence(1, 1, {"all again", 4});
  EXPECT_EQ(code(1, 1), Code::kPeerLost);
}

TEST_F(RendezvousTest, ARanksWaitingRequestsAreBounded) {
  std::uint64_t id = 1;
  for (; id <= 1024; ++id) room_.get(0, id, {"k" + std::to_string(id)});
  EXPECT_TRUE(silent(0, 1024));
  room_.get(0, id, {"one more"});
  EXPECT_EQ(code(0, id), Code::kUnavailable);
  room_.get(1, 1, {"another rank"});
  EXPECT_TRUE(silent(1, 1));
  room_.get(1, 1, {"the same number"});
  EXPECT_EQ(code(1, 1), Code::kInvalidArgument);
}

}  // namespace
}  // namespace farandole::bootstrap
