// The C++ API on any number of ranks. Every rank runs every case.
#include <farandole/farandole.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace {

using farandole::ReduceOp;
using std::chrono::milliseconds;

static_assert(farandole::dtypeOf<float>() == farandole::DType::kFloat32);
static_assert(farandole::dtypeOf<long>() == farandole::DType::kInt64);
static_assert(farandole::dtypeOf<long long>() == farandole::DType::kInt64);
static_assert(farandole::dtypeOf<char>() == farandole::DType::kInt8 ||
              farandole::dtypeOf<char>() == farandole::DType::kUint8);
static_assert(farandole::dtypeOf<farandole::Bfloat16>() == farandole::DType::kBfloat16);
static_assert(!farandole::Element<unsigned>);
static_assert(!farandole::Element<std::string>);
static_assert(farandole::MutableBuffer<std::vector<float>&>);
static_assert(!farandole::MutableBuffer<const std::vector<float>&>);
static_assert(!farandole::Buffer<std::vector<bool>>);
static_assert(!std::is_copy_constructible_v<farandole::Handle>);
static_assert(!std::is_copy_constructible_v<farandole::SharedBuffer<float>>);
static_assert(farandole::Splits<std::vector<std::int64_t>>);
static_assert(!farandole::Splits<std::vector<std::int32_t>>);
static_assert(!std::is_convertible_v<int, farandole::ProcessSetId>);
static_assert(std::is_convertible_v<farandole::ProcessSet, farandole::ProcessSetId>);

int rank() { return farandole::rank(); }
int size() { return farandole::size(); }

TEST(CppApi, KnowsItsPlace) {
  EXPECT_GE(size(), 1);
  EXPECT_GE(rank(), 0);
  EXPECT_LT(rank(), size());
  EXPECT_TRUE(farandole::isInitialised());
  EXPECT_GE(farandole::localSize(), 1);
  EXPECT_GE(farandole::epoch(), 1U);
}

TEST(CppApi, ReducesVectorsValuesAndSpans) {
  std::vector<float> data{1.0F, static_cast<float>(rank())};
  farandole::allreduce(data, ReduceOp::kSum);
  EXPECT_EQ(data[0], static_cast<float>(size()));
  EXPECT_EQ(data[1], static_cast<float>(size() * (size() - 1) / 2));

  EXPECT_EQ(farandole::allreduce(rank(), ReduceOp::kMax), size() - 1);
  EXPECT_EQ(farandole::allreduce(2.0, ReduceOp::kAverage), 2.0);

  double raw[3] = {1, 2, 3};
  farandole::allreduce(std::span(raw, 2), ReduceOp::kSum, {.prescale = 0.5, .postscale = 4.0});
  EXPECT_EQ(raw[0], 2.0 * size());
  EXPECT_EQ(raw[1], 4.0 * size());
  EXPECT_EQ(raw[2], 3.0);

  std::vector<float> empty;
  farandole::allreduce(empty, ReduceOp::kSum);
}

TEST(CppApi, NamedOperationsMeetInAnyOrder) {
  std::vector<std::int64_t> a{1};
  std::vector<std::int64_t> b{10};
  farandole::Handle first;
  farandole::Handle second;
  const auto startA = [&] {
    first = farandole::allreduceAsync(a, ReduceOp::kSum, {.name = "api.a"});
  };
  const auto startB = [&] {
    second = farandole::allreduceAsync(b, ReduceOp::kSum, {.name = "api.b"});
  };
  if (rank() % 2 == 0) {
    startA();
    startB();
  } else {
    startB();
    startA();
  }
  EXPECT_TRUE(second.wait(milliseconds(20000)));
  EXPECT_TRUE(second.done());
  first.wait();
  EXPECT_EQ(a[0], size());
  EXPECT_EQ(b[0], 10 * size());
}

TEST(CppApi, WaitGivesUpAndMayBeRepeated) {
  if (size() == 1) GTEST_SKIP() << "needs a rank to wait for";
  std::vector<float> data{1.0F};
  std::vector<float> token{0.0F};
  if (rank() == 0) {
    auto handle = farandole::allreduceAsync(data, ReduceOp::kSum, {.name = "api.late"});
    EXPECT_FALSE(handle.wait(milliseconds(20)));
    for (int peer = 1; peer < size(); ++peer) farandole::send(token, peer, 7);
    handle.wait();
  } else {
    EXPECT_EQ(farandole::recv(token, 0, 7), 0);
    farandole::allreduce(data, ReduceOp::kSum, {.name = "api.late"});
  }
  EXPECT_EQ(data[0], static_cast<float>(size()));
}

TEST(CppApi, MovesData) {
  std::vector<std::int32_t> mine(static_cast<std::size_t>(rank()) + 1, rank());
  const std::vector<std::int32_t> all = farandole::allgather(mine);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(size() * (size() + 1) / 2));
  std::size_t at = 0;
  for (int r = 0; r < size(); ++r) {
    for (int k = 0; k <= r; ++k) EXPECT_EQ(all[at++], r);
  }

  std::vector<double> told{rank() == size() - 1 ? 5.0 : 0.0};
  farandole::broadcast(told, size() - 1);
  EXPECT_EQ(told[0], 5.0);
  EXPECT_EQ(farandole::broadcast(rank() + 3, 0), 3);

  std::vector<std::int32_t> letters(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) letters[static_cast<std::size_t>(r)] = 100 * rank() + r;
  const std::vector<std::int32_t> post = farandole::alltoall(letters);
  ASSERT_EQ(post.size(), letters.size());
  for (int r = 0; r < size(); ++r) {
    EXPECT_EQ(post[static_cast<std::size_t>(r)], 100 * r + rank());
  }
}

TEST(CppApi, GathersWithSplits) {
  const std::vector<float> mine(static_cast<std::size_t>(rank()), 1.0F);
  auto handle = farandole::allgatherAsync(mine, {.name = "api.splits"});
  handle.wait();
  const std::vector<std::int64_t> splits = handle.splits();
  ASSERT_EQ(splits.size(), static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) EXPECT_EQ(splits[static_cast<std::size_t>(r)], r);
}

TEST(CppApi, ScattersAndGathers) {
  std::vector<float> whole(static_cast<std::size_t>(2 * size()));
  std::iota(whole.begin(), whole.end(), 0.0F);
  const std::vector<float> part = farandole::reducescatter(whole, ReduceOp::kSum);
  ASSERT_EQ(part.size(), 2U);
  EXPECT_EQ(part[0], static_cast<float>(2 * rank() * size()));

  const std::vector<float> given = farandole::scatter(whole, 0);
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[1], static_cast<float>(2 * rank() + 1));
  const std::vector<float> back = farandole::gather(given, 0);
  EXPECT_EQ(back, rank() == 0 ? whole : std::vector<float>());

  std::vector<float> ones{1.0F};
  farandole::reduce(ones, 0, ReduceOp::kSum);
  if (rank() == 0) {
    EXPECT_EQ(ones[0], static_cast<float>(size()));
  }
  farandole::barrier();
}

TEST(CppApi, RootedOperationsInTheBackground) {
  const int root = size() - 1;
  std::vector<std::int64_t> sum{1, rank()};
  farandole::Handle reduced =
      farandole::reduceAsync(sum, root, ReduceOp::kSum, {.name = "api.reduce"});

  const std::vector<std::int32_t> mine(static_cast<std::size_t>(rank()) + 1, rank());
  farandole::Handle gathered = farandole::gatherAsync(mine, root, {.name = "api.gather"});

  // One element more than there are ranks: the first member gets two.
  std::vector<float> whole(rank() == root ? static_cast<std::size_t>(size()) + 1 : 0);
  std::iota(whole.begin(), whole.end(), 0.0F);
  farandole::Handle scattered = farandole::scatterAsync(whole, root, {.name = "api.scatter"});

  scattered.wait();
  const std::span<const float> part = scattered.data<float>();
  ASSERT_EQ(part.size(), rank() == 0 ? 2U : 1U);
  EXPECT_EQ(part.back(), static_cast<float>(rank() + 1));

  gathered.wait();
  reduced.wait();
  if (rank() == root) {
    EXPECT_EQ(sum[0], size());
    EXPECT_EQ(sum[1], size() * (size() - 1) / 2);
    const std::span<const std::int32_t> all = gathered.data<std::int32_t>();
    ASSERT_EQ(all.size(), static_cast<std::size_t>(size() * (size() + 1) / 2));
    EXPECT_EQ(all.back(), rank());
    EXPECT_EQ(gathered.splits().size(), static_cast<std::size_t>(size()));
    EXPECT_EQ(gathered.splits().back(), size());
  } else {
    EXPECT_TRUE(gathered.data<std::int32_t>().empty());
  }
}

// Member i gets i elements.
std::vector<std::int64_t> rising() {
  std::vector<std::int64_t> splits(static_cast<std::size_t>(size()));
  std::iota(splits.begin(), splits.end(), 0);
  return splits;
}

TEST(CppApi, ReducescatterTakesSplits) {
  const std::vector<std::int64_t> splits = rising();
  const auto total = static_cast<std::size_t>(size() * (size() - 1) / 2);
  const int first = rank() * (rank() - 1) / 2;
  std::vector<std::int32_t> whole(total);
  std::iota(whole.begin(), whole.end(), 0);
  std::vector<std::int32_t> expected(static_cast<std::size_t>(rank()));
  for (int i = 0; i < rank(); ++i) expected[static_cast<std::size_t>(i)] = (first + i) * size();

  EXPECT_EQ(farandole::reducescatter(whole, ReduceOp::kSum, splits, {.name = "api.split"}),
            expected);
  farandole::Handle handle = farandole::reducescatterAsync(whole, ReduceOp::kSum, splits);
  handle.wait();
  const std::span<const std::int32_t> part = handle.data<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(part.begin(), part.end()), expected);
  EXPECT_EQ(handle.shape(), std::vector<std::int64_t>{rank()});

  const std::vector<std::int64_t> wrong(static_cast<std::size_t>(size()), 1000);
  EXPECT_THROW(farandole::reducescatter(whole, ReduceOp::kSum, wrong), farandole::Error);
  farandole::barrier();
}

TEST(CppApi, ScatterTakesSplitsOfTheRoot) {
  const std::vector<std::int64_t> splits = rising();
  const auto total = static_cast<std::size_t>(size() * (size() - 1) / 2);
  std::vector<double> whole(rank() == 0 ? total : 0);
  std::iota(whole.begin(), whole.end(), 0.0);
  std::vector<double> expected(static_cast<std::size_t>(rank()));
  std::iota(expected.begin(), expected.end(), rank() * (rank() - 1) / 2);

  EXPECT_EQ(farandole::scatter(whole, 0, splits, {.name = "api.split"}), expected);
  farandole::Handle handle = farandole::scatterAsync(whole, 0, std::span(splits));
  handle.wait();
  const std::span<const double> part = handle.data<double>();
  EXPECT_EQ(std::vector<double>(part.begin(), part.end()), expected);
}

TEST(CppApi, SendsAndReceivesInTheBackground) {
  if (size() == 1) GTEST_SKIP() << "needs a peer";
  const int next = (rank() + 1) % size();
  const int before = (rank() + size() - 1) % size();
  std::vector<std::int32_t> given{rank()};
  std::vector<std::int32_t> taken{-1};
  farandole::Handle receive = farandole::recvAsync(taken, farandole::kAnyRank, 3);
  farandole::Handle send = farandole::sendAsync(given, next, 3);
  receive.wait();
  send.wait();
  EXPECT_EQ(taken[0], before);
  EXPECT_EQ(receive.result().source, before);
  EXPECT_EQ(receive.result().bytes, sizeof(std::int32_t));
}

TEST(CppApi, ReducesGroups) {
  std::vector<float> a(3, 1.0F);
  std::vector<float> b(5, 2.0F);
  const std::vector<std::span<float>> both{a, b};
  auto handles = farandole::groupedAllreduceAsync<float>(both, ReduceOp::kSum, {.name = "api.g"});
  ASSERT_EQ(handles.size(), 2U);
  for (farandole::Handle& handle : handles) handle.wait();
  EXPECT_EQ(a[2], static_cast<float>(size()));
  EXPECT_EQ(b[4], 2.0F * static_cast<float>(size()));

  farandole::groupedAllreduce<float>(both, ReduceOp::kMax);
  EXPECT_EQ(a[0], static_cast<float>(size()));
}

TEST(CppApi, CountsWhatItHasDone) {
  const farandole::Counters before = farandole::counters();
  EXPECT_EQ(farandole::allreduce(1.0F, ReduceOp::kSum), static_cast<float>(size()));
  const farandole::Counters after = farandole::counters();
  EXPECT_EQ(after.operations, before.operations + 1);
  EXPECT_EQ(after.bytes, before.bytes + sizeof(float));
  EXPECT_EQ(after.planHits + after.planMisses, before.planHits + before.planMisses + 1);
}

TEST(CppApi, SharedBuffersAreSharedAndZeroed) {
  farandole::SharedBuffer<float> buffer(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
  for (const float value : buffer) ASSERT_EQ(value, 0.0F);
  if (size() > 1) {
    EXPECT_TRUE(farandole::isShared(buffer));
    EXPECT_FALSE(farandole::isShared(std::vector<float>(1000)));
  }
  std::fill(buffer.begin(), buffer.end(), 3.0F);
  farandole::allreduce(buffer, ReduceOp::kSum);
  for (const float value : buffer) ASSERT_EQ(value, 3.0F * static_cast<float>(size()));
  EXPECT_TRUE(farandole::SharedBuffer<float>(0).empty());
}

TEST(CppApi, ProcessSetsHaveTheirOwnCollectives) {
  std::vector<std::int32_t> even;
  for (int r = 0; r < size(); r += 2) even.push_back(r);
  const farandole::ProcessSet set(even);
  EXPECT_NE(set.id(), farandole::kWorld);
  EXPECT_EQ(set.included(), rank() % 2 == 0);
  if (set.included()) {
    EXPECT_EQ(set.ranks(), even);
    EXPECT_EQ(farandole::allreduce(1, ReduceOp::kSum, {.set = set}), static_cast<int>(even.size()));
  }
  farandole::barrier();
}

TEST(CppApi, JoinReturnsTheLastRank) {
  // Rank 0 reduces once more than the others, who contribute the neutral element.
  if (rank() == 0) {
    EXPECT_EQ(farandole::allreduce(4.0, ReduceOp::kSum, {.name = "api.more"}), 4.0);
  }
  const int last = farandole::join();
  EXPECT_GE(last, 0);
  EXPECT_LT(last, size());
  EXPECT_EQ(last, farandole::allreduce(last, ReduceOp::kMax));
}

TEST(CppApi, JoinGoesOnInTheBackground) {
  farandole::Handle joined = farandole::joinAsync();
  joined.wait();
  const int last = joined.result().lastJoined;
  EXPECT_GE(last, 0);
  EXPECT_LT(last, size());
  EXPECT_EQ(last, farandole::allreduce(last, ReduceOp::kMax));
}

TEST(CppApi, WrongCallsThrow) {
  std::vector<float> data{1.0F};
  try {
    farandole::broadcast(data, size());
    FAIL() << "there is no such root";
  } catch (const farandole::Error& error) {
    EXPECT_EQ(error.code(), farandole::Code::kInvalidArgument);
    EXPECT_STRNE(error.what(), "");
  }
  EXPECT_THROW(farandole::Handle().wait(), farandole::Error);
  farandole::barrier();
}

TEST(CppApi, MismatchesNameTheTensorAndTheJobGoesOn) {
  if (size() == 1) GTEST_SKIP() << "needs two opinions";
  std::vector<float> data(rank() == 0 ? 2 : 3, 1.0F);
  try {
    farandole::allreduce(data, ReduceOp::kSum, {.name = "api.mismatch"});
    FAIL() << "shapes differ";
  } catch (const farandole::Error& error) {
    EXPECT_EQ(error.code(), farandole::Code::kMismatch);
    EXPECT_EQ(error.tensor(), "api.mismatch");
  }
  EXPECT_EQ(farandole::allreduce(1, ReduceOp::kSum), size());
}

TEST(CppApi, ResultsTellHowAnOperationEnded) {
  std::vector<float> data{1.0F};
  farandole::Handle good = farandole::allreduceAsync(data, ReduceOp::kSum, {.name = "api.good"});
  good.wait();
  EXPECT_EQ(good.result().code, farandole::Code::kOk);
  EXPECT_EQ(good.result().data, data.data());
  EXPECT_FALSE(good.result().error.has_value());

  // Alone, nobody disagrees.
  std::vector<float> other(rank() == 0 ? 2 : 3, 1.0F);
  farandole::Handle bad = farandole::allreduceAsync(other, ReduceOp::kSum, {.name = "api.bad"});
  try {
    bad.wait();
    EXPECT_EQ(size(), 1) << "shapes differ";
  } catch (const farandole::Error& error) {
    EXPECT_EQ(error.code(), farandole::Code::kMismatch);
  }
  const farandole::Result result = bad.result();
  EXPECT_EQ(result.error.has_value(), size() > 1);
  if (result.error) {
    EXPECT_EQ(result.code, farandole::Code::kMismatch);
    EXPECT_EQ(result.error->code(), farandole::Code::kMismatch);
    EXPECT_EQ(result.error->tensor(), "api.bad");
  }
}

TEST(CppApi, ADroppedHandleIsWithdrawn) {
  if (size() == 1) GTEST_SKIP() << "runs at once alone";
  {
    std::vector<float> data(100, 1.0F);
    if (rank() == 0) {
      const auto handle = farandole::allreduceAsync(data, ReduceOp::kSum, {.name = "api.dropped"});
    }
  }
  EXPECT_EQ(farandole::allreduce(1, ReduceOp::kSum), size());
}

}  // namespace
