// Messages between two members, matched by tag.
#include <chrono>
#include <cstring>
#include <thread>

#include "multiproc/mpi/rank.h"

namespace farandole::test {
namespace {

using collective::Communicator;
using collective::kAnyMember;
using collective::Received;

std::vector<std::uint8_t> content(std::size_t bytes, int seed) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::uint8_t>(i * 13 + static_cast<std::size_t>(seed));
  }
  return data;
}

// Everybody to everybody, itself too, several tags, received in another order than sent.
void crowd(Communicator& all, std::size_t bytes) {
  constexpr int kTags = 5;
  const auto tag = [](int i) { return i == 4 ? 0x7ffffff0 : i * 1000; };
  std::vector<collective::OperationPtr> operations;
  std::vector<std::vector<std::uint8_t>> out;
  std::vector<std::vector<std::uint8_t>> in;
  std::vector<Received> received(static_cast<std::size_t>(all.size() * kTags));
  out.reserve(received.size());
  in.reserve(received.size());
  for (int to = 0; to < all.size(); ++to) {
    for (int i = 0; i < kTags; ++i) {
      out.push_back(content(bytes, all.member() * 10 + i));
      operations.push_back(all.send(out.back().data(), bytes, to, tag(i)));
    }
  }
  for (int from = 0; from < all.size(); ++from) {
    for (int i = kTags - 1; i >= 0; --i) {
      in.emplace_back(bytes + 1);
      operations.push_back(
          all.receive(in.back().data(), bytes + 1, from, tag(i), &received[in.size() - 1]));
    }
  }
  // A collective is not disturbed by them.
  std::vector<float> value(1000, 1.0f);
  const collective::Piece piece{value.data(), value.data(), 1000};
  operations.push_back(all.allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {}));
  driveAll(operations, "messages");
  for (std::size_t i = 0; i < in.size(); ++i) {
    const int from = static_cast<int>(i) / kTags;
    const int which = kTags - 1 - static_cast<int>(i) % kTags;
    if (received[i].source != from || received[i].bytes != bytes) fail("message: wrong envelope");
    in[i].resize(bytes);
    if (in[i] != content(bytes, from * 10 + which)) fail("message: wrong content");
  }
  if (value[0] != static_cast<float>(all.size())) fail("allreduce beside messages is wrong");
}

// The first of two of the same tag comes first, also from anybody.
void order(Communicator& all) {
  const std::uint64_t values[] = {1, 2, 3};
  if (all.member() != 0) {
    for (const std::uint64_t& value : values) run(all.send(&value, sizeof value, 0, 7), "send");
    return;
  }
  std::vector<std::uint64_t> last(static_cast<std::size_t>(all.size()), 0);
  for (int i = 0; i < 3 * (all.size() - 1); ++i) {
    std::uint64_t value = 0;
    Received received;
    run(all.receive(&value, sizeof value, kAnyMember, 7, &received), "receive from anybody");
    if (received.bytes != sizeof value || received.source <= 0) fail("anybody: wrong envelope");
    std::uint64_t& before = last[static_cast<std::size_t>(received.source)];
    if (value != before + 1) fail("messages of one tag overtook each other");
    before = value;
  }
}

void tooSmall(Communicator& all, std::size_t bytes) {
  auto data = content(bytes, 0);
  Status status;
  if (all.member() == 0) {
    const auto send = all.send(data.data(), bytes, 1, 3);
    status = drive(*send, "too large");
  } else if (all.member() == 1) {
    Received received;
    const auto receive = all.receive(data.data(), bytes - 1, kAnyMember, 3, &received);
    status = drive(*receive, "too small");
  }
  if (all.member() < 2) {
    const bool named = status.message().find(std::to_string(bytes)) != std::string::npos &&
                       status.message().find(std::to_string(bytes - 1)) != std::string::npos;
    if (status.code() != Code::kMismatch || !named) fail("too small: " + status.message());
  }
  run(all.barrier(), "after a refusal");
}

// Given up before anybody took it: the receiver is told, and the next message is not disturbed.
void givenUp(Communicator& all) {
  auto data = content(100'000, 1);
  if (all.member() == 0) {
    {
      const auto lost = all.send(data.data(), data.size(), 1, 9);
      static_cast<void>(lost->progress());
    }
    run(all.barrier(), "given up");
    run(all.send(data.data(), data.size(), 1, 9), "after giving up");
  } else {
    run(all.barrier(), "given up");
    if (all.member() != 1) return;
    std::vector<std::uint8_t> taken(data.size());
    Received received;
    const auto receive = all.receive(taken.data(), taken.size(), 0, 9, &received);
    const Status status = drive(*receive, "given up");
    if (status.code() != Code::kCancelled) fail("given up: " + status.message());
    run(all.receive(taken.data(), taken.size(), 0, 9, &received), "after giving up");
    if (taken != data) fail("after giving up: wrong content");
  }
}

}  // namespace

void messages() {
  const auto engine = startEngine();
  const auto all = everybody(*engine);
  for (const std::size_t bytes : {0, 1, 2048, 2049, 300'000, 3'000'000}) crowd(*all, bytes);
  order(*all);
  if (all->size() > 1) {
    tooSmall(*all, 10);
    tooSmall(*all, 100'000);
    givenUp(*all);
  }
  {
    // A receive that nobody answers can be given up.
    int value = 0;
    Received received;
    const auto never = all->receive(&value, sizeof value, kAnyMember, 99, &received);
    static_cast<void>(never->progress());
  }
  run(all->barrier(), "the end");
}

}  // namespace farandole::test
