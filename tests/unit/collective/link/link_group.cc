#include "unit/collective/link/link_group.h"

#include <thread>

namespace farandole::testing {
namespace {

using collective::OperationPtr;

constexpr std::chrono::seconds kLimit{60};

}  // namespace

void Doorbell::ring() {
  const std::lock_guard lock(mutex_);
  ++rings_;
  rung_.notify_all();
}

std::uint64_t Doorbell::seen() const {
  const std::lock_guard lock(mutex_);
  return rings_;
}

void Doorbell::wait(std::uint64_t seen, Duration limit) {
  std::unique_lock lock(mutex_);
  rung_.wait_for(lock, limit, [&] { return rings_ != seen; });
}

std::vector<int> everybody(int ranks) {
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

std::unique_ptr<collective::Communicator> LinkMember::communicator(
    const std::vector<int>& members, std::uint32_t key, collective::link::WireFormat wire) {
  collective::link::LinkOptions options;
  options.mesh = &mesh_;
  options.key = key;
  options.wire = wire;
  options.wake = [bell = doorbell_] { bell->ring(); };
  for (std::size_t i = 0; i < members.size(); ++i) {
    options.ranks.push_back(members[i]);
    options.hosts.push_back("host" + std::to_string(members[i]));
    if (members[i] == rank_) options.me = static_cast<int>(i);
  }
  return collective::link::makeLinkCommunicator(std::move(options));
}

std::unique_ptr<collective::Communicator> LinkMember::world(std::uint32_t key,
                                                            collective::link::WireFormat wire) {
  return communicator(everybody(size_), key, wire);
}

Status LinkMember::wait(std::span<const OperationPtr> operations) {
  const Deadline deadline = Deadline::after(kLimit);
  for (;;) {
    const std::uint64_t seen = doorbell_->seen();
    bool pending = false;
    bool moved = false;
    for (const OperationPtr& operation : operations) {
      if (operation->progress() != collective::Progress::kPending) continue;
      pending = true;
      moved = moved || operation->moved();
    }
    if (!pending) break;
    if (deadline.passed()) return Status::timeout("a test's operation did not end");
    // Not woken means not needed: a bell that is not rung shows as a timeout.
    if (!moved) doorbell_->wait(seen, deadline.left(kLimit));
  }
  for (const OperationPtr& operation : operations) {
    if (!operation->status().ok()) return operation->status();
  }
  return {};
}

void LinkMember::dropEverybody() {
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) mesh_.drop(other, Status(Code::kCancelled, "the test ends"));
  }
}

LinkGroup::LinkGroup(int ranks, transport::WireSecurity security, int lanes) {
  for (int rank = 0; rank < ranks; ++rank) {
    transport::LinkMeshOptions options = test::options(rank, ranks, security);
    options.lanes = lanes;
    meshes_.push_back(test::startMesh(options));
  }
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b) {
      if (a == b) continue;
      EXPECT_TRUE(meshes_[static_cast<std::size_t>(a)]
                      ->introduce(b, meshes_[static_cast<std::size_t>(b)]->card())
                      .ok());
    }
  }
}

void LinkGroup::run(const std::function<void(LinkMember&)>& body) {
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < meshes_.size(); ++rank) {
    threads.emplace_back([&, rank] {
      LinkMember member(*meshes_[rank], static_cast<int>(rank), static_cast<int>(meshes_.size()));
      body(member);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace farandole::testing
