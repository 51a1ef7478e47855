// Operations whose order the caller promises: FARANDOLE_FLAG_ORDERED.
#include <algorithm>
#include <random>

#include "core/rank.h"

namespace farandole::test {
namespace {

farandole_request orderedSum(const char* name, float& value) {
  static const std::int64_t kOne = 1;
  farandole_request request = allreduceOf(name, &value, &kOne);
  request.flags |= FARANDOLE_FLAG_ORDERED;
  return request;
}

}  // namespace

// ordered_mixed ROUNDS: ordered ones in one order, others in any, all under way at once; some are
// too large to be sent to everybody.
CORE_CASE(ordered_mixed) {
  REQUIRE_OK(farandole_init(nullptr));
  constexpr int kOrdered = 24;
  constexpr int kOthers = 8;
  constexpr std::int64_t kSizes[] = {1, 1000, 100'000};
  const int n = farandole_size();
  std::mt19937 random(static_cast<unsigned>(farandole_rank()));
  for (int round = 0; round < std::stoi(arguments.at(0)); ++round) {
    std::vector<std::vector<float>> data;
    std::vector<std::string> names;
    std::vector<int> order;  // at which place which is submitted
    for (int i = 0; i < kOrdered + kOthers; ++i) {
      data.emplace_back(static_cast<std::size_t>(kSizes[i % 3]),
                        static_cast<float>((farandole_rank() + 1) * (i + round)));
      names.push_back((i < kOrdered ? "ordered " : "other ") + std::to_string(i));
      order.push_back(i);
    }
    std::shuffle(order.begin(), order.end(), random);
    // The ordered ones keep their places among each other.
    std::vector<int> places;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (order[at] < kOrdered) places.push_back(static_cast<int>(at));
    }
    for (int i = 0; i < kOrdered; ++i) {
      order[static_cast<std::size_t>(places[static_cast<std::size_t>(i)])] = i;
    }
    std::vector<farandole_handle> handles(order.size());
    for (const int i : order) {
      const auto at = static_cast<std::size_t>(i);
      farandole_request request = allreduceOf(names[at].c_str(), data[at].data(), &kSizes[i % 3]);
      if (i < kOrdered) request.flags |= FARANDOLE_FLAG_ORDERED;
      if (i == 3) request.operation = FARANDOLE_BROADCAST;
      if (i == 4) request.name = nullptr;
      handles[at] = submit(request);
    }
    for (int i = 0; i < kOrdered + kOthers; ++i) {
      const auto at = static_cast<std::size_t>(i);
      REQUIRE_OK(farandole_wait(handles[at], -1));
      REQUIRE_OK(farandole_release(handles[at]));
      const int parts = i == 3 ? 1 : n * (n + 1) / 2;
      for (const float value : data[at]) REQUIRE(value == static_cast<float>(parts * (i + round)));
    }
  }
  REQUIRE_OK(farandole_shutdown());
}

// ordered_misnamed: the promise is not kept; all are told, and the next ones work.
CORE_CASE(ordered_misnamed) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  for (int round = 0; round < 3; ++round) {
    float value = 1;
    const farandole_handle handle =
        submit(orderedSum(farandole_rank() == 1 ? "second" : "first", value));
    REQUIRE_CODE(FARANDOLE_MISMATCH, farandole_wait(handle, -1));
    const farandole_error error = errorOf(handle);
    REQUIRE(error.rank == 1);
    REQUIRE(contains(error, "'first' on rank 0 and 'second' on rank 1"));
    REQUIRE_OK(farandole_release(handle));
    REQUIRE(value == 1);
    REQUIRE_OK(run(orderedSum("first", value)));
    REQUIRE(value == n);
    requireSum("first", 1.0F, n);
  }
  REQUIRE_OK(farandole_shutdown());
}

// ordered_wait_for RANK: that rank never comes; the others wait for it in ordered operations.
CORE_CASE(ordered_wait_for) {
  REQUIRE_OK(farandole_init(nullptr));
  float value = 1;
  REQUIRE_OK(run(orderedSum("with all", value)));
  REQUIRE(value == static_cast<float>(farandole_size()));
  if (farandole_rank() == std::stoi(arguments.at(0))) {
    say("ready");
    sleepMs(120'000);
  }
  constexpr std::size_t kMany = 20;  // more than are sent at once
  float values[kMany] = {};
  farandole_handle handles[kMany];
  for (std::size_t i = 0; i < kMany; ++i) handles[i] = submit(orderedSum(nullptr, values[i]));
  say("ready");
  for (std::size_t i = 0; i < kMany; ++i) {
    REQUIRE_CODE(FARANDOLE_PEER_LOST, farandole_wait(handles[i], -1));
    const farandole_error error = errorOf(handles[i]);
    if (i == 0) say("lost rank=" + std::to_string(error.rank) + " message=" + error.message);
    REQUIRE_OK(farandole_release(handles[i]));
  }
  REQUIRE_OK(farandole_shutdown());
}

// ordered_leaver: a rank that leaves in good order has done its part of what came before.
CORE_CASE(ordered_leaver) {
  REQUIRE_OK(farandole_init(nullptr));
  float values[2] = {1, 1};
  REQUIRE_OK(run(orderedSum("with all", values[0])));
  if (farandole_rank() != 1) {
    const farandole_handle handle = submit(orderedSum("without it", values[1]));
    REQUIRE_CODE(FARANDOLE_PEER_LOST, farandole_wait(handle, -1));
    REQUIRE(errorOf(handle).rank == 1);
    REQUIRE_OK(farandole_release(handle));
  }
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
