// Ranks that work until something happens to one of them.
#include <unistd.h>

#include <cstring>
#include <random>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

constexpr std::int64_t kFaultSizes[] = {1, 262'144, 1000, 5, 65'536};  // floats; the second: 1 MiB
constexpr int kAsync = 3;

float expectedSum() {
  const int n = farandole_size();
  return static_cast<float>(n * (n + 1) / 2);
}

// A buffer for each of the operations that are in flight at once.
class Buffers {
 public:
  explicit Buffers(bool shared) {
    for (int i = 0; i < kAsync; ++i) {
      void* memory = nullptr;
      if (shared) {
        REQUIRE_OK(farandole_allocate(262'144 * sizeof(float), &memory));
      } else {
        ordinary_[i].resize(262'144);
        memory = ordinary_[i].data();
      }
      places_[i] = static_cast<float*>(memory);
    }
  }
  float* at(int i) const { return places_[i]; }

 private:
  std::vector<float> ordinary_[kAsync];
  float* places_[kAsync] = {};
};

[[noreturn]] void sleepAsForkedChild() {
  sleepMs(5000);
  ::_exit(0);
}

// For the test, which knows when the other rank was hit.
void sayLost(farandole_code code, const farandole_error& error) {
  say("lost at=" + std::to_string(monotonicNanoseconds()) + " code=" + std::to_string(code) +
      " rank=" + std::to_string(error.rank) + " message=" + error.message);
}

farandole_error lastError() {
  farandole_error error{};
  error.struct_size = sizeof error;
  farandole_last_error(&error);
  return error;
}

// One round: one operation waited for at once, or several in flight. False when it failed, which
// has been told.
bool oneRound(int round, const Buffers& buffers) {
  const std::int64_t elements = kFaultSizes[round % 5];
  const int count = round % 3 == 0 ? kAsync : 1;
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back("t" + std::to_string(round % 5) + "." + std::to_string(i));
  }
  farandole_handle handles[kAsync] = {};
  bool lost = false;
  for (int i = 0; i < count && !lost; ++i) {
    std::fill_n(buffers.at(i), elements, static_cast<float>(farandole_rank() + 1));
    const farandole_request request =
        allreduceOf(names[static_cast<std::size_t>(i)].c_str(), buffers.at(i), &elements);
    const farandole_code code = farandole_submit(&request, 1, &handles[i]);
    if (code != FARANDOLE_OK) {
      sayLost(code, lastError());
      lost = true;
    }
  }
  for (int i = 0; i < count; ++i) {
    if (handles[i] == 0) continue;
    const farandole_code code = farandole_wait(handles[i], -1);
    if (code != FARANDOLE_OK && !lost) {
      sayLost(code, errorOf(handles[i]));
      lost = true;
    }
    if (code == FARANDOLE_OK) {
      for (std::int64_t k = 0; k < elements; ++k) REQUIRE(buffers.at(i)[k] == expectedSum());
    }
    REQUIRE_OK(farandole_release(handles[i]));
  }
  return !lost;
}

}  // namespace

// allreduce_until_lost ordinary|shared forked|alone leave|crash SEED
CORE_CASE(allreduce_until_lost) {
  if (const farandole_code code = farandole_init(nullptr); code != FARANDOLE_OK) {
    sayLost(code, lastError());
    return;
  }
  if (arguments.at(1) == "forked" && ::fork() == 0) sleepAsForkedChild();
  std::mt19937 random(static_cast<unsigned>(std::stoul(arguments.at(3)) * 7 +
                                            static_cast<unsigned>(farandole_rank())));
  const Buffers buffers(arguments.at(0) == "shared");
  say("ready");
  for (int round = 0;; ++round) {
    if (random() % 4 == 0) sleepMs(static_cast<int>(random() % 3));
    if (!oneRound(round, buffers)) break;
  }
  // As a program does that does not expect errors. It must not be taken for the cause.
  if (arguments.at(2) == "crash") ::_exit(3);
  // A rank that has lost its job can still leave it in good order.
  REQUIRE_OK(farandole_shutdown());
  say("left");
}

// allreduce_rounds ROUNDS: right results, however long somebody is away.
CORE_CASE(allreduce_rounds) {
  REQUIRE_OK(farandole_init(nullptr));
  const Buffers buffers(true);
  REQUIRE(oneRound(0, buffers));
  say("ready");
  for (int round = 0; round < std::stoi(arguments.at(0)); ++round) {
    REQUIRE(oneRound(round, buffers));
    sleepMs(2);
  }
  REQUIRE_OK(farandole_shutdown());
}

// keep_memory_of_a_given_up_job: what a rank holds after it has left is its own, whatever a rank
// that was given up does when it wakes.
CORE_CASE(keep_memory_of_a_given_up_job) {
  REQUIRE_OK(farandole_init(nullptr));
  const int me = farandole_rank();
  const Buffers buffers(true);
  say("ready");
  for (int round = 1; oneRound(round, buffers); ++round) {
  }
  REQUIRE_OK(farandole_shutdown());
  const auto pattern = static_cast<unsigned char>(0xa0 + me);
  const std::size_t bytes = 262'144 * sizeof(float);
  for (int i = 0; i < kAsync; ++i) std::memset(buffers.at(i), pattern, bytes);
  say("holding");
  sleepMs(1500);
  for (int i = 0; i < kAsync; ++i) {
    const auto* memory = reinterpret_cast<const unsigned char*>(buffers.at(i));
    for (std::size_t k = 0; k < bytes; ++k) REQUIRE(memory[k] == pattern);
    REQUIRE_OK(farandole_free(buffers.at(i)));
  }
  say("unchanged");
}

// given_up_late_rank RANK MILLISECONDS [ordered]: the others do not wait so long for that rank.
CORE_CASE(given_up_late_rank) {
  REQUIRE_OK(farandole_init(nullptr));
  const int late = std::stoi(arguments.at(0));
  if (farandole_rank() == late) sleepMs(std::stoi(arguments.at(1)));
  float value = 1;
  const std::int64_t one = 1;
  farandole_request request = allreduceOf("awaited", &value, &one);
  const bool ordered = arguments.size() > 2;
  if (ordered) request.flags |= FARANDOLE_FLAG_ORDERED;
  farandole_handle handle = 0;
  const farandole_code refused = farandole_submit(&request, 1, &handle);
  if (farandole_rank() == late) {
    // It comes too late, and hears that it does. An ordered one it can still finish by itself.
    const farandole_code code = refused != FARANDOLE_OK ? refused : farandole_wait(handle, -1);
    REQUIRE(code != FARANDOLE_OK || (ordered && value == static_cast<float>(farandole_size())));
    REQUIRE(refused != FARANDOLE_OK || code == FARANDOLE_OK || code == FARANDOLE_PEER_LOST);
    REQUIRE(run(request) != FARANDOLE_OK);
  } else {
    REQUIRE_CODE(FARANDOLE_OK, refused);
    REQUIRE_CODE(FARANDOLE_PEER_LOST, farandole_wait(handle, -1));
    const farandole_error error = errorOf(handle);
    REQUIRE(error.rank == late);
    REQUIRE(contains(error, "'awaited'") && contains(error, "not by rank(s) " + arguments.at(0)));
  }
  REQUIRE_OK(farandole_shutdown());
}

// patient_rank: rank 2 submits a second of its own time later; the others wait at most four.
CORE_CASE(patient_rank) {
  REQUIRE_OK(farandole_init(nullptr));
  float value = 1;
  const std::int64_t one = 1;
  say("ready");
  // In steps: a sleep that is over when the process goes on would hide that it was stopped.
  for (int i = 0; i < 50 && farandole_rank() == 2; ++i) sleepMs(20);
  const farandole_handle handle = submit(allreduceOf("awaited", &value, &one));
  REQUIRE_OK(farandole_wait(handle, 4000));
  REQUIRE(value == static_cast<float>(farandole_size()));
  REQUIRE_OK(farandole_release(handle));
  REQUIRE_OK(farandole_shutdown());
}

// late_rank RANK MILLISECONDS: that rank submits so much later.
CORE_CASE(late_rank) {
  REQUIRE_OK(farandole_init(nullptr));
  if (farandole_rank() == std::stoi(arguments.at(0))) sleepMs(std::stoi(arguments.at(1)));
  const int n = farandole_size();
  requireSum("gradient/of/layer7", 1.0F, static_cast<float>(n));
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
