// core_rank CASE [parameters]: one rank of a test's job.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

std::map<std::string, void (*)(const Arguments&)>& cases() {
  static std::map<std::string, void (*)(const Arguments&)> all;
  return all;
}

}  // namespace

CaseRegistration::CaseRegistration(const char* name, void (*body)(const Arguments&)) {
  cases()[name] = body;
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const auto written = ::write(1, text.data(), text.size());
}

void fail(const char* file, int line, const std::string& what) {
  const char* name = std::strrchr(file, '/');
  say(std::string(name != nullptr ? name + 1 : file) + ":" + std::to_string(line) + ": " + what);
  ::_exit(1);
}

void requireCode(const char* file, int line, const char* call, farandole_code expected,
                 farandole_code got) {
  if (got == expected) return;
  fail(file, line,
       std::string(call) + " returned " + farandole_code_name(got) + " instead of " +
           farandole_code_name(expected) + (got == FARANDOLE_OK ? "" : ": " + lastMessage()));
}

std::string lastMessage() {
  farandole_error error{};
  error.struct_size = sizeof error;
  return farandole_last_error(&error) == FARANDOLE_OK ? error.message : "";
}

farandole_request allreduceOf(const char* name, void* data, const std::int64_t* shape,
                              std::int32_t ndim) {
  farandole_request request = FARANDOLE_REQUEST_INIT;
  request.operation = FARANDOLE_ALLREDUCE;
  request.dtype = FARANDOLE_FLOAT32;
  request.op = FARANDOLE_SUM;
  request.name = name;
  request.input = data;
  request.output = data;
  request.shape = shape;
  request.ndim = ndim;
  return request;
}

farandole_result emptyResult() {
  farandole_result result{};
  result.struct_size = sizeof result;
  return result;
}

farandole_error errorOf(farandole_handle handle) {
  farandole_result result = emptyResult();
  REQUIRE_OK(farandole_get_result(handle, &result));
  return result.error;
}

bool contains(const farandole_error& error, const std::string& text) {
  return std::strstr(error.message, text.c_str()) != nullptr;
}

farandole_handle submit(const farandole_request& request) {
  farandole_handle handle = 0;
  REQUIRE_OK(farandole_submit(&request, 1, &handle));
  return handle;
}

farandole_code run(const farandole_request& request) {
  farandole_handle pending = 0;
  const farandole_code code = farandole_call(&request, -1, &pending);
  if (pending != 0) REQUIRE_OK(farandole_release(pending));
  return code;
}

void requireSum(const char* name, float mine, float expected, farandole_set set) {
  const std::int64_t one = 1;
  farandole_request request = allreduceOf(name, &mine, &one);
  request.set = set;
  REQUIRE_OK(run(request));
  if (mine != expected) {
    fail(__FILE__, __LINE__,
         std::string("the sum '") + name + "' is " + std::to_string(mine) + " instead of " +
             std::to_string(expected));
  }
}

void interrupting(const std::function<void()>& call) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  REQUIRE(::sigaction(SIGUSR1, &action, nullptr) == 0);
  const pthread_t self = ::pthread_self();
  std::atomic<bool> over{false};
  std::thread signaller([&] {
    for (int i = 0; i < 50 && !over.load(); ++i) {
      sleepMs(100);
      if (!over.load()) ::pthread_kill(self, SIGUSR1);
    }
  });
  call();
  over.store(true);
  signaller.join();
}

std::int64_t monotonicNanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void sleepMs(int milliseconds) {
  timespec rest{milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
  while (::nanosleep(&rest, &rest) != 0) {
  }
}

}  // namespace farandole::test

int main(int argc, char** argv) {
  using namespace farandole::test;
  // No rank outlives its test.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto found = argc > 1 ? cases().find(argv[1]) : cases().end();
  if (found == cases().end()) fail(__FILE__, __LINE__, "no such case");
  found->second(Arguments(argv + 2, argv + argc));
  return 0;
}
