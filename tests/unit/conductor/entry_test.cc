#include "conductor/entry.h"

#include <gtest/gtest.h>

#include "conductor/completion.h"

namespace farandole::conductor {
namespace {

TEST(Entry, RenewedIsAsIfNew) {
  Entry entry;
  Request& request = entry.request;
  request.name = "x";
  request.meta = {
      control::Kind::kBroadcast, DType::kInt8, ReduceOp::kMax, 3, 2.0, 3.0, 4, 5, {6, 7}, {8}};
  int memory = 0;
  request.input = &memory;
  request.output = &memory;
  request.outputBytes = 4;
  request.splits = {1, 2};
  request.tag = 3;
  request.group = 4;
  request.willWait = request.ordered = request.callbackAnywhere = true;
  request.allocate = [](std::size_t, const std::vector<std::int64_t>&) { return nullptr; };
  request.onComplete = [](std::uint64_t, Code) {};
  auto queue = CompletionQueue::create();
  ASSERT_TRUE(queue.ok());
  request.queue = *queue;
  request.queueTag = 5;
  Outcome& outcome = entry.outcome;
  outcome.status = Status::invalid("no");
  outcome.data = &memory;
  outcome.bytes = 4;
  outcome.shape = {1};
  outcome.splits = {2};
  outcome.lastJoined = 3;
  outcome.source = 4;
  outcome.owned.reset(std::malloc(8));
  entry.handle = 1;
  entry.set = 2;
  entry.exchange.emplace();
  entry.place = 3;
  entry.byName = true;
  entry.done = true;

  entry.renew();

  const control::Meta fresh;
  EXPECT_EQ(request.name, "");
  EXPECT_EQ(request.meta.kind, fresh.kind);
  EXPECT_EQ(request.meta.dtype, fresh.dtype);
  EXPECT_EQ(request.meta.op, fresh.op);
  EXPECT_EQ(request.meta.root, fresh.root);
  EXPECT_EQ(request.meta.prescale, fresh.prescale);
  EXPECT_EQ(request.meta.postscale, fresh.postscale);
  EXPECT_EQ(request.meta.group, fresh.group);
  EXPECT_EQ(request.meta.groupSize, fresh.groupSize);
  EXPECT_TRUE(request.meta.shape.empty() && request.meta.splits.empty());
  EXPECT_TRUE(request.input == nullptr && request.output == nullptr);
  EXPECT_EQ(request.outputBytes, kNoLimit);
  EXPECT_TRUE(request.splits.empty());
  EXPECT_EQ(request.tag, 0);
  EXPECT_EQ(request.group, 0U);
  EXPECT_FALSE(request.willWait || request.ordered || request.callbackAnywhere);
  EXPECT_FALSE(request.allocate || request.onComplete || request.queue);
  EXPECT_EQ(request.queueTag, 0U);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_TRUE(outcome.data == nullptr && outcome.owned == nullptr);
  EXPECT_EQ(outcome.bytes, 0U);
  EXPECT_TRUE(outcome.shape.empty() && outcome.splits.empty());
  EXPECT_EQ(outcome.lastJoined, -1);
  EXPECT_EQ(outcome.source, -1);
  EXPECT_EQ(entry.handle, 0U);
  EXPECT_EQ(entry.set, 0);
  EXPECT_FALSE(entry.exchange || entry.byName || entry.done);
  EXPECT_EQ(entry.place, 0U);
}

TEST(Entry, NamelessOnesAreToldByTheirNumber) {
  Entry entry;
  EXPECT_EQ(nameOf(entry), "");
  entry.exchange.emplace();
  entry.place = 6;
  EXPECT_EQ(nameOf(entry), "ordered allreduce 7");
  entry.request.name = "weights";
  EXPECT_EQ(nameOf(entry), "weights");
}

}  // namespace
}  // namespace farandole::conductor
