// Init, shutdown, fork: the life of a rank.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

// Every call of a process that is no rank, and its code.
void requireEveryCall(farandole_code expected) {
  float value = 1;
  const std::int64_t one = 1;
  const farandole_request request = allreduceOf("nowhere", &value, &one);
  farandole_handle handle = 0;
  farandole_set set = 0;
  const std::int32_t rank = 0;
  farandole_counters counters{};
  counters.struct_size = sizeof counters;
  REQUIRE_CODE(expected, farandole_submit(&request, 1, &handle));
  REQUIRE_CODE(expected, farandole_add_set(&rank, 1, &set));
  REQUIRE_CODE(expected, farandole_remove_set(1));
  REQUIRE_CODE(expected, farandole_set_ids(&set, 1));
  REQUIRE_CODE(expected, farandole_get_counters(&counters));
  REQUIRE_CODE(expected, farandole_start_timeline("/dev/null"));
  REQUIRE(farandole_is_initialised() == 0);
  REQUIRE(farandole_rank() == -1 && farandole_size() == -1 && farandole_set_size(0) == -1);
}

void requireForked() {
  requireEveryCall(FARANDOLE_FORKED);
  void* memory = nullptr;
  farandole_queue* queue = nullptr;
  farandole_result result = emptyResult();
  std::int32_t done = 0;
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_init(nullptr));
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_shutdown());
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_allocate(64, &memory));
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_wait(1, 0));
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_test(1, &done));
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_cancel(1));
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_release(1));
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_get_result(1, &result));
  REQUIRE_CODE(FARANDOLE_FORKED, farandole_queue_create(&queue, nullptr));
  REQUIRE(lastMessage().find("fork") != std::string::npos);
}

}  // namespace

CORE_CASE(outside_of_life) {
  requireEveryCall(FARANDOLE_NOT_INITIALISED);
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_wait(12345, 0));
  REQUIRE_OK(farandole_shutdown());
  REQUIRE_OK(farandole_init(nullptr));
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  requireSum("once", 1.0F, n);
  // A handle outlives the shutdown, whether its operation was done or not.
  float values[2] = {1, 1};
  const std::int64_t one = 1;
  const farandole_handle finished = submit(allreduceOf("finished", &values[0], &one));
  REQUIRE_OK(farandole_wait(finished, -1));
  requireSum("together", 1.0F, n);
  // Nobody else submits this one.
  const std::string alone = "alone" + std::to_string(farandole_rank());
  const farandole_handle pending = submit(allreduceOf(alone.c_str(), &values[1], &one));
  REQUIRE_OK(farandole_shutdown());
  REQUIRE_OK(farandole_wait(finished, 0));
  REQUIRE(values[0] == n);
  const farandole_code ended = farandole_wait(pending, 0);
  // A faster rank may have left first.
  REQUIRE(ended == FARANDOLE_SHUTDOWN || ended == FARANDOLE_PEER_LOST);
  REQUIRE_OK(farandole_release(finished));
  REQUIRE_OK(farandole_release(pending));
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_release(pending));
  requireEveryCall(FARANDOLE_NOT_INITIALISED);
}

// init_often TIMES
CORE_CASE(init_often) {
  for (int i = 0; i < std::stoi(arguments.at(0)); ++i) {
    REQUIRE_OK(farandole_init(nullptr));
    REQUIRE(farandole_epoch() == static_cast<std::uint64_t>(i + 1));
    requireSum("again", static_cast<float>(i), static_cast<float>(i * farandole_size()));
    REQUIRE_OK(farandole_shutdown());
  }
}

// places LOCAL/SIZE:CROSS/SIZE...: what each rank must know of its place.
CORE_CASE(places) {
  REQUIRE_OK(farandole_init(nullptr));
  REQUIRE(static_cast<int>(arguments.size()) == farandole_size());
  const std::string found =
      std::to_string(farandole_local_rank()) + "/" + std::to_string(farandole_local_size()) + ":" +
      std::to_string(farandole_cross_rank()) + "/" + std::to_string(farandole_cross_size());
  const std::string& expected = arguments.at(static_cast<std::size_t>(farandole_rank()));
  if (found != expected) fail(__FILE__, __LINE__, found + ", not " + expected);
  requireSum("places", 1.0F, static_cast<float>(farandole_size()));
  REQUIRE_OK(farandole_shutdown());
}

// Rank 1 leaves while the others still count on it.
CORE_CASE(early_shutdown) {
  REQUIRE_OK(farandole_init(nullptr));
  requireSum("first", 1.0F, static_cast<float>(farandole_size()));
  if (farandole_rank() == 1) {
    REQUIRE_OK(farandole_shutdown());
    // It stays alive, so that only its good-bye can tell the others.
    sleepMs(500);
    return;
  }
  float value = 1;
  const std::int64_t one = 1;
  const farandole_handle handle = submit(allreduceOf("second", &value, &one));
  REQUIRE_CODE(FARANDOLE_PEER_LOST, farandole_wait(handle, -1));
  const farandole_error error = errorOf(handle);
  REQUIRE(error.rank == 1);
  REQUIRE(contains(error, "rank 1") && contains(error, "left"));
  REQUIRE_OK(farandole_release(handle));
  REQUIRE_OK(farandole_shutdown());
}

namespace {
bool inForkedChild = false;
}  // namespace

// LeakSanitizer asks this at exit. A fork child has lost the stacks of its parent's threads, so
// what only they pointed to would look like a leak.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return inForkedChild;
}

// A child that was forked is no rank: it is told so, and however it ends, the ranks work on.
CORE_CASE(forked_children) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  for (int i = 0; i < 5; ++i) {
    float value = 1;
    const std::int64_t one = 1;
    const farandole_handle handle = submit(allreduceOf("meanwhile", &value, &one));
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      inForkedChild = true;
      requireForked();
      // Handlers of exit() run as in any program.
      std::exit(0);
    }
    REQUIRE_OK(farandole_wait(handle, -1));
    REQUIRE(value == n);
    REQUIRE_OK(farandole_release(handle));
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int k = 0; k < 20; ++k) requireSum("afterwards", 1.0F, n);
  }
  REQUIRE_OK(farandole_shutdown());
}

// A data-loading worker opens files, which get the numbers that the rank's descriptors had, and
// starts a process of its own: that one has all of them.
CORE_CASE(forked_grandchildren) {
  REQUIRE_OK(farandole_init(nullptr));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    inForkedChild = true;
    std::vector<int> files;
    for (int i = 0; i < 64; ++i) files.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      int lost = 0;
      for (const int file : files) lost += ::fcntl(file, F_GETFD) < 0 ? 1 : 0;
      requireForked();
      std::exit(lost);
    }
    int status = -1;
    REQUIRE(::waitpid(grandchild, &status, 0) == grandchild);
    std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 255);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) != 0) say(std::to_string(WEXITSTATUS(status)) + " files are closed");
  REQUIRE(WEXITSTATUS(status) == 0);
  requireSum("afterwards", 1.0F, static_cast<float>(farandole_size()));
  REQUIRE_OK(farandole_shutdown());
}

// Says what init says.
CORE_CASE(init_only) {
  const farandole_code code = farandole_init(nullptr);
  say(code == FARANDOLE_OK ? "initialised"
                           : std::string(farandole_code_name(code)) + ": " + lastMessage());
  if (code == FARANDOLE_OK) REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
