// Groups of ranks: real forked processes that answer, complain, die, or say nothing.
#include "bench/rank_group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "bench/contest.h"
#include "bench/rank_side.h"

namespace farandole::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

GroupSpec forked(int ranks, std::function<int(int)> body) {
  GroupSpec spec;
  spec.name = "test";
  spec.ranks = ranks;
  spec.body = std::move(body);
  return spec;
}

// Serves with a fixed answer: seconds = rank + 1.
int honest(int rank, int size) {
  auto wire = RankWire::connect(rank, size);
  if (!wire.ok()) return 1;
  const Status status = (*wire)->serve([rank](const Job&) -> Result<double> { return rank + 1.0; });
  return status.ok() ? 0 : 1;
}

TEST(RankGroup, TakesTheSlowestRank) {
  auto group = RankGroup::start(forked(3, [](int rank) { return honest(rank, 3); }),
                                Deadline::after(seconds(20)));
  ASSERT_TRUE(group.ok()) << group.status().message();
  auto time = (*group)->run(Job(), Deadline::after(seconds(20)));
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(*time, 3.0);
}

TEST(RankGroup, GivesEveryRankEverybodysOffer) {
  const auto body = [](int rank) {
    auto wire = RankWire::connect(rank, 2);
    if (!wire.ok()) return 1;
    auto all = (*wire)->exchange(rank == 0 ? "zero" : "one");
    const bool right = all.ok() && *all == std::vector<std::string>{"zero", "one"};
    const Status status =
        (*wire)->serve([right](const Job&) -> Result<double> { return right ? 1.0 : 2.0; });
    return status.ok() ? 0 : 1;
  };
  auto group = RankGroup::start(forked(2, body), Deadline::after(seconds(20)));
  ASSERT_TRUE(group.ok()) << group.status().message();
  auto time = (*group)->run(Job(), Deadline::after(seconds(20)));
  ASSERT_TRUE(time.ok());
  EXPECT_DOUBLE_EQ(*time, 1.0);
}

TEST(RankGroup, ReportsComplaints) {
  const auto body = [](int rank) {
    auto wire = RankWire::connect(rank, 2);
    if (!wire.ok()) return 1;
    const Status status = (*wire)->serve([rank](const Job&) -> Result<double> {
      if (rank == 1) return Status::internal("wrong result at element 5");
      return 1.0;
    });
    return status.ok() ? 0 : 1;
  };
  auto group = RankGroup::start(forked(2, body), Deadline::after(seconds(20)));
  ASSERT_TRUE(group.ok());
  auto time = (*group)->run(Job(), Deadline::after(seconds(20)));
  ASSERT_FALSE(time.ok());
  EXPECT_NE(time.status().message().find("rank 1"), std::string::npos);
  EXPECT_NE(time.status().message().find("element 5"), std::string::npos);
}

TEST(RankGroup, ShowsTheLastWordsOfOneThatDies) {
  const auto body = [](int rank) {
    if (rank == 0) return honest(0, 2);
    dprintf(STDERR_FILENO, "no such library\n");
    return 7;
  };
  auto group = RankGroup::start(forked(2, body), Deadline::after(seconds(20)));
  ASSERT_FALSE(group.ok());
  EXPECT_NE(group.status().message().find("exit code 7"), std::string::npos);
  EXPECT_NE(group.status().message().find("no such library"), std::string::npos);
}

TEST(RankGroup, NamesAProgramThatIsNotThere) {
  GroupSpec spec;
  spec.name = "absent";
  spec.ranks = 1;
  spec.commands = {{"/nonexistent/program"}};
  auto group = RankGroup::start(std::move(spec), Deadline::after(seconds(20)));
  ASSERT_FALSE(group.ok());
  EXPECT_NE(group.status().message().find("/nonexistent/program"), std::string::npos);
}

TEST(RankGroup, DoesNotWaitForEver) {
  const auto body = [](int rank) {
    auto wire = RankWire::connect(rank, 1);
    if (!wire.ok()) return 1;
    const Status status = (*wire)->serve([](const Job&) -> Result<double> {
      std::this_thread::sleep_for(seconds(30));
      return 1.0;
    });
    return status.ok() ? 0 : 1;
  };
  auto group = RankGroup::start(forked(1, body), Deadline::after(seconds(20)));
  ASSERT_TRUE(group.ok());
  auto time = (*group)->run(Job(), Deadline::after(milliseconds(200)));
  ASSERT_FALSE(time.ok());
  EXPECT_EQ(time.status().code(), Code::kTimeout);
}

TEST(Contest, LeavesOutWhoFailsAndMeasuresTheRest) {
  const auto failing = [](int rank) {
    auto wire = RankWire::connect(rank, 1);
    if (!wire.ok()) return 1;
    const Status status = (*wire)->serve(
        [](const Job&) -> Result<double> { return Status::internal("cannot do that"); });
    return status.ok() ? 0 : 1;
  };
  auto good = RankGroup::start(forked(1, [](int rank) { return honest(rank, 1); }),
                               Deadline::after(seconds(20)));
  auto bad = RankGroup::start(forked(1, failing), Deadline::after(seconds(20)));
  ASSERT_TRUE(good.ok() && bad.ok());
  std::vector<Contender> contenders;
  contenders.push_back({"good", Side::kOurs, good->get(), Job(), true, {}});
  contenders.push_back({"bad", Side::kPeer, bad->get(), Job(), true, {}});
  const auto measured = runContest(contenders, 64, {3, {0}});
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_EQ(measured[0].seconds(), (std::vector<double>{1.0, 1.0, 1.0}));
  EXPECT_EQ(measured[0].bytes, 64u);
  EXPECT_TRUE(measured[1].samples.empty());
  EXPECT_NE(measured[1].failure.find("cannot do that"), std::string::npos);
}

}  // namespace
}  // namespace farandole::bench
