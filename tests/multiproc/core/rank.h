// What the cases of core_rank are written with. A case is what one rank does; it ends the process
// with a message if anything is not as it must be. Only the C ABI is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "farandole.h"

namespace farandole::test {

using Arguments = std::vector<std::string>;

// Registers a case under its name; used by CORE_CASE.
struct CaseRegistration {
  CaseRegistration(const char* name, void (*body)(const Arguments&));
};
#define CORE_CASE(name)                                                             \
  static void name(const ::farandole::test::Arguments& arguments);                  \
  static const ::farandole::test::CaseRegistration name##_registered_(#name, name); \
  static void name([[maybe_unused]] const ::farandole::test::Arguments& arguments)

// Says so and ends the process with code 1.
[[noreturn]] void fail(const char* file, int line, const std::string& what);
#define REQUIRE(condition) \
  ((condition) ? void() : ::farandole::test::fail(__FILE__, __LINE__, #condition))
#define REQUIRE_CODE(expected, call) \
  ::farandole::test::requireCode(__FILE__, __LINE__, #call, (expected), (call))
#define REQUIRE_OK(call) REQUIRE_CODE(FARANDOLE_OK, call)
void requireCode(const char* file, int line, const char* call, farandole_code expected,
                 farandole_code got);

// One line, at once: the test may be waiting for it.
void say(const std::string& line);

std::string lastMessage();

// A one-dimensional float32 sum, in place; change what is to be different. `name` and `shape` must
// outlive the submission.
farandole_request allreduceOf(const char* name, void* data, const std::int64_t* shape,
                              std::int32_t ndim = 1);
// A farandole_result with its size set.
farandole_result emptyResult();
// What the operation's own error says.
farandole_error errorOf(farandole_handle handle);
bool contains(const farandole_error& error, const std::string& text);

farandole_handle submit(const farandole_request& request);
// By farandole_call; releases what is left.
farandole_code run(const farandole_request& request);
// A sum of one float over the set, by name; checks the result.
void requireSum(const char* name, float mine, float expected, farandole_set set = 0);

// Sends this thread a signal every 100 ms while it is inside `call`.
void interrupting(const std::function<void()>& call);

std::int64_t monotonicNanoseconds();
void sleepMs(int milliseconds);

}  // namespace farandole::test
