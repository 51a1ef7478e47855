// Ranks agree on a secret through an MPI that others may read. The MPI is a stand-in: threads, and
// a record of everything that was exchanged.
#include "runtime/mpi_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

#include "runtime/job_link.h"
#include "unit/runtime/listening.h"

namespace farandole::runtime {
namespace mpi_start_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGiven[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

// All messages of the ranks go through this.
class Wire {
 public:
  explicit Wire(int size) : barrier_(size), round_(static_cast<std::size_t>(size)) {}

  std::vector<std::string> exchange(int rank, std::string_view mine) {
    round_[static_cast<std::size_t>(rank)] = mine;
    barrier_.arrive_and_wait();
    if (rank == 0) {
      if (alter) alter(round_);
      for (const std::string& each : round_) record += each + "\n";
    }
    barrier_.arrive_and_wait();
    auto all = round_;
    barrier_.arrive_and_wait();
    return all;
  }

  std::string record;
  std::function<void(std::vector<std::string>&)> alter;

 private:
  std::barrier<> barrier_;
  std::vector<std::string> round_;
};

class StandIn final : public collective::Engine {
 public:
  StandIn(Wire& wire, int rank, int size) : wire_(wire), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view library() const override { return "a stand-in"; }
  std::string_view notice() const override { return ""; }
  Result<std::vector<std::string>> exchange(std::string_view mine, Deadline) override {
    return wire_.exchange(rank_, mine);
  }
  Result<std::unique_ptr<collective::Communicator>> communicator(std::span<const int>,
                                                                 std::uint32_t, Deadline) override {
    return Status::internal("not here");
  }
  void rankLost(const std::string&) override {}
  [[noreturn]] void abort(int) override { std::abort(); }

 private:
  Wire& wire_;
  const int rank_;
  const int size_;
};

struct Rank {
  Config config;
  std::string given;
  Status status;
  std::unique_ptr<LinkBootstrap> bootstrap;
};

class MpiStartTest : public ::testing::Test {
 protected:
  void meet() {
    std::vector<std::thread> threads;
    for (int i = 0; i < kRanks; ++i) {
      threads.emplace_back([this, i] {
        Rank& rank = at(i);
        rank.config.rank = i;
        rank.config.size = kRanks;
        StandIn engine(wire_, i, kRanks);
        auto met = meetThrough(engine, rank.config, rank.given, soon());
        rank.status = met.status();
        if (met.ok()) rank.bootstrap = std::move(met).value();
      });
    }
    for (auto& thread : threads) thread.join();
  }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void giveAll(const std::string& secret) {
    for (Rank& rank : ranks_) rank.given = secret;
  }
  void expectOneJob() {
    for (Rank& rank : ranks_) {
      ASSERT_TRUE(rank.status.ok()) << rank.status.message();
      EXPECT_EQ(rank.config.secret, at(0).config.secret);
      EXPECT_EQ(rank.config.job, at(0).config.job);
    }
    ASSERT_TRUE(at(2).bootstrap->put("k", "v", soon()).ok());
    EXPECT_EQ(at(1).bootstrap->get("k", soon()).value(), "v");
  }

  static constexpr int kRanks = 3;
  Wire wire_{kRanks};
  std::vector<Rank> ranks_{kRanks};
};

std::string bytesOf(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST_F(MpiStartTest, SecretIsNeitherInTheMessagesNorInTheName) {
  meet();
  expectOneJob();
  const std::string& secret = at(0).config.secret;
  EXPECT_GE(secret.size(), 64U);
  // No piece of the secret may be visible, in either form.
  for (std::size_t i = 0; i + 8 <= secret.size(); ++i) {
    EXPECT_THAT(wire_.record, Not(HasSubstr(secret.substr(i, 8)))) << i;
    EXPECT_THAT(at(0).config.job, Not(HasSubstr(secret.substr(i, 8)))) << i;
    if (i % 2 == 0) {
      EXPECT_THAT(wire_.record, Not(HasSubstr(bytesOf(secret.substr(i, 8))))) << i;
    }
  }
}

TEST_F(MpiStartTest, GivenSecretStaysOffTheWireToo) {
  giveAll(kGiven);
  meet();
  expectOneJob();
  EXPECT_NE(at(0).config.secret, kGiven);
  EXPECT_THAT(wire_.record, Not(HasSubstr(std::string(kGiven).substr(0, 8))));
}

TEST_F(MpiStartTest, RankWithoutTheGivenSecretIsNamedToAll) {
  giveAll(kGiven);
  at(1).given.clear();
  meet();
  for (const Rank& rank : ranks_) {
    EXPECT_THAT(rank.status.message(), HasSubstr("rank 1 on "));
    EXPECT_THAT(rank.status.message(), HasSubstr("was given no secret"));
  }
}

TEST_F(MpiStartTest, RankWithAnotherSecretIsTold) {
  giveAll(kGiven);
  at(1).given[0] = 'f';
  meet();
  EXPECT_THAT(at(1).status.message(), HasSubstr("FARANDOLE_SECRET"));
  EXPECT_TRUE(at(2).status.ok()) << at(2).status.message();
}

TEST_F(MpiStartTest, AlteredAndRecordedMessagesAreRefused) {
  std::vector<std::string> recorded;
  wire_.alter = [&](std::vector<std::string>& round) {
    if (round[1] == "-") recorded = round;
  };
  meet();
  expectOneJob();
  for (Rank& rank : ranks_) rank = {};
  // This is the invitation of the job before.
  wire_.alter = [&](std::vector<std::string>& round) {
    if (round[1] == "-") round = recorded;
  };
  meet();
  EXPECT_EQ(at(1).status.code(), Code::kMismatch) << at(1).status.message();
  EXPECT_EQ(at(2).status.code(), Code::kMismatch) << at(2).status.message();
  for (Rank& rank : ranks_) rank = {};
  wire_.alter = [&](std::vector<std::string>& round) {
    if (round[1] == "-") round[0].resize(round[0].size() / 2);
  };
  meet();
  EXPECT_EQ(at(1).status.code(), Code::kMismatch) << at(1).status.message();
}

// All of them are on this machine, so their ports must not be open to others.
TEST_F(MpiStartTest, RanksOfOneMachineListenOnLoopbackOnly) {
  meet();
  expectOneJob();
  std::vector<std::unique_ptr<JobLink>> links;
  for (Rank& rank : ranks_) {
    auto link = JobLink::start(rank.config, 1);
    ASSERT_TRUE(link.ok()) << link.status().message();
    links.push_back(std::move(link).value());
  }
  const auto addresses = test::listeningAddresses();
  EXPECT_EQ(addresses.size(), 6U);
  for (const transport::LinkAddress& address : addresses)
    EXPECT_TRUE(address.isLoopback()) << address.text();
}

}  // namespace mpi_start_test
}  // namespace farandole::runtime
