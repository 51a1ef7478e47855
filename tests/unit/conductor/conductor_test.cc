// Who drives, who is told what, and in which order everything ends. No thread of the conductor's
// own runs here: it is never started.
#include "conductor/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/conductor/fake_control.h"
#include "unit/conductor/fake_engine.h"
#include "unit/conductor/fake_machine.h"

namespace farandole::test {
namespace {

using conductor::Conductor;
using conductor::Entry;
using conductor::gaveUpBecauseOf;

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int32_t kSet = 5;

// Member 1 of a set of two.
class ConductorTest : public ::testing::Test {
 protected:
  ConductorTest() { make(nullptr); }
  ~ConductorTest() override { conductor_->stop(); }

  void make(conductor::Network* network) {
    if (conductor_) conductor_->stop();
    Conductor::Options options;
    options.spin = 0us;
    options.linkSpin = 0us;
    options.tidy = [this] { ++tidied_; };
    bell_ = std::make_unique<FakeBell>();
    conductor_ = std::make_unique<Conductor>(*bell_, rankStates_, network, timeline_, options);
    conductor::ProcessSet::Components components;
    components.id = kSet;
    components.ranks = {0, 1};
    components.hosts = {"here", "here"};
    components.me = 1;
    auto control = std::make_unique<FakeControl>();
    control_ = control.get();
    components.control = std::move(control);
    auto engine = std::make_unique<FakeEngine>(1, 2);
    engine_ = engine.get();
    components.communicator = std::move(engine);
    components.isShared = [](const void*, std::size_t) { return false; };
    conductor_->addSet(std::make_unique<conductor::ProcessSet>(std::move(components), *conductor_));
  }
  conductor::EntryPtr submit(const std::string& name) {
    auto entry = std::make_shared<Entry>();
    entry->set = kSet;
    entry->request.name = name;
    entry->request.meta.shape = {4};
    entry->request.input = entry->request.output = memory_;
    entry->request.willWait = true;
    entry->request.callbackAnywhere = true;
    entry->request.onComplete = [this, name](std::uint64_t, Code code) {
      EXPECT_TRUE(conductor_->inCallback());
      told_.push_back(name + (code == Code::kOk ? " done" : " failed"));
    };
    EXPECT_TRUE(conductor_->submit(kSet, std::span(&entry, 1)).ok());
    return entry;
  }
  // All members have submitted it.
  void order(std::uint32_t index, const conductor::EntryPtr& entry) {
    control_->log.push_back(control::encode(
        control::LogEntry(control::Define{{index, 1}, entry->request.name, entry->request.meta})));
    control_->log.push_back(control::encode(control::LogEntry(control::Batch{{{index, 1}}, {}})));
  }

  float memory_[4] = {};
  FakeRankStates rankStates_;
  observe::Timeline timeline_;
  std::unique_ptr<FakeBell> bell_;
  std::unique_ptr<Conductor> conductor_;
  FakeControl* control_ = nullptr;
  FakeEngine* engine_ = nullptr;
  std::vector<std::string> told_;
  int tidied_ = 0;
};

TEST_F(ConductorTest, WhoWaitsDrives) {
  const auto entry = submit("a");
  EXPECT_TRUE(conductor_->anythingInFlight());
  order(0, entry);
  EXPECT_THAT(engine_->started, IsEmpty());
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(20s)), Code::kOk);
  EXPECT_THAT(engine_->started, ElementsAre("allreduce"));
  EXPECT_THAT(told_, ElementsAre("a done"));
  EXPECT_FALSE(conductor_->anythingInFlight());
  const auto counters = conductor_->counters();
  EXPECT_EQ(counters.operations, 1U);
  EXPECT_EQ(counters.batches, 1U);
  EXPECT_EQ(counters.bytes, 16U);
}
TEST_F(ConductorTest, WhoTestsDrivesALittle) {
  const auto entry = submit("a");
  EXPECT_FALSE(conductor_->test(entry));
  order(0, entry);
  EXPECT_TRUE(conductor_->test(entry));
  EXPECT_THAT(told_, ElementsAre("a done"));
}
TEST_F(ConductorTest, AWaitTimesOutAndTheOperationGoesOn) {
  const auto entry = submit("a");
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(5ms)), Code::kTimeout);
  order(0, entry);
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(20s)), Code::kOk);
}
TEST_F(ConductorTest, ASignalInterruptsAWait) {
  const auto entry = submit("a");
  bell_->onSleep = [] { return false; };
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(20s)), Code::kInterrupted);
}
TEST_F(ConductorTest, ASleepingDriverLooksAroundWhenItWakes) {
  const auto entry = submit("a");
  bell_->onSleep = [&] {
    order(0, entry);
    return true;
  };
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(20s)), Code::kOk);
  EXPECT_EQ(tidied_, 1);
}
TEST_F(ConductorTest, NothingIsSleptThroughThatComesAfterItsAnnouncement) {
  const auto entry = submit("a");
  const std::uint32_t seen = bell_->announceSleep();
  submit("b");
  EXPECT_TRUE(bell_->sleep(seen, Deadline::never())) << "a submission rings";
}

TEST_F(ConductorTest, ASetThatIsNotThereIsNamed) {
  auto entry = std::make_shared<Entry>();
  EXPECT_EQ(conductor_->submit(9, std::span(&entry, 1)).message(), "there is no process set 9");
  EXPECT_EQ(conductor_->removeSet(9).message(), "there is no process set 9");
}
TEST_F(ConductorTest, ASetIsNotRemovedWhileItIsNeeded) {
  const auto entry = submit("a");
  EXPECT_THAT(conductor_->removeSet(kSet).message(), HasSubstr("has operations in flight"));
  order(0, entry);
  EXPECT_TRUE(conductor_->test(entry));
  EXPECT_TRUE(conductor_->removeSet(kSet).ok());
  EXPECT_FALSE(conductor_->removeSet(kSet).ok());
  EXPECT_EQ(conductor_->counters().planMisses, 1U) << "what it has done counts";
}

TEST_F(ConductorTest, AFailureEndsEverythingAndIsLeftForTheOthers) {
  const auto entry = submit("a");
  conductor_->fail(Status(Code::kPeerLost, "rank 0 is gone").withRank(0));
  EXPECT_EQ(rankStates_.mine, gaveUpBecauseOf(0)) << "at once, whoever drives";
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(20s)), Code::kOk);
  EXPECT_EQ(entry->outcome.status.code(), Code::kPeerLost);
  EXPECT_EQ(control_->leftHere, 0U);
  EXPECT_THAT(told_, ElementsAre("a failed"));
  auto later = std::make_shared<Entry>();
  EXPECT_EQ(conductor_->submit(kSet, std::span(&later, 1)).code(), Code::kPeerLost);
}
TEST_F(ConductorTest, ALogThatMakesNoSenseEndsEverything) {
  const auto entry = submit("a");
  control_->log.push_back({std::byte{99}});
  EXPECT_TRUE(conductor_->test(entry));
  EXPECT_TRUE(bell_->failed());
  EXPECT_THAT(bell_->failure().message(), HasSubstr("the log makes no sense"));
  EXPECT_EQ(entry->outcome.status.code(), Code::kInternal);
  EXPECT_EQ(rankStates_.mine, gaveUpBecauseOf(-1));
}
TEST_F(ConductorTest, AStopEndsWhatIsInFlightAndSaysGoodBye) {
  const auto entry = submit("a");
  conductor_->stop();
  EXPECT_EQ(entry->outcome.status.code(), Code::kShutdown);
  EXPECT_EQ(control_->leftHere, 0U);
  EXPECT_EQ(rankStates_.mine, conductor::kStillHere) << "in good order: others say why";
  EXPECT_THAT(told_, ElementsAre("a failed"));
}
TEST_F(ConductorTest, AHaltSaysNothingUntilTheStop) {
  const auto entry = submit("a");
  conductor_->halt();
  EXPECT_TRUE(entry->done);
  EXPECT_EQ(control_->leftHere, std::nullopt);
  conductor_->stop();
  EXPECT_EQ(control_->leftHere, 0U);
}

TEST_F(ConductorTest, OneThatLeftIsBlamed) {
  const auto entry = submit("a");
  control_->left[0] = 0;
  EXPECT_TRUE(conductor_->test(entry));
  EXPECT_EQ(entry->outcome.status.rank(), 0);
  EXPECT_FALSE(bell_->failed()) << "other sets may not need it";
}
TEST_F(ConductorTest, OneThatGaveUpIsBlamedOnlyWhenThisRankHasHadTimeForItsOwnAccount) {
  const auto entry = submit("a");
  control_->left[0] = 0;
  rankStates_.marks[0] = gaveUpBecauseOf(7);
  EXPECT_FALSE(conductor_->test(entry));
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(20s)), Code::kOk);
  EXPECT_EQ(entry->outcome.status.rank(), 7);
}

TEST_F(ConductorTest, WhatIsSentInAStepLeavesTogether) {
  FakeNetwork network;
  make(&network);
  const auto entry = submit("a");
  EXPECT_FALSE(conductor_->test(entry));
  EXPECT_THAT(network.calls, ElementsAre("poll", "hold", "let go"));
  network.calls.clear();
  EXPECT_EQ(conductor_->wait(entry, Deadline::after(5ms)), Code::kTimeout);
  EXPECT_THAT(network.calls, Contains("rest")) << "before the driver sleeps";
  conductor_->stop();
  EXPECT_EQ(network.calls.back(), "end");
  make(nullptr);
}

}  // namespace
}  // namespace farandole::test
