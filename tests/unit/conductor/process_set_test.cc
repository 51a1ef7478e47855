// A member against a log that no honest sequencer writes: it says so, and touches nothing. And what
// may honestly come after a member has left.
#include "conductor/process_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/conductor/fake_control.h"
#include "unit/conductor/fake_engine.h"

namespace farandole::test {
namespace {

using conductor::Entry;
using conductor::EntryPtr;
using conductor::kNoLimit;
using conductor::ProcessSet;
using control::Kind;
using control::LogEntry;
using control::Meta;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProcessSetTest : public ::testing::Test, public conductor::SetObserver {
 protected:
  ProcessSetTest() { become(1, 2); }

  // That member of a set of that size. Member 0 is the sequencer.
  void become(int me, int size) {
    ProcessSet::Components components;
    control::Sequencer::Options options;
    for (int rank = 0; rank < size; ++rank) {
      components.ranks.push_back(rank);
      components.hosts.emplace_back("here");
      options.memberNames.push_back("rank " + std::to_string(rank));
    }
    components.me = me;
    components.control = std::make_unique<FakeControl>();
    components.communicator = std::make_unique<FakeEngine>(me, size);
    if (me == 0) components.sequencer = std::make_unique<control::Sequencer>(std::move(options));
    components.isShared = [](const void*, std::size_t) { return false; };
    set_ = std::make_unique<ProcessSet>(std::move(components), *this);
  }

  void completed(const EntryPtr& entry) override {
    completed_.push_back(entry->request.name);
    if (failure_.ok()) failure_ = entry->outcome.status;
    outcomes_.push_back(entry->outcome.status);
  }
  void ran(const conductor::Execution&) override {}
  void broken(Status status) override {
    if (broken_.ok()) broken_ = std::move(status);  // what follows from it does not count
  }
  bool gone(std::int32_t rank) override { return rank == 0 && gone_; }
  std::uint32_t ends() override { return gone_ ? 1 : 0; }

  static Meta meta(Kind kind, std::vector<std::int64_t> shape = {4}) {
    Meta meta;
    meta.kind = kind;
    meta.shape = std::move(shape);
    return meta;
  }
  void submit(const std::string& name, const Meta& meta) {
    auto entry = std::make_shared<Entry>();
    entry->request.name = name;
    entry->request.meta = meta;
    entry->request.input = entry->request.output = memory_.data();
    const EntryPtr one = entry;
    ASSERT_TRUE(set_->submit(std::span(&one, 1)).ok());
  }
  void join() { submit("", meta(Kind::kJoin, {})); }
  void log(const LogEntry& entry) { control().log.push_back(control::encode(entry)); }
  void define(std::uint32_t index, const std::string& name, const Meta& meta) {
    log(LogEntry(control::Define{{index, 1}, name, meta}));
  }
  void batch(std::vector<std::uint32_t> indices, std::vector<std::int64_t> joined = {}) {
    control::Batch batch{{}, std::move(joined)};
    for (const auto index : indices) batch.plans.push_back({index, 1});
    log(LogEntry(batch));
  }
  void step() {
    for (int i = 0; i < 8 && broken_.ok(); ++i) set_->step(TimePoint(std::chrono::seconds(1)));
  }
  void expectBroken(const char* why = "has not submitted") {
    step();
    EXPECT_THAT(broken_.message(), HasSubstr(why));
    EXPECT_THAT(engine().started, IsEmpty());
    EXPECT_THAT(completed_, IsEmpty());
  }

  FakeControl& control() { return static_cast<FakeControl&>(set_->control()); }
  FakeEngine& engine() { return static_cast<FakeEngine&>(set_->communicator()); }

  std::vector<float> memory_ = std::vector<float>(64);
  std::vector<std::string> completed_;
  Status failure_;  // of the first operation that failed
  std::vector<Status> outcomes_;
  Status broken_;
  bool gone_ = false;  // rank 0's process has ended
  std::unique_ptr<ProcessSet> set_;
};

TEST_F(ProcessSetTest, RunsWhatAllHaveSubmitted) {
  submit("a", meta(Kind::kAllreduce));
  submit("b", meta(Kind::kAllreduce));
  define(0, "a", meta(Kind::kAllreduce));
  define(1, "b", meta(Kind::kAllreduce));
  batch({0, 1});
  step();
  EXPECT_TRUE(broken_.ok()) << broken_.message();
  EXPECT_THAT(engine().started, ElementsAre("allreduce"));
  EXPECT_THAT(completed_, ElementsAre("a", "b"));
}

TEST_F(ProcessSetTest, ANameThatHasMovedToAnotherPlanRuns) {
  define(0, "a", meta(Kind::kAllreduce));
  define(1, "a", meta(Kind::kAllreduce));
  define(0, "b", meta(Kind::kAllreduce));
  submit("a", meta(Kind::kAllreduce));
  submit("b", meta(Kind::kAllreduce));
  batch({1, 0});
  step();
  EXPECT_TRUE(broken_.ok()) << broken_.message();
  EXPECT_THAT(completed_, ElementsAre("a", "b"));
}

TEST_F(ProcessSetTest, AnEntryEndsOnce) {
  submit("a", meta(Kind::kAllreduce));
  define(0, "a", meta(Kind::kAllreduce));
  batch({0, 0});
  expectBroken();
}
TEST_F(ProcessSetTest, AnEntryEndsOnceWhateverItsPlansAre) {
  submit("a", meta(Kind::kAllreduce));
  define(0, "a", meta(Kind::kAllreduce));
  define(1, "a", meta(Kind::kAllreduce));
  batch({0, 1});
  expectBroken();
}
TEST_F(ProcessSetTest, WhatCannotBeFusedIsNot) {
  submit("a", meta(Kind::kAllreduce));
  submit("b", meta(Kind::kAllgather));
  define(0, "a", meta(Kind::kAllreduce));
  define(1, "b", meta(Kind::kAllgather));
  batch({0, 1});
  expectBroken();
}
TEST_F(ProcessSetTest, APlanOfAnotherShapeIsNotRun) {
  submit("a", meta(Kind::kAllreduce));
  define(0, "a", meta(Kind::kAllreduce, {5000}));
  batch({0});
  expectBroken();
}
TEST_F(ProcessSetTest, TheRootOfAScatterSendsNoMoreThanItHas) {
  Meta mine = meta(Kind::kScatter);
  mine.root = 1;
  submit("a", mine);
  mine.shape = {5000};
  define(0, "a", mine);
  batch({0});
  expectBroken();
}
TEST_F(ProcessSetTest, OneThatHasNotJoinedIsNotSaidToHave) {
  define(0, "a", meta(Kind::kAllreduce));
  batch({0}, {1});
  expectBroken();
}
TEST_F(ProcessSetTest, OneThatHasJoinedTakesPartInAReduction) {
  join();
  define(0, "a", meta(Kind::kAllreduce));
  batch({0}, {1});
  step();
  EXPECT_TRUE(broken_.ok()) << broken_.message();
  EXPECT_THAT(engine().started, ElementsAre("allreduce"));
}
TEST_F(ProcessSetTest, OneThatHasJoinedTakesNoPartInWhatNeedsItsData) {
  for (const Kind kind :
       {Kind::kReduce, Kind::kGather, Kind::kScatter, Kind::kAlltoall, Kind::kReducescatter}) {
    broken_ = Status();
    if (kind == Kind::kReduce) join();
    define(0, "a", meta(kind));
    batch({0}, {1});
    expectBroken();
  }
}
TEST_F(ProcessSetTest, OneThatHasJoinedBroadcastsNothing) {
  join();
  Meta mine = meta(Kind::kBroadcast);
  mine.root = 1;
  define(0, "a", mine);
  batch({0}, {1});
  expectBroken();
}
// Bits of floats: there is no such function.
TEST_F(ProcessSetTest, OneThatHasJoinedReducesNothingThatCannotBeReduced) {
  join();
  Meta wrong = meta(Kind::kAllreduce);
  wrong.op = ReduceOp::kBand;
  define(0, "a", wrong);
  batch({0}, {1});
  expectBroken("the log makes no sense");
}
TEST_F(ProcessSetTest, AnIndexCostsNoMoreThanItsPlan) {
  define(1 << 24, "a", meta(Kind::kAllreduce));
  expectBroken("the log makes no sense");
}

TEST_F(ProcessSetTest, AMemberThatExceedsItsWindowIsNamed) {
  become(0, 3);
  control().submissions[2] = control::RingRead::kTooMuch;
  expectBroken("rank 2 on here sends more submissions than it was allowed to");
}
TEST_F(ProcessSetTest, ASequencerThatExceedsItsWindowIsNamed) {
  control().afterTheLog = control::RingRead::kTooMuch;
  expectBroken("rank 0 on here sends more of the log than it was allowed to");
}

// Member 2 submits and leaves at once: it is gone before the batch of what it has submitted is read
// here. That is no inconsistent log, which would end all sets of the job.
TEST_F(ProcessSetTest, ABatchThatFollowsALeaveIsPassedOver) {
  become(1, 3);
  submit("a", meta(Kind::kAllreduce));
  control().left[2] = 0;
  step();
  EXPECT_THAT(completed_, ElementsAre("a"));
  EXPECT_EQ(failure_.code(), Code::kPeerLost);
  EXPECT_EQ(failure_.rank(), 2);
  define(0, "a", meta(Kind::kAllreduce));
  batch({0});
  step();
  EXPECT_THAT(control().log, IsEmpty());
  EXPECT_TRUE(broken_.ok()) << broken_.message();
  EXPECT_THAT(engine().started, IsEmpty());
  EXPECT_THAT(completed_, ElementsAre("a"));
}
TEST_F(ProcessSetTest, AJoinOfAllThatFollowsALeaveIsPassedOver) {
  become(1, 3);
  join();
  control().left[2] = 0;
  step();
  EXPECT_THAT(completed_, ElementsAre(""));
  EXPECT_EQ(failure_.rank(), 2);
  log(LogEntry(control::Joined{2}));
  step();
  EXPECT_THAT(control().log, IsEmpty());
  EXPECT_TRUE(broken_.ok()) << broken_.message();
  EXPECT_THAT(completed_, ElementsAre(""));
}
// What the leaver has still executed runs here, too.
TEST_F(ProcessSetTest, ABatchBeforeALeaveRuns) {
  become(1, 3);
  submit("a", meta(Kind::kAllreduce));
  submit("b", meta(Kind::kAllreduce));
  control().left[2] = 3;
  step();
  EXPECT_THAT(completed_, IsEmpty());
  define(0, "a", meta(Kind::kAllreduce));
  define(1, "b", meta(Kind::kAllreduce));
  batch({0});
  step();
  EXPECT_THAT(engine().started, ElementsAre("allreduce"));
  EXPECT_THAT(completed_, ElementsAre("a", "b"));
  EXPECT_EQ(failure_.tensor(), "b");
  EXPECT_EQ(failure_.rank(), 2);
  EXPECT_TRUE(broken_.ok()) << broken_.message();
}

// A group of a sum and two gathers, as its members know it; "b" has rows of 100 elements.
class ProcessSetGroupTest : public ProcessSetTest {
 protected:
  void submitAll() {
    std::vector<EntryPtr> entries;
    for (const auto& [name, kind, shape] : group_) {
      auto entry = std::make_shared<Entry>();
      entry->request.name = name;
      entry->request.meta = meta(kind, shape);
      entry->request.input = input_.data();
      entry->request.group = 1;
      entries.push_back(entry);
    }
    ASSERT_TRUE(set_->submit(entries).ok());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      define(static_cast<std::uint32_t>(i), group_[i].name, entries[i]->request.meta);
    }
  }
  struct One {
    std::string name;
    Kind kind;
    std::vector<std::int64_t> shape;
  };
  const std::vector<One> group_ = {{"sum", Kind::kAllreduce, {4}},
                                   {"a", Kind::kAllgather, {4}},
                                   {"b", Kind::kAllgather, {4, 100}}};
  std::vector<float> input_ = std::vector<float>(400);
};

TEST_F(ProcessSetGroupTest, RunsWhenEverybodyHasRoomForAllOfIt) {
  submitAll();
  batch({0, 1, 2});
  engine().told = {kNoLimit, 3, kNoLimit, 4};
  step();
  EXPECT_TRUE(broken_.ok()) << broken_.message();
  EXPECT_THAT(engine().started,
              ElementsAre("exchange", "exchange", "allreduce", "allgather", "allgather"));
  EXPECT_THAT(completed_, ElementsAre("sum", "a", "b"));
  for (const Status& each : outcomes_) EXPECT_TRUE(each.ok()) << each.message();
}
TEST_F(ProcessSetGroupTest, FailsAsAWholeIfOneResultDoesNotFit) {
  submitAll();
  batch({0, 1, 2});
  engine().told = {1000, 3, kNoLimit, 4};  // enough for "a"
  step();
  EXPECT_TRUE(broken_.ok()) << broken_.message();
  EXPECT_THAT(engine().started, ElementsAre("exchange", "exchange"));
  EXPECT_THAT(completed_, ElementsAre("sum", "a", "b"));
  for (const Status& each : outcomes_) {
    EXPECT_EQ(each.code(), Code::kMismatch);
    EXPECT_EQ(each.rank(), 0);
    EXPECT_THAT(each.message(), HasSubstr("'b' of this group cannot run: the output of rank 0"));
    EXPECT_THAT(each.message(), HasSubstr("room for 1000 bytes, but 2800"));
  }
}
TEST_F(ProcessSetGroupTest, HasALimitIfOthersDecideASizeInIt) {
  std::vector<EntryPtr> entries;
  for (std::size_t i = 0; i <= control::kMaxGroupPlans; ++i) {
    auto entry = std::make_shared<Entry>();
    entry->request.name = std::to_string(i);
    entry->request.meta = meta(i == 7 ? Kind::kAllgather : Kind::kAllreduce);
    entry->request.group = 1;
    entries.push_back(entry);
  }
  const Status status = set_->submit(entries);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("a group of 4097 operations with allgather among them"));
  entries[7]->request.meta = meta(Kind::kAllreduce);
  EXPECT_TRUE(set_->submit(entries).ok());
}
TEST_F(ProcessSetGroupTest, IsNotRunInPartsThatDoNotBelongTogether) {
  submitAll();
  batch({0, 1});
  expectBroken();
}

// Whatever the mark of one whose process has ended says, nothing comes from there any more.
TEST_F(ProcessSetTest, OneThatHasEndedIsNotWaitedFor) {
  submit("a", meta(Kind::kAllreduce));
  step();
  ASSERT_THAT(completed_, IsEmpty());
  gone_ = true;
  step();
  EXPECT_THAT(completed_, ElementsAre("a"));
  EXPECT_EQ(outcomes_.at(0).code(), Code::kPeerLost);
  EXPECT_EQ(outcomes_.at(0).rank(), 0);
  EXPECT_THAT(outcomes_.at(0).message(), HasSubstr("rank 0 on here has left the job"));
}
TEST_F(ProcessSetTest, OneThatHasEndedIsNotWaitedForUntilAPositionThatNeverComes) {
  submit("a", meta(Kind::kAllreduce));
  control().left[0] = 1'000'000;
  step();
  ASSERT_THAT(completed_, IsEmpty());
  gone_ = true;
  step();
  EXPECT_THAT(completed_, ElementsAre("a"));
  EXPECT_EQ(outcomes_.at(0).code(), Code::kPeerLost);
}
TEST_F(ProcessSetTest, WhatOneHadOrderedBeforeItEndedRuns) {
  submit("a", meta(Kind::kAllreduce));
  submit("b", meta(Kind::kAllreduce));
  gone_ = true;
  // It is seen to be gone in a step that is just too early for the log.
  set_->step(TimePoint(std::chrono::seconds(1)));
  define(0, "a", meta(Kind::kAllreduce));
  batch({0});
  step();
  EXPECT_THAT(completed_, ElementsAre("a", "b"));
  EXPECT_TRUE(outcomes_.at(0).ok()) << outcomes_.at(0).message();
  EXPECT_EQ(outcomes_.at(1).code(), Code::kPeerLost);
}
TEST_F(ProcessSetTest, OneThatHasEndedDisturbsNobodyWhoDoesNotNeedIt) {
  gone_ = true;
  step();
  EXPECT_TRUE(broken_.ok());
  submit("a", meta(Kind::kAllreduce));
  step();
  EXPECT_EQ(outcomes_.at(0).code(), Code::kPeerLost) << "a later one that does";
}

TEST_F(ProcessSetTest, MoreThanCanBeInFlightIsRefused) {
  const std::string name = "t";
  for (std::uint32_t i = 0; i < control::kMaxPlans; ++i)
    submit(name + std::to_string(i), meta(Kind::kBarrier, {}));
  const EntryPtr last = std::make_shared<Entry>();
  last->request.name = "last";
  const Status status = set_->submit(std::span(&last, 1));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("65536 operations"));
}

}  // namespace
}  // namespace farandole::test
