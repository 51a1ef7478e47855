// Ranks that may have little: threads, open files, memory.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

// No thread of this process gets a stack from now on.
void forbidThreads(bool forbid) {
  static pthread_attr_t usual = [] {
    pthread_attr_t attributes;
    REQUIRE(::pthread_getattr_default_np(&attributes) == 0);
    return attributes;
  }();
  pthread_attr_t attributes = usual;
  if (forbid) REQUIRE(::pthread_attr_setstacksize(&attributes, std::size_t{1} << 46) == 0);
  REQUIRE(::pthread_setattr_default_np(&attributes) == 0);
}

sigset_t signalMask() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

void allowFiles(rlim_t files) {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = files;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

}  // namespace

// An init that gets no thread says why, and leaves the caller's signals as they were.
CORE_CASE(init_without_threads) {
  const sigset_t before = signalMask();
  forbidThreads(true);
  REQUIRE_CODE(FARANDOLE_UNAVAILABLE, farandole_init(nullptr));
  say(lastMessage());
  const sigset_t after = signalMask();
  for (int number = 1; number < NSIG; ++number) {
    REQUIRE(::sigismember(&before, number) == ::sigismember(&after, number));
  }
}

// The same for the thread that callbacks run on, when the first one is asked for.
CORE_CASE(callback_without_threads) {
  REQUIRE_OK(farandole_init(nullptr));
  static int calls = 0;
  const std::int64_t one = 1;
  float value = 1;
  farandole_request request = allreduceOf("callback", &value, &one);
  request.on_complete = [](void*, farandole_handle, farandole_code) { ++calls; };
  farandole_handle handle = 0;
  forbidThreads(true);
  REQUIRE_CODE(FARANDOLE_UNAVAILABLE, farandole_submit(&request, 1, &handle));
  REQUIRE(lastMessage().find("ulimit -u") != std::string::npos);
  forbidThreads(false);
  handle = submit(request);
  REQUIRE_OK(farandole_wait(handle, -1));
  REQUIRE_OK(farandole_release(handle));
  REQUIRE_OK(farandole_shutdown());
  REQUIRE(calls == 1);
}

// few_files FILES RANK: only that rank (-1: all) is limited.
CORE_CASE(few_files) {
  const int limited = std::stoi(arguments.at(1));
  const char* const rank = std::getenv("FARANDOLE_RANK");
  if (limited < 0 || limited == std::atoi(rank)) allowFiles(std::stoul(arguments.at(0)));
  const farandole_code code = farandole_init(nullptr);
  say(code == FARANDOLE_OK ? "initialised"
                           : std::string(farandole_code_name(code)) + ": " + lastMessage());
  // The others must be told why, not that this one has ended.
  if (code != FARANDOLE_OK) sleepMs(1000);
  if (code == FARANDOLE_OK) REQUIRE_OK(farandole_shutdown());
}

// After init the program allows itself no more files: who is alive is still known.
CORE_CASE(wait_with_few_files) {
  ::close_range(3, ~0U, 0);  // whatever the test itself was started with
  const int kept = ::open("/dev/null", O_RDONLY);
  REQUIRE(kept == 3);
  REQUIRE_OK(farandole_init(nullptr));
  allowFiles(4);
  // Two may still be opened: sanitizers need them for their own looks.
  for (const int fd : {0, kept}) ::close(fd);
  say("ready");
  const std::int64_t one = 1;
  float value = 1;
  farandole_request request = allreduceOf("never", &value, &one);
  if (farandole_rank() == farandole_size() - 1) sleepMs(60'000);
  const farandole_code code = run(request);
  say(std::string(farandole_code_name(code)) + ": " + lastMessage());
  REQUIRE(code == FARANDOLE_PEER_LOST);
}

// allocate_together BYTES GROUP ROUNDS: all at the same moment, in a group of processes that may
// have less than that.
CORE_CASE(allocate_together) {
  std::ofstream(arguments.at(1)) << ::getpid();
  REQUIRE_OK(farandole_init(nullptr));
  const std::size_t bytes = std::stoul(arguments.at(0));
  const auto n = static_cast<float>(farandole_size());
  for (int round = 0; round < std::stoi(arguments.at(2)); ++round) {
    requireSum("before", 1.0F, n);
    void* memory = nullptr;
    const farandole_code code = farandole_allocate(bytes, &memory);
    if (code == FARANDOLE_OK) {
      // Its pages are there.
      std::memset(memory, 1, bytes / 16);
      say("allocated");
    } else {
      REQUIRE(code == FARANDOLE_OUT_OF_MEMORY);
      REQUIRE(lastMessage().find("available to this process") != std::string::npos);
      say("refused: " + lastMessage());
    }
    requireSum("after", 1.0F, n);
    if (memory != nullptr) REQUIRE_OK(farandole_free(memory));
  }
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
