// Operations whose order the caller promises: FARANDOLE_FLAG_ORDERED.
#include <algorithm>
#include <random>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

farandole_request orderedSum(const char* name, float& value) {
  static const std::int64_t kCount = 1;
  farandole_request request = allreduceOf(name, &value, &kCount);
  request.flags |= FARANDOLE_FLAG_ORDERED;
  return request;
}

}  // namespace

// ordered_mixed ROUNDS: ordered ones in one order, others in any, all in flight at once; some are
// too large to be sent to everybody.
CORE_CASE(ordered_mixed) {
  REQUIRE_OK(farandole_init(nullptr));
  constexpr int kOrdered = 24;
  constexpr int kOthers = 8;
  constexpr std::int64_t kSizes[] = {1, 1000, 300'000};
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

// ordered_uneven [nameless]: operations that are small on some ranks only are told to all as a
// mismatch, and the next ones of that name work, of whatever size.
CORE_CASE(ordered_uneven) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const char* const name = arguments.empty() ? "uneven" : nullptr;
  constexpr std::int64_t kSmall = 1;
  constexpr std::int64_t kLarge = 300'000;
  std::vector<float> data(static_cast<std::size_t>(kLarge) * static_cast<std::size_t>(n));
  for (int round = 0; round < 6; ++round) {
    // Each in turn; small among large ones and the other way round.
    const bool odd = farandole_rank() == round % n;
    const bool large = odd == (round % 2 == 0);
    farandole_request request = allreduceOf(name, data.data(), large ? &kLarge : &kSmall);
    request.flags |= FARANDOLE_FLAG_ORDERED;
    // One that is never small is as good.
    if (round == 4 && large) request.operation = FARANDOLE_ALLGATHER, request.output = nullptr;
    const farandole_handle handle = submit(request);
    REQUIRE_CODE(FARANDOLE_MISMATCH, farandole_wait(handle, -1));
    const farandole_error error = errorOf(handle);
    REQUIRE(n == 2 || error.rank == round % n);
    REQUIRE(contains(error, round == 4 ? "allgather" : "300000"));
    for (int rank = 0; rank < n; ++rank) REQUIRE(contains(error, "rank " + std::to_string(rank)));
    REQUIRE_OK(farandole_release(handle));
    for (const std::int64_t* size : {&kLarge, &kSmall, &kLarge}) {
      std::fill(data.begin(), data.end(), 2.0F);
      farandole_request next = allreduceOf(name, data.data(), size);
      next.flags |= FARANDOLE_FLAG_ORDERED;
      REQUIRE_OK(run(next));
      REQUIRE(data[static_cast<std::size_t>(*size) - 1] == 2.0F * static_cast<float>(n));
    }
    requireSum("uneven", 1.0F, static_cast<float>(n));
  }
  REQUIRE_OK(farandole_shutdown());
}

// ordered_crossed NAME NAME: a small and a large operation of these names, the other way round on
// rank 1, all in flight at once. What does not match fails on all ranks, and the next ones work.
CORE_CASE(ordered_crossed) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const bool sameName = arguments.at(0) == arguments.at(1);
  constexpr std::int64_t kSizes[] = {1, 300'000};
  std::vector<float> data[2];
  for (int round = 0; round < 20; ++round) {
    farandole_handle handles[2] = {};
    for (int i = 0; i < 2; ++i) {
      const auto which = static_cast<std::size_t>(farandole_rank() == 1 ? 1 - i : i);
      data[which].assign(300'000, 1.0F);
      farandole_request request =
          allreduceOf(arguments.at(which).c_str(), data[which].data(), &kSizes[which]);
      request.flags |= FARANDOLE_FLAG_ORDERED;
      handles[which] = submit(request);
    }
    REQUIRE_CODE(FARANDOLE_MISMATCH, farandole_wait(handles[0], -1));
    const farandole_code large = farandole_wait(handles[1], -1);
    // The names of different ones may have met before anybody saw that the order is wrong.
    REQUIRE(large == FARANDOLE_MISMATCH || (large == FARANDOLE_OK && !sameName));
    for (const auto handle : handles) REQUIRE_OK(farandole_release(handle));
    for (std::size_t which = 0; which < 2; ++which) {
      data[which].assign(300'000, 1.0F);
      farandole_request next =
          allreduceOf(arguments.at(which).c_str(), data[which].data(), &kSizes[which]);
      next.flags |= FARANDOLE_FLAG_ORDERED;
      REQUIRE_OK(run(next));
      REQUIRE(data[which][0] == static_cast<float>(n));
    }
  }
  REQUIRE_OK(farandole_shutdown());
}

// ordered_twice: the name of ordered operations may be in flight several times, but not also of one
// that is not ordered.
CORE_CASE(ordered_twice) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  constexpr std::int64_t kSizes[] = {1, 300'000};
  for (const std::int64_t& first : kSizes) {
    for (const std::int64_t& second : kSizes) {
      // Nothing of rank 0's before this one, so the others' stay in flight.
      if (farandole_rank() == 0) requireSum("gate", 1.0F, n);
      std::vector<std::vector<float>> data;
      std::vector<farandole_handle> handles;
      for (int i = 0; i < 3; ++i) {
        data.emplace_back(300'000, static_cast<float>(i + 1));
        farandole_request request =
            allreduceOf("twice", data.back().data(), i == 1 ? &second : &first);
        request.flags |= FARANDOLE_FLAG_ORDERED;
        handles.push_back(submit(request));
      }
      if (farandole_rank() != 0) {
        float value = 1;
        farandole_handle refused = 0;
        const farandole_request plain = allreduceOf("twice", &value, &kSizes[0]);
        REQUIRE_CODE(FARANDOLE_DUPLICATE_NAME, farandole_submit(&plain, 1, &refused));
        requireSum("gate", 1.0F, n);
      }
      for (std::size_t i = 0; i < handles.size(); ++i) {
        REQUIRE_OK(farandole_wait(handles[i], -1));
        REQUIRE_OK(farandole_release(handles[i]));
        REQUIRE(data[i][0] == static_cast<float>(i + 1) * n);
      }
    }
  }
  // The other way round, and two of one group, which must leave together.
  if (farandole_rank() == 0) requireSum("gate", 1.0F, n);
  float values[2] = {1, 1};
  const farandole_handle plain = submit(allreduceOf("twice", &values[0], &kSizes[0]));
  if (farandole_rank() != 0) {
    farandole_handle refused[2] = {};
    farandole_request pair[2] = {orderedSum("twice", values[1]), orderedSum("other", values[1])};
    REQUIRE_CODE(FARANDOLE_DUPLICATE_NAME, farandole_submit(pair, 1, refused));
    pair[0] = pair[1];
    pair[0].group = pair[1].group = 1;
    REQUIRE_CODE(FARANDOLE_DUPLICATE_NAME, farandole_submit(pair, 2, refused));
    requireSum("gate", 1.0F, n);
  }
  REQUIRE_OK(farandole_wait(plain, -1));
  REQUIRE_OK(farandole_release(plain));
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
