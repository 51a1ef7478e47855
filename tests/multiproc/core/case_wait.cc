// Waiting, and the other ways to learn that something is done.
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

double cpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Called {
  std::atomic<int> times{0};
  std::atomic<int> code{-1};
  std::atomic<farandole_handle> handle{0};
};

void onComplete(void* user, farandole_handle handle, farandole_code code) {
  auto* called = static_cast<Called*>(user);
  // Waiting in a callback would be waiting for oneself; it is refused unless there is nothing to
  // wait for.
  called->handle.store(handle);
  called->code.store(code);
  called->times.fetch_add(1);
}

void awaitCalls(const Called& called, int times) {
  for (int i = 0; i < 10'000 && called.times.load() < times; ++i) sleepMs(1);
  REQUIRE(called.times.load() == times);
}

}  // namespace

// The others come half a second later.
CORE_CASE(wait_timeout) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  float value = 1;
  const std::int64_t one = 1;
  if (farandole_rank() != 0) sleepMs(500);
  const farandole_handle handle = submit(allreduceOf("slow", &value, &one));
  if (farandole_rank() == 0) {
    std::int32_t done = 1;
    REQUIRE_OK(farandole_test(handle, &done));
    REQUIRE(done == 0);
    REQUIRE_CODE(FARANDOLE_TIMEOUT, farandole_wait(handle, 0));
    REQUIRE_CODE(FARANDOLE_TIMEOUT, farandole_wait(handle, 50));
    REQUIRE(lastMessage().find("'slow'") != std::string::npos);
    farandole_result result = emptyResult();
    REQUIRE_OK(farandole_get_result(handle, &result));
    REQUIRE(result.code == FARANDOLE_TIMEOUT);
  }
  REQUIRE_OK(farandole_wait(handle, -1));
  REQUIRE_OK(farandole_wait(handle, 0));
  REQUIRE(value == static_cast<float>(n));
  REQUIRE_OK(farandole_release(handle));
  REQUIRE_OK(farandole_shutdown());
}

// A signal ends the wait, not the operation.
CORE_CASE(wait_interrupted) {
  REQUIRE_OK(farandole_init(nullptr));
  float value = 1;
  const std::int64_t one = 1;
  if (farandole_rank() != 0) sleepMs(1000);
  const farandole_handle handle = submit(allreduceOf("slow", &value, &one));
  if (farandole_rank() == 0) {
    interrupting([&] { REQUIRE_CODE(FARANDOLE_INTERRUPTED, farandole_wait(handle, -1)); });
  }
  REQUIRE_OK(farandole_wait(handle, -1));
  REQUIRE(value == static_cast<float>(farandole_size()));
  REQUIRE_OK(farandole_release(handle));
  REQUIRE_OK(farandole_shutdown());
}

// cancel RANK: that rank withdraws what the others have not submitted yet.
CORE_CASE(cancel) {
  REQUIRE_OK(farandole_init(nullptr));
  const int canceller = std::stoi(arguments.at(0));
  const auto n = static_cast<float>(farandole_size());
  const std::int64_t one = 1;
  for (int round = 0; round < 3; ++round) {
    float value = 1;
    if (farandole_rank() == canceller) {
      const farandole_handle handle = submit(allreduceOf("withdrawn", &value, &one));
      REQUIRE_OK(farandole_cancel(handle));
      REQUIRE_CODE(FARANDOLE_CANCELLED, farandole_wait(handle, -1));
      REQUIRE(value == 1.0F);
      REQUIRE_OK(farandole_release(handle));
      requireSum("go", 1.0F, n);
    } else {
      requireSum("go", 1.0F, n);
      const farandole_handle handle = submit(allreduceOf("withdrawn", &value, &one));
      REQUIRE_CODE(FARANDOLE_MISMATCH, farandole_wait(handle, -1));
      const farandole_error error = errorOf(handle);
      REQUIRE(error.rank == canceller);
      REQUIRE(contains(error, "cancelled by rank " + std::to_string(canceller)));
      REQUIRE_OK(farandole_release(handle));
    }
    requireSum("between", 1.0F, n);
    requireSum("withdrawn", 1.0F, n);
  }
  // What is done cannot be cancelled.
  float value = 1;
  const farandole_handle handle = submit(allreduceOf("done", &value, &one));
  REQUIRE_OK(farandole_wait(handle, -1));
  REQUIRE_CODE(FARANDOLE_UNAVAILABLE, farandole_cancel(handle));
  REQUIRE_OK(farandole_wait(handle, -1));
  REQUIRE_OK(farandole_release(handle));
  REQUIRE_OK(farandole_shutdown());
}

CORE_CASE(callbacks) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  const std::int64_t one = 1;
  Called called;
  for (int i = 1; i <= 50; ++i) {
    float value = 1;
    farandole_request request = allreduceOf("told", &value, &one);
    request.on_complete = onComplete;
    request.on_complete_user = &called;
    const farandole_handle handle = submit(request);
    // Nobody waits: the library's own thread brings it to its end.
    awaitCalls(called, i);
    REQUIRE(called.code.load() == FARANDOLE_OK && called.handle.load() == handle);
    REQUIRE(value == n);
    REQUIRE_OK(farandole_release(handle));
  }
  requireSum("together", 1.0F, n);
  Called last;
  float value = 1;
  const std::string alone = "alone" + std::to_string(farandole_rank());
  farandole_request request = allreduceOf(alone.c_str(), &value, &one);
  request.on_complete = onComplete;
  request.on_complete_user = &last;
  const farandole_handle handle = submit(request);
  REQUIRE_OK(farandole_shutdown());
  const int times = last.times.load();
  REQUIRE(times == 1);
  REQUIRE(last.code.load() == FARANDOLE_SHUTDOWN || last.code.load() == FARANDOLE_PEER_LOST);
  sleepMs(50);
  REQUIRE(last.times.load() == times);
  REQUIRE_OK(farandole_release(handle));
}

// A batch of requests, learnt of through a queue.
CORE_CASE(completion_queue) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  farandole_queue* queue = nullptr;
  std::int32_t event = -1;
  REQUIRE_OK(farandole_queue_create(&queue, &event));
  constexpr std::size_t kCount = 20;
  const std::int64_t one = 1;
  const auto readable = [&](int milliseconds) {
    pollfd entry{event, POLLIN, 0};
    return ::poll(&entry, 1, milliseconds) == 1;
  };
  for (int round = 0; round < 10; ++round) {
    float values[kCount];
    std::string names[kCount];
    farandole_request requests[kCount];
    farandole_handle handles[kCount] = {};
    REQUIRE(!readable(0));
    for (std::size_t i = 0; i < kCount; ++i) {
      values[i] = static_cast<float>(i);
      names[i] = "batch" + std::to_string(i);
      requests[i] = allreduceOf(names[i].c_str(), &values[i], &one);
      requests[i].queue = queue;
      requests[i].queue_tag = 1000 + i;
    }
    REQUIRE_OK(farandole_submit(requests, kCount, handles));
    std::vector<bool> seen(kCount, false);
    for (std::size_t popped = 0; popped < kCount;) {
      REQUIRE(readable(30'000));
      farandole_completion completions[7];
      const std::size_t got = farandole_queue_pop(queue, completions, 7);
      REQUIRE(got >= 1);
      for (std::size_t k = 0; k < got; ++k) {
        const std::size_t i = completions[k].tag - 1000;
        REQUIRE(i < kCount && !seen[i]);
        seen[i] = true;
        REQUIRE(completions[k].handle == handles[i] && completions[k].code == FARANDOLE_OK);
        REQUIRE(values[i] == n * static_cast<float>(i));
        REQUIRE_OK(farandole_release(handles[i]));
      }
      popped += got;
    }
  }
  // Waited for, not popped.
  float value = 1;
  farandole_request last = allreduceOf("last", &value, &one);
  last.queue = queue;
  // The other rank comes only after "go".
  if (farandole_rank() != 0) requireSum("go", 1.0F, n);
  const farandole_handle handle = submit(last);
  if (farandole_rank() == 0) {
    REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_queue_destroy(queue));
    requireSum("go", 1.0F, n);
  }
  REQUIRE_OK(farandole_wait(handle, -1));
  REQUIRE_OK(farandole_queue_destroy(queue));
  REQUIRE_OK(farandole_release(handle));
  REQUIRE_OK(farandole_shutdown());
}

// threads COUNT OPERATIONS: each thread with names of its own.
CORE_CASE(threads) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const int operations = std::stoi(arguments.at(1));
  std::vector<std::thread> threads;
  for (int t = 0; t < std::stoi(arguments.at(0)); ++t) {
    threads.emplace_back([=] {
      const std::string name = "thread" + std::to_string(t);
      const std::int64_t shape = 100 * (t + 1);
      std::vector<float> data(static_cast<std::size_t>(shape));
      for (int i = 0; i < operations; ++i) {
        data.assign(data.size(), static_cast<float>(t + i));
        REQUIRE_OK(run(allreduceOf(name.c_str(), data.data(), &shape)));
        REQUIRE(data.front() == static_cast<float>(n * (t + i)));
        REQUIRE(data.back() == static_cast<float>(n * (t + i)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  REQUIRE_OK(farandole_shutdown());
}

// Messages between two ranks, matched by sender and tag.
CORE_CASE(send_and_receive) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const int me = farandole_rank();
  const std::int64_t shape = 50'000;
  const auto message = [&](int operation, int peer, int tag, float* data) {
    farandole_request request = allreduceOf(nullptr, data, &shape);
    request.operation = operation;
    request.root = peer;
    request.tag = tag;
    return request;
  };
  if (me == 0) {
    std::vector<bool> heard(static_cast<std::size_t>(n), false);
    std::vector<float> data(50'000);
    for (int i = 1; i < n; ++i) {
      const farandole_handle handle =
          submit(message(FARANDOLE_RECV, FARANDOLE_ANY_RANK, 7, data.data()));
      REQUIRE_OK(farandole_wait(handle, -1));
      farandole_result result = emptyResult();
      REQUIRE_OK(farandole_get_result(handle, &result));
      REQUIRE(result.source > 0 && result.source < n);
      REQUIRE(!heard[static_cast<std::size_t>(result.source)]);
      heard[static_cast<std::size_t>(result.source)] = true;
      REQUIRE(result.bytes == 50'000 * sizeof(float));
      REQUIRE(data.front() == static_cast<float>(700 + result.source));
      REQUIRE(data.back() == static_cast<float>(700 + result.source));
      REQUIRE_OK(farandole_release(handle));
    }
    // In the order of tags that they were not sent in.
    for (const int tag : {9, 8}) {
      for (int peer = 1; peer < n; ++peer) {
        REQUIRE_OK(run(message(FARANDOLE_RECV, peer, tag, data.data())));
        REQUIRE(data.back() == static_cast<float>(100 * tag + peer));
      }
    }
  } else {
    std::vector<float> data[3];
    farandole_handle handles[3];
    for (int i = 0; i < 3; ++i) {
      data[i].assign(50'000, static_cast<float>(100 * (7 + i) + me));
      handles[i] = submit(message(FARANDOLE_SEND, 0, 7 + i, data[i].data()));
    }
    for (const auto handle : handles) {
      REQUIRE_OK(farandole_wait(handle, -1));
      REQUIRE_OK(farandole_release(handle));
    }
  }
  farandole_handle none = 0;
  const farandole_request toMyself = message(FARANDOLE_SEND, me, 0, nullptr);
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_submit(&toMyself, 1, &none));
  requireSum("after", 1.0F, static_cast<float>(n));
  REQUIRE_OK(farandole_shutdown());
}

// Rank 1 comes three seconds later: the others sleep meanwhile.
CORE_CASE(waiting_costs_nothing) {
  REQUIRE_OK(farandole_init(nullptr));
  requireSum("start", 1.0F, static_cast<float>(farandole_size()));
  if (farandole_rank() == 1) sleepMs(3000);
  const double cpu = cpuSeconds();
  const std::int64_t start = monotonicNanoseconds();
  requireSum("late", 1.0F, static_cast<float>(farandole_size()));
  if (farandole_rank() != 1) {
    const double wall = static_cast<double>(monotonicNanoseconds() - start) * 1e-9;
    const double burnt = cpuSeconds() - cpu;
    say("waited " + std::to_string(wall) + " s with " + std::to_string(burnt) + " s of processor");
    REQUIRE(wall > 2.0);
    REQUIRE(burnt < 0.1 * wall);
  }
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
