// Many names: their order, their plans, their memory.
#include <algorithm>
#include <numeric>
#include <random>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

farandole_counters counters() {
  farandole_counters now{};
  now.struct_size = sizeof now;
  REQUIRE_OK(farandole_get_counters(&now));
  return now;
}

// Sums `count` tensors of different sizes, submitted in a random order of this rank's own.
void sumInRandomOrder(int count, int iteration, std::mt19937& random) {
  const int n = farandole_size();
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::string> names(order.size());
  std::vector<std::vector<float>> data(order.size());
  std::vector<std::int64_t> shapes(order.size());
  std::vector<farandole_handle> handles(order.size());
  for (const int i : order) {
    const auto at = static_cast<std::size_t>(i);
    names[at] = "tensor/" + std::to_string(i);
    shapes[at] = 1 + (i * 37) % 500;
    data[at].assign(static_cast<std::size_t>(shapes[at]),
                    static_cast<float>(farandole_rank() + i + iteration));
    handles[at] = submit(allreduceOf(names[at].c_str(), data[at].data(), &shapes[at]));
  }
  for (const int i : order) {
    const auto at = static_cast<std::size_t>(i);
    REQUIRE_OK(farandole_wait(handles[at], -1));
    const auto expected = static_cast<float>(n * (n - 1) / 2 + n * (i + iteration));
    for (const float value : data[at]) REQUIRE(value == expected);
    REQUIRE_OK(farandole_release(handles[at]));
  }
}

}  // namespace

// random_order TENSORS ITERATIONS
CORE_CASE(random_order) {
  REQUIRE_OK(farandole_init(nullptr));
  std::mt19937 random(static_cast<unsigned>(farandole_rank()) + 11);
  for (int i = 0; i < std::stoi(arguments.at(1)); ++i) {
    sumInRandomOrder(std::stoi(arguments.at(0)), i, random);
  }
  REQUIRE_OK(farandole_shutdown());
}

// A tensor that lies elsewhere in every step still has its plan.
CORE_CASE(moved_pointers) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  const std::int64_t shape = 64;
  const auto step = [&](std::vector<float>& memory) {
    memory.assign(64, 1.0F);
    REQUIRE_OK(run(allreduceOf("moving", memory.data(), &shape)));
    REQUIRE(memory[63] == n);
  };
  std::vector<std::vector<float>> places(50);
  step(places[0]);
  step(places[1]);
  const farandole_counters before = counters();
  for (auto& place : places) step(place);
  void* shared = nullptr;
  REQUIRE_OK(farandole_allocate(64 * sizeof(float), &shared));
  REQUIRE(farandole_is_shared(shared, 64 * sizeof(float)) == 1);
  for (int i = 0; i < 10; ++i) {
    std::fill_n(static_cast<float*>(shared), 64, 1.0F);
    REQUIRE_OK(run(allreduceOf("moving", shared, &shape)));
    REQUIRE(static_cast<float*>(shared)[63] == n);
  }
  const farandole_counters after = counters();
  REQUIRE(after.plan_misses == before.plan_misses);
  REQUIRE(after.plan_hits == before.plan_hits + 60);
  REQUIRE_OK(farandole_free(shared));
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
