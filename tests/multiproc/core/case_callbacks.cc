// Callbacks on whichever thread brings the operation to its end.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

constexpr std::int64_t kOne = 1;

thread_local int inside = 0;

// Marks a callback, and that none runs inside of another one.
struct Inside {
  Inside() { REQUIRE(inside++ == 0); }
  ~Inside() { --inside; }
};

void waitUntil(const std::atomic<int>& count, int value) {
  for (int i = 0; i < 30'000 && count.load() < value; ++i) sleepMs(1);
  REQUIRE(count.load() == value);
}

farandole_request directly(const char* name, float* value, farandole_callback callback,
                           void* user) {
  farandole_request request = allreduceOf(name, value, &kOne);
  request.flags = FARANDOLE_FLAG_CALLBACK_ANYWHERE;
  request.on_complete = callback;
  request.on_complete_user = user;
  return request;
}

bool hasThread(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string comm;
    if (std::getline(file, comm) && comm == name) return true;
  }
  return false;
}

struct Calls {
  std::atomic<int> times{0};
  std::atomic<int> here{0};  // on `waiter`
  std::atomic<int> code{-1};
  std::thread::id waiter = std::this_thread::get_id();
};

void count(void* user, farandole_handle, farandole_code code) {
  const Inside mark;
  auto* calls = static_cast<Calls*>(user);
  calls->code.store(code);
  if (std::this_thread::get_id() == calls->waiter) calls->here.fetch_add(1);
  calls->times.fetch_add(1);
}

// Every callback starts the next operation, until there were kChain of them.
struct Chain {
  static constexpr int kChain = 200;
  float value = 1;
  std::atomic<int> done{0};

  farandole_handle start() {
    value = 1;
    farandole_request request = directly("chain", &value, &Chain::next, this);
    // Not true of a callback; it must not be believed.
    request.flags |= FARANDOLE_FLAG_WILL_WAIT;
    return submit(request);
  }

  static void next(void* user, farandole_handle handle, farandole_code code) {
    const Inside mark;
    auto* chain = static_cast<Chain*>(user);
    REQUIRE(code == FARANDOLE_OK);
    REQUIRE_OK(farandole_release(handle));
    REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_shutdown());
    if (chain->done.fetch_add(1) + 1 >= kChain) return;
    const farandole_handle started = chain->start();
    // Waiting is refused, unless it is done, or released by its own callback on another thread.
    const farandole_code waited = farandole_wait(started, -1);
    REQUIRE(waited == FARANDOLE_INVALID_ARGUMENT || waited == FARANDOLE_OK);
    // Drives a little, and runs no callback inside of this one.
    std::int32_t over = 0;
    const farandole_code tested = farandole_test(started, &over);
    REQUIRE(tested == FARANDOLE_INVALID_ARGUMENT || tested == FARANDOLE_OK);
  }
};

struct Slow {
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
};

void slowly(void* user, farandole_handle, farandole_code) {
  auto* slow = static_cast<Slow*>(user);
  slow->begun.fetch_add(1);
  sleepMs(100);
  slow->ended.fetch_add(1);
}

}  // namespace

CORE_CASE(callbacks_anywhere) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  Calls calls;
  constexpr int kRounds = 200;
  for (int i = 1; i <= kRounds; ++i) {
    float value = 1;
    farandole_request request = directly("told", &value, count, &calls);
    request.flags |= FARANDOLE_FLAG_WILL_WAIT;
    const farandole_handle handle = submit(request);
    REQUIRE_OK(farandole_wait(handle, -1));
    REQUIRE(value == n);
    waitUntil(calls.times, i);
    REQUIRE_OK(farandole_release(handle));
  }
  // Whoever waits drives, as a rule.
  REQUIRE(calls.here.load() > 0);
  for (int i = 1; i <= 50; ++i) {
    float value = 1;
    const farandole_handle handle = submit(directly("untold", &value, count, &calls));
    waitUntil(calls.times, kRounds + i);
    REQUIRE(value == n);
    REQUIRE_OK(farandole_release(handle));
  }
  // A mismatch is told of as well.
  float values[2] = {1, 1};
  const std::int64_t shape = farandole_rank() == 0 ? 1 : 2;
  farandole_request wrong = directly("wrong", values, count, &calls);
  wrong.shape = &shape;
  const farandole_handle handle = submit(wrong);
  waitUntil(calls.times, kRounds + 51);
  REQUIRE(calls.code.load() == FARANDOLE_MISMATCH);
  REQUIRE_OK(farandole_release(handle));
  REQUIRE(!hasThread("fd-complete"));
  REQUIRE_OK(farandole_shutdown());
}

CORE_CASE(callbacks_that_submit) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  Chain chain;
  chain.start();
  // Meanwhile this thread is one of those that may run them.
  for (int i = 0; i < 100; ++i) requireSum("beside", 1.0F, n);
  waitUntil(chain.done, Chain::kChain);
  REQUIRE(chain.value == n);
  REQUIRE_OK(farandole_shutdown());
}

CORE_CASE(callbacks_of_many_threads) {
  REQUIRE_OK(farandole_init(nullptr));
  constexpr int kThreads = 4;
  constexpr int kOperations = 100;
  Calls calls;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "thread" + std::to_string(t);
      for (int i = 0; i < kOperations; ++i) {
        float value = 1;
        const farandole_handle handle = submit(directly(name.c_str(), &value, count, &calls));
        REQUIRE_OK(farandole_wait(handle, -1));
        REQUIRE(value == static_cast<float>(farandole_size()));
        REQUIRE_OK(farandole_release(handle));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  waitUntil(calls.times, kThreads * kOperations);
  REQUIRE_OK(farandole_shutdown());
}

// What is pending ends inside of shutdown, on whatever thread; nothing comes later.
CORE_CASE(callbacks_at_shutdown) {
  REQUIRE_OK(farandole_init(nullptr));
  requireSum("together", 1.0F, static_cast<float>(farandole_size()));
  const std::string names[] = {"a" + std::to_string(farandole_rank()),
                               "b" + std::to_string(farandole_rank())};
  float values[2] = {1, 1};
  Slow slow;
  Calls calls;
  const farandole_handle waited = submit(directly(names[0].c_str(), &values[0], slowly, &slow));
  const farandole_handle alone = submit(directly(names[1].c_str(), &values[1], count, &calls));
  std::thread waiter([&] {
    const farandole_code code = farandole_wait(waited, -1);
    REQUIRE(code == FARANDOLE_SHUTDOWN || code == FARANDOLE_PEER_LOST);
  });
  sleepMs(20);
  REQUIRE_OK(farandole_shutdown());
  REQUIRE(slow.begun.load() == 1 && slow.ended.load() == 1);
  REQUIRE(calls.times.load() == 1);
  REQUIRE(calls.code.load() == FARANDOLE_SHUTDOWN || calls.code.load() == FARANDOLE_PEER_LOST);
  waiter.join();
  REQUIRE_OK(farandole_release(waited));
  REQUIRE_OK(farandole_release(alone));
}

}  // namespace farandole::test
