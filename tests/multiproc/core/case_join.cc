// Ranks that run out of data before the others.
#include <algorithm>
#include <cmath>

#include "multiproc/core/rank.h"

namespace farandole::test {

// Rank r brings 2 + 3 r steps. Step s of rank r brings r + 2.
CORE_CASE(join_uneven) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const int me = farandole_rank();
  for (int epoch = 0; epoch < 5; ++epoch) {
    // Who has most changes from epoch to epoch.
    const auto stepsOf = [&](int rank) { return 2 + 3 * ((rank + epoch) % n); };
    for (int step = 0; step < stepsOf(me); ++step) {
      float sum = 0;
      float least = 1e9F;
      float most = 0;
      float product = 1;
      int present = 0;
      for (int rank = 0; rank < n; ++rank) {
        if (step >= stepsOf(rank)) continue;
        const auto value = static_cast<float>(rank + 2);
        sum += value, product *= value, ++present;
        least = std::min(least, value), most = std::max(most, value);
      }
      const struct {
        farandole_reduce_op op;
        const char* name;
        float expected;
      } reductions[] = {{FARANDOLE_SUM, "sum", sum},
                        {FARANDOLE_AVERAGE, "average", sum / static_cast<float>(present)},
                        {FARANDOLE_MIN, "min", least},
                        {FARANDOLE_MAX, "max", most},
                        {FARANDOLE_PRODUCT, "product", product}};
      const std::int64_t shape = 1000;
      for (const auto& each : reductions) {
        std::vector<float> data(1000, static_cast<float>(me + 2));
        farandole_request request = allreduceOf(each.name, data.data(), &shape);
        request.op = each.op;
        REQUIRE_OK(run(request));
        for (const float value : {data.front(), data.back()}) {
          if (std::abs(value - each.expected) > 1e-5F * each.expected) {
            fail(__FILE__, __LINE__,
                 std::string(each.name) + " at step " + std::to_string(step) + ": " +
                     std::to_string(value) + " instead of " + std::to_string(each.expected));
          }
        }
      }
    }
    farandole_request join = FARANDOLE_REQUEST_INIT;
    join.operation = FARANDOLE_JOIN;
    const farandole_handle handle = submit(join);
    REQUIRE_OK(farandole_wait(handle, -1));
    farandole_result result = emptyResult();
    REQUIRE_OK(farandole_get_result(handle, &result));
    int longest = 0;
    for (int rank = 1; rank < n; ++rank) {
      if (stepsOf(rank) > stepsOf(longest)) longest = rank;
    }
    REQUIRE(result.last_joined == longest);
    REQUIRE_OK(farandole_release(handle));
  }
  requireSum("after", 1.0F, static_cast<float>(n));
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
