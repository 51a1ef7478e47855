// farandole_call: start and wait in one.
#include <thread>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

// Ends with nothing left.
farandole_code called(const farandole_request& request) {
  farandole_handle pending = 99;
  const farandole_code code = farandole_call(&request, -1, &pending);
  REQUIRE(pending == 0);
  return code;
}

}  // namespace

// call ORDERED: of all kinds in turn, so that nothing of one operation is left in the next.
CORE_CASE(call) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  const auto me = static_cast<float>(farandole_rank());
  const std::uint32_t flags = arguments.at(0) == "ordered" ? FARANDOLE_FLAG_ORDERED : 0;
  const std::int64_t counts[] = {1, 3};
  for (int i = 0; i < 200; ++i) {
    float value = 1;
    farandole_request request = allreduceOf(i % 3 == 0 ? "with a name" : nullptr, &value, counts);
    request.flags = flags;
    if (i % 2 == 0) request.postscale = 0.5;
    REQUIRE_OK(called(request));
    REQUIRE(value == (i % 2 == 0 ? n / 2 : n));

    float three[] = {me, me, me};
    request = allreduceOf(nullptr, three, counts + 1);
    request.operation = FARANDOLE_BROADCAST;
    request.flags = flags;
    request.root = farandole_size() - 1;
    REQUIRE_OK(called(request));
    REQUIRE(three[2] == n - 1);

    farandole_request barrier = FARANDOLE_REQUEST_INIT;
    barrier.operation = FARANDOLE_BARRIER;
    barrier.flags = flags;
    REQUIRE_OK(called(barrier));

    // A mismatch is told here and gone with the next.
    float other[] = {1, 1, 1};
    request = allreduceOf(nullptr, other, counts + (farandole_rank() == 0 ? 0 : 1));
    request.flags = flags;
    if (i % 50 == 0) REQUIRE_CODE(FARANDOLE_MISMATCH, called(request));
  }
  REQUIRE_OK(farandole_shutdown());
}

CORE_CASE(call_leaves_results) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const std::int64_t one = 1;
  auto mine = static_cast<float>(farandole_rank());
  for (int i = 0; i < 5; ++i) {
    farandole_request request = allreduceOf("gathered", &mine, &one);
    request.operation = FARANDOLE_ALLGATHER;
    request.output = nullptr;
    farandole_handle pending = 0;
    REQUIRE_OK(farandole_call(&request, -1, &pending));
    REQUIRE(pending != 0);
    farandole_result result = emptyResult();
    REQUIRE_OK(farandole_get_result(pending, &result));
    REQUIRE(result.bytes == static_cast<std::size_t>(n) * sizeof(float));
    for (int rank = 0; rank < n; ++rank) {
      REQUIRE(static_cast<const float*>(result.data)[rank] == static_cast<float>(rank));
    }
    REQUIRE_OK(farandole_release(pending));
    requireSum("between", 1.0F, static_cast<float>(n));
  }
  REQUIRE_OK(farandole_shutdown());
}

// The others come half a second later: the call ends, the operation goes on.
CORE_CASE(call_ends_early) {
  REQUIRE_OK(farandole_init(nullptr));
  const std::uint32_t flags = arguments.at(0) == "ordered" ? FARANDOLE_FLAG_ORDERED : 0;
  const auto n = static_cast<float>(farandole_size());
  const std::int64_t one = 1;
  for (const bool signalled : {false, true}) {
    float value = 1;
    farandole_request request = allreduceOf(nullptr, &value, &one);
    request.flags = flags;
    farandole_handle pending = 0;
    if (farandole_rank() == 0 && !signalled) {
      REQUIRE_CODE(FARANDOLE_TIMEOUT, farandole_call(&request, 50, &pending));
      REQUIRE(lastMessage().find("allreduce") != std::string::npos);
    } else if (farandole_rank() == 0) {
      interrupting(
          [&] { REQUIRE_CODE(FARANDOLE_INTERRUPTED, farandole_call(&request, -1, &pending)); });
    } else {
      sleepMs(1000);
      REQUIRE_OK(called(request));
    }
    if (farandole_rank() == 0) {
      REQUIRE(pending != 0);
      // Another call meanwhile must not disturb it.
      float wrong = 1;
      farandole_request bad = allreduceOf(nullptr, &wrong, &one);
      bad.dtype = 1000;
      REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, called(bad));
      REQUIRE_OK(farandole_wait(pending, -1));
      REQUIRE_OK(farandole_release(pending));
    }
    REQUIRE(value == n);
    requireSum("between", 1.0F, n);
  }
  REQUIRE_OK(farandole_shutdown());
}

CORE_CASE(call_refuses) {
  const std::int64_t one = 1;
  float value = 1;
  farandole_request request = allreduceOf("x", &value, &one);
  REQUIRE_CODE(FARANDOLE_NOT_INITIALISED, called(request));
  REQUIRE_OK(farandole_init(nullptr));
  farandole_handle pending = 0;
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_call(nullptr, -1, &pending));
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_call(&request, -1, nullptr));
  request.on_complete = [](void*, farandole_handle, farandole_code) {};
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, called(request));
  REQUIRE(lastMessage().find("farandole_submit") != std::string::npos);
  request.on_complete = nullptr;
  request.set = 77;
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, called(request));
  requireSum("after all", 1.0F, static_cast<float>(farandole_size()));
  REQUIRE_OK(farandole_shutdown());
}

// Each thread has names of its own; whoever drives ends the others' operations.
CORE_CASE(call_from_threads) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, n] {
      const std::string name = "thread " + std::to_string(t);
      const std::int64_t count = t + 1;
      for (int i = 0; i < 300; ++i) {
        std::vector<float> values(static_cast<std::size_t>(count), static_cast<float>(i));
        REQUIRE_OK(called(allreduceOf(name.c_str(), values.data(), &count)));
        for (const float value : values) REQUIRE(value == n * static_cast<float>(i));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
