// Operations that move bytes, with uneven, empty and large parts.
#include <cstring>
#include <numeric>

#include "multiproc/mpi/rank.h"

namespace farandole::test {
namespace {

using collective::Communicator;
using collective::kAnyMember;

std::byte pattern(int from, int to, std::size_t i) {
  return static_cast<std::byte>((i * 31 + i / 256 + static_cast<std::size_t>(from * 7 + to)) % 251);
}
void write(std::byte* at, std::size_t bytes, int from, int to) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = pattern(from, to, i);
}
void expect(const std::byte* at, std::size_t bytes, int from, int to, const std::string& what) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != pattern(from, to, i)) {
      fail(what + ": byte " + std::to_string(i) + " from " + std::to_string(from) + " is wrong");
    }
  }
}

std::vector<std::int64_t> uneven(int size, std::int64_t base) {
  std::vector<std::int64_t> counts;
  for (int i = 0; i < size; ++i) counts.push_back(i == 0 ? 0 : base * i + 1);
  return counts;
}
std::size_t sum(const std::vector<std::int64_t>& counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
}

void collect(Communicator& all, const std::vector<std::int64_t>& counts, int root) {
  const std::string what =
      (root == kAnyMember ? "allgather of " : "gather of ") + std::to_string(counts.back());
  const auto mine = static_cast<std::size_t>(counts[static_cast<std::size_t>(all.member())]);
  Buffer in(mine);
  Buffer out(sum(counts));
  write(in.at(0), mine, all.member(), 0);
  if (root == kAnyMember) {
    run(all.allgather(in.data(), out.data(), counts, DType::kInt8), what);
  } else {
    run(all.gather(in.data(), all.member() == root ? out.data() : nullptr, counts, DType::kInt8,
                   root),
        what);
    if (all.member() != root) return;
  }
  std::size_t at = 0;
  for (int member = 0; member < all.size(); ++member) {
    const auto bytes = static_cast<std::size_t>(counts[static_cast<std::size_t>(member)]);
    expect(out.at(at), bytes, member, 0, what);
    at += bytes;
  }
  out.checkGuard(what);
}

void scatterOnce(Communicator& all, const std::vector<std::int64_t>& counts, int root) {
  const auto mine = static_cast<std::size_t>(counts[static_cast<std::size_t>(all.member())]);
  Buffer in(sum(counts));
  Buffer out(mine);
  std::size_t at = 0;
  for (int member = 0; member < all.size(); ++member) {
    const auto bytes = static_cast<std::size_t>(counts[static_cast<std::size_t>(member)]);
    write(in.at(at), bytes, root, member);
    at += bytes;
  }
  run(all.scatter(all.member() == root ? in.data() : nullptr, out.data(), counts, DType::kInt8,
                  root),
      "scatter");
  expect(out.at(0), mine, root, all.member(), "scatter");
  out.checkGuard("scatter");
}

void alltoallOnce(Communicator& all, std::int64_t base) {
  const auto count = [&](int from, int to) {
    return from == to && from == 0 ? 0 : base * ((from + 2 * to) % 3) + from;
  };
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
  for (int member = 0; member < all.size(); ++member) {
    sent.push_back(count(all.member(), member));
    received.push_back(count(member, all.member()));
  }
  Buffer in(sum(sent));
  Buffer out(sum(received));
  std::size_t at = 0;
  for (int member = 0; member < all.size(); ++member) {
    const auto bytes = static_cast<std::size_t>(sent[static_cast<std::size_t>(member)]);
    write(in.at(at), bytes, all.member(), member);
    at += bytes;
  }
  run(all.alltoall(in.data(), sent, out.data(), received, DType::kUint8), "alltoall");
  at = 0;
  for (int member = 0; member < all.size(); ++member) {
    const auto bytes = static_cast<std::size_t>(received[static_cast<std::size_t>(member)]);
    expect(out.at(at), bytes, member, all.member(), "alltoall");
    at += bytes;
  }
  out.checkGuard("alltoall");
}

void broadcastOnce(Communicator& all, const std::vector<std::int64_t>& counts, int root,
                   bool inPlace) {
  std::vector<Buffer> in;
  std::vector<Buffer> out;
  std::vector<collective::Piece> pieces;
  in.reserve(counts.size());
  out.reserve(counts.size());
  for (const std::int64_t count : counts) {
    const auto bytes = static_cast<std::size_t>(count) * 4;
    in.emplace_back(bytes);
    out.emplace_back(bytes);
    write(in.back().at(0), bytes, all.member(), 0);
    pieces.push_back({in.back().data(), inPlace ? in.back().data() : out.back().data(), count});
  }
  run(all.broadcast(pieces, DType::kFloat32, root), "broadcast");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Buffer& result = inPlace ? in[i] : out[i];
    expect(result.at(0), static_cast<std::size_t>(counts[i]) * 4, root, 0, "broadcast");
    result.checkGuard("broadcast");
  }
}

}  // namespace

void moves() {
  const auto engine = startEngine();
  const auto all = everybody(*engine);
  for (const std::int64_t base : {0, 1, 1000, 600'000}) {
    const std::vector<std::int64_t> even(static_cast<std::size_t>(all->size()), base);
    for (const auto& counts : {even, uneven(all->size(), base)}) {
      collect(*all, counts, kAnyMember);
      for (const int root : {0, all->size() - 1}) {
        collect(*all, counts, root);
        scatterOnce(*all, counts, root);
      }
    }
    alltoallOnce(*all, base);
  }
  for (const int root : {0, all->size() - 1}) {
    for (const bool inPlace : {true, false}) {
      broadcastOnce(*all, {5'000'000}, root, inPlace);
      broadcastOnce(*all, {1, 0, 70'000, 3, 1000}, root, inPlace);
      broadcastOnce(*all, {}, root, inPlace);
    }
  }
  for (int i = 0; i < 10; ++i) run(all->barrier(), "barrier");
}

// More than 2^31 bytes and elements. Two ranks need 8 GiB of memory.
void large() {
  const auto engine = startEngine();
  const auto all = everybody(*engine);
  const std::int64_t half = (std::int64_t{1} << 30) + 5;
  const std::int64_t count = 2 * half;
  std::vector<std::uint8_t> data(static_cast<std::size_t>(count), 1);
  const collective::Piece piece{data.data(), data.data(), count};
  run(all->allreduce(std::span(&piece, 1), DType::kUint8, ReduceOp::kSum, {}), "large allreduce");
  run(all->broadcast(std::span(&piece, 1), DType::kUint8, 0), "large broadcast");
  const auto check = [&](std::uint8_t want, const char* what) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data[i] != want) fail(std::string(what) + ": byte " + std::to_string(i) + " is wrong");
    }
  };
  check(static_cast<std::uint8_t>(all->size()), "large allreduce");

  const std::vector<std::int64_t> counts(static_cast<std::size_t>(all->size()),
                                         count / all->size() + 100'000'000);
  std::vector<std::uint8_t> mine(static_cast<std::size_t>(counts[0]), 9);
  data.assign(sum(counts), 0);
  run(all->allgather(mine.data(), data.data(), counts, DType::kUint8), "large allgather");
  check(9, "large allgather");
  data.assign(data.size(), 0);
  run(all->gather(mine.data(), data.data(), counts, DType::kUint8, 0), "large gather");
  if (all->member() == 0) check(9, "large gather");

  collective::Received received;
  data.assign(static_cast<std::size_t>(count), static_cast<std::uint8_t>(all->member()));
  if (all->member() == 0) run(all->send(data.data(), data.size(), 1, 0), "large send");
  if (all->member() == 1) {
    run(all->receive(data.data(), data.size(), 0, 0, &received), "large receive");
    if (received.bytes != data.size()) fail("large receive: a part is missing");
    check(0, "large receive");
  }
}

}  // namespace farandole::test
