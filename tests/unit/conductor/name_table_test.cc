// What is told the sequencer of names, and what the log's plans are taken for.
#include "conductor/name_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/conductor/fake_control.h"

namespace farandole::test {
namespace {

using conductor::EntryPtr;
using control::Kind;
using control::Meta;
using control::Withdraw;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kMembers = 3;

class NameTableTest : public ::testing::Test {
 protected:
  static Meta meta(Kind kind = Kind::kAllreduce, std::vector<std::int64_t> shape = {4}) {
    Meta meta;
    meta.kind = kind;
    meta.shape = std::move(shape);
    return meta;
  }
  static EntryPtr entry(const std::string& name, Meta meta = NameTableTest::meta()) {
    auto made = std::make_shared<conductor::Entry>();
    made->request.name = name;
    made->request.meta = std::move(meta);
    return made;
  }
  EntryPtr publish(const std::string& name, Meta meta = NameTableTest::meta()) {
    auto made = entry(name, std::move(meta));
    names_.publish(made);
    return made;
  }
  // One that an ordered channel counts at that place.
  EntryPtr publishOrdered(const std::string& name, std::uint64_t place) {
    auto made = entry(name);
    made->request.ordered = true;
    made->byName = true;
    made->place = place;
    names_.publish(made);
    return made;
  }
  void define(std::uint32_t index, const std::string& name, Meta meta = NameTableTest::meta()) {
    control::Define define{{index, 1}, name, std::move(meta)};
    names_.define(define);
  }
  // The names of the entries, or "?" where they do not belong to what was submitted.
  std::vector<std::string> entries(std::vector<std::uint32_t> indices, bool joinedHere = false) {
    control::Batch batch;
    for (const auto index : indices) batch.plans.push_back({index, 1});
    if (joinedHere) batch.joined = {1};
    std::vector<EntryPtr> entries;
    if (!names_.entriesOf(batch, joinedHere, entries)) return {"?"};
    std::vector<std::string> shown;
    for (const auto& each : entries) shown.push_back(each->neutral ? "-" : each->request.name);
    return shown;
  }
  std::vector<std::string> told() {
    auto all = test::told(control_, kMembers);
    control_.submitted.clear();
    return all;
  }

  FakeControl control_;
  conductor::SubmissionOutbox outbox_{control_};
  bool shared_ = false;
  std::uint64_t heldAbove_ = 0;  // those with a later place are held
  conductor::NameTable names_{
      {.me = 1,
       .isShared = [this](const conductor::Request&) { return shared_; },
       .isHeld = [this](const conductor::Entry& entry) { return entry.place > heldAbove_; }},
      outbox_};
};

TEST_F(NameTableTest, ANewNameIsAnnouncedAndAKnownOneRepeated) {
  publish("a");
  EXPECT_THAT(told(), ElementsAre("announce a"));
  define(7, "a");
  names_.take("a");
  shared_ = true;
  publish("a");
  EXPECT_THAT(told(), ElementsAre("repeat 7.1 shared"));
  EXPECT_EQ(names_.counters().hits, 1U);
  EXPECT_EQ(names_.counters().misses, 1U);
}
TEST_F(NameTableTest, AnotherShapeIsAnnouncedAgain) {
  define(0, "a");
  publish("a", meta(Kind::kAllreduce, {5}));
  EXPECT_THAT(told(), ElementsAre("announce a"));
}
TEST_F(NameTableTest, TheRootOfAScatterAnnouncesItsOwnShape) {
  Meta mine = meta(Kind::kScatter);
  mine.root = 1;
  define(0, "a", mine);
  mine.shape = {5};
  publish("a", mine);
  EXPECT_THAT(told(), ElementsAre("announce a"));
}
TEST_F(NameTableTest, APlanThatGoesToAnotherNameIsForgotten) {
  define(0, "a");
  define(0, "b");
  publish("a");
  publish("b");
  EXPECT_THAT(told(), ElementsAre("announce a", "repeat 0.1"));
}
TEST_F(NameTableTest, ARefusedNameIsAnnouncedAgain) {
  define(0, "a");
  const auto first = publish("a");
  EXPECT_EQ(names_.refuse({"a", "why", 0}), first);
  publish("a");
  EXPECT_THAT(told(), ElementsAre("repeat 0.1", "announce a"));
}
TEST_F(NameTableTest, ARefusalSparesWhomItNames) {
  publish("a");
  EXPECT_EQ(names_.refuse({"a", "why", 0, {0, 1}}), nullptr);
  EXPECT_TRUE(names_.isTaken(entry("a")->request));
}
TEST_F(NameTableTest, AForgottenPlanIsAnnouncedInItsPlace) {
  define(3, "a");
  publish("a");
  publish("b");
  names_.resend({3, 1});
  names_.resend({3, 1});
  EXPECT_THAT(told(), ElementsAre("repeat 3.1", "announce b", "announce a")) << "once";
}

TEST_F(NameTableTest, ANameInFlightIsTakenUntilItsEnd) {
  const auto first = publish("a");
  EXPECT_TRUE(names_.isTaken(first->request));
  EXPECT_FALSE(names_.isTaken(entry("b")->request));
  EXPECT_EQ(names_.take("a"), first);
  EXPECT_FALSE(names_.isTaken(first->request));
  EXPECT_EQ(names_.take("a"), nullptr);
}
TEST_F(NameTableTest, OrderedOnesMayShareAName) {
  const auto first = publishOrdered("a", 0);
  EXPECT_FALSE(names_.isTaken(first->request));
  EXPECT_TRUE(names_.isTaken(entry("a")->request)) << "one that is not ordered";
}
TEST_F(NameTableTest, TheNextOfANameFollowsWhenTheFirstHasEnded) {
  publish("a");
  publish("a");
  EXPECT_THAT(told(), ElementsAre("announce a"));
  names_.take("a");
  EXPECT_THAT(told(), ElementsAre("announce a"));
  names_.take("a");
  EXPECT_THAT(told(), IsEmpty());
}
TEST_F(NameTableTest, OneThatIsHeldWaitsUntilItIsCalled) {
  publishOrdered("a", 1);
  EXPECT_TRUE(names_.anyDeferred());
  EXPECT_THAT(told(), IsEmpty());
  names_.publishNext("a");
  EXPECT_THAT(told(), IsEmpty()) << "still held";
  heldAbove_ = 1;
  names_.publishNext("a");
  EXPECT_THAT(told(), ElementsAre("announce a"));
  EXPECT_FALSE(names_.anyDeferred());
}
TEST_F(NameTableTest, NamesByCallOrderComeAgain) {
  EXPECT_EQ(names_.nameByCallOrder(Kind::kBarrier), "barrier#0");
  EXPECT_EQ(names_.nameByCallOrder(Kind::kBarrier), "barrier#1");
  EXPECT_EQ(names_.nameByCallOrder(Kind::kAllreduce), "allreduce#0");
  for (int i = 2; i < 1024; ++i) names_.nameByCallOrder(Kind::kBarrier);
  EXPECT_EQ(names_.nameByCallOrder(Kind::kBarrier), "barrier#0");
}

TEST_F(NameTableTest, WhatIsInFlightCanBeWithdrawn) {
  const auto first = publish("a");
  const auto waiting = publish("a");
  told();
  names_.withdraw(waiting);
  names_.withdraw(entry("a"));
  names_.withdraw(entry("b"));
  EXPECT_THAT(told(), IsEmpty());
  names_.withdraw(first);
  EXPECT_THAT(told(), ElementsAre("withdraw a"));
}
TEST_F(NameTableTest, WhatTheSequencerKnowsIsRetracted) {
  const auto first = publishOrdered("a", 0);
  EXPECT_FALSE(names_.retract(first));
  EXPECT_THAT(told(), ElementsAre("announce a", "retract a"));
}
TEST_F(NameTableTest, WhatWaitsHereIsTakenBackAtOnce) {
  publish("a");
  const auto waiting = publishOrdered("a", 0);
  EXPECT_TRUE(names_.retract(waiting));
  EXPECT_FALSE(names_.retract(waiting)) << "twice";
  told();
  names_.take("a");
  EXPECT_THAT(told(), IsEmpty());
}
TEST_F(NameTableTest, ARetractionIsRepeatedBehindAnAnnouncementThatWasMissing) {
  define(0, "a");
  const auto first = publishOrdered("a", 0);
  names_.retract(first);
  names_.resend({0, 1});
  EXPECT_THAT(told(), ElementsAre("repeat 0.1", "retract a", "announce a", "retract a"));
}

TEST_F(NameTableTest, ABatchIsOfWhatWasSubmitted) {
  publish("a");
  publish("b");
  define(0, "a");
  define(1, "b");
  EXPECT_THAT(entries({1, 0}), ElementsAre("b", "a"));
  EXPECT_THAT(entries({1, 0}, true), ElementsAre("-", "-")) << "neutral elements instead";
}
TEST_F(NameTableTest, ABatchOfWhatWasNotIsRefused) {
  EXPECT_THAT(entries({0}), ElementsAre("?")) << "no such plan";
  define(1, "a");
  EXPECT_THAT(entries({0}), ElementsAre("?")) << "never defined";
  EXPECT_THAT(entries({1}), ElementsAre("?")) << "nothing in flight";
  publish("a", meta(Kind::kAllreduce, {5}));
  EXPECT_THAT(entries({1}), ElementsAre("?")) << "of another shape";
}
TEST_F(NameTableTest, ABatchHasEachPlanOnce) {
  publish("a");
  define(0, "a");
  EXPECT_THAT(entries({0, 0}), ElementsAre("?"));
  EXPECT_THAT(entries({0}), ElementsAre("a"));
}
TEST_F(NameTableTest, ABatchIsFusibleOrAWholeGroup) {
  Meta one = meta();
  Meta other = meta(Kind::kAllgather);
  publish("a", one);
  publish("b", other);
  define(0, "a", one);
  define(1, "b", other);
  EXPECT_THAT(entries({0, 1}), ElementsAre("?"));
  names_.takeAll();
  one.group = other.group = 9;
  one.groupSize = other.groupSize = 2;
  publish("a", one);
  publish("b", other);
  define(0, "a", one);
  define(1, "b", other);
  EXPECT_THAT(entries({0, 1}), ElementsAre("a", "b"));
}

TEST_F(NameTableTest, EverythingCanBeTaken) {
  publish("a");
  publish("a");
  publish("b");
  EXPECT_EQ(names_.takeAll().size(), 3U);
  EXPECT_THAT(names_.takeAll(), IsEmpty());
}
TEST_F(NameTableTest, FindsWhatHasBeenInFlightForLong) {
  const auto first = publish("a");
  first->submitted = TimePoint(std::chrono::seconds(5));
  EXPECT_EQ(names_.submittedBefore(TimePoint(std::chrono::seconds(5))), std::nullopt);
  EXPECT_EQ(names_.submittedBefore(TimePoint(std::chrono::seconds(6))), "a");
  names_.take("a");
  EXPECT_EQ(names_.submittedBefore(TimePoint(std::chrono::seconds(6))), std::nullopt);
}

TEST(SubmissionOutbox, KeepsWhatFindsNoRoomInItsOrder) {
  FakeControl control;
  conductor::SubmissionOutbox outbox(control);
  control.submissionRoom = 1;
  outbox.send(Withdraw{"a"});
  EXPECT_FALSE(outbox.waits());
  outbox.send(Withdraw{"b"});
  EXPECT_TRUE(outbox.waits());
  control.submissionRoom = 1;
  outbox.send(Withdraw{"c"});
  EXPECT_THAT(told(control, kMembers), ElementsAre("withdraw a", "withdraw b"));
  EXPECT_TRUE(outbox.waits());
  control.submissionRoom = SIZE_MAX;
  outbox.flush();
  EXPECT_THAT(told(control, kMembers), ElementsAre("withdraw a", "withdraw b", "withdraw c"));
  EXPECT_FALSE(outbox.waits());
}

}  // namespace
}  // namespace farandole::test
