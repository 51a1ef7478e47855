// Process sets: overlapping, coming and going.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "multiproc/core/rank.h"

namespace farandole::test {

// set_ring [ELEMENTS]: {0,1}, {1,2}, {2,0}, all sets at once, each rank in another order.
CORE_CASE(set_ring) {
  REQUIRE_OK(farandole_init(nullptr));
  REQUIRE(farandole_size() == 3);
  const int me = farandole_rank();
  const std::int32_t members[3][2] = {{0, 1}, {1, 2}, {2, 0}};
  farandole_set sets[3];
  for (int s = 0; s < 3; ++s) {
    REQUIRE_OK(farandole_add_set(members[s], 2, &sets[s]));
    const bool member = members[s][0] == me || members[s][1] == me;
    REQUIRE(farandole_set_size(sets[s]) == 2);
    REQUIRE((farandole_set_rank(sets[s]) >= 0) == member);
  }
  REQUIRE(farandole_set_count() == 4);
  std::vector<int> mine;
  for (int s = 0; s < 3; ++s) {
    if (farandole_set_rank(sets[s]) >= 0) mine.push_back(s);
  }
  const int other = 3 - mine[0] - mine[1];
  float unwanted = 0;
  const std::int64_t one = 1;
  farandole_request foreign = allreduceOf("ring", &unwanted, &one);
  foreign.set = sets[other];
  farandole_handle none = 0;
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_submit(&foreign, 1, &none));
  REQUIRE(lastMessage().find("not a member") != std::string::npos);

  std::mt19937 random(static_cast<unsigned>(me));
  constexpr int kIterations = 200;
  const std::int64_t elements = arguments.empty() ? 3000 : std::stol(arguments.at(0));
  std::vector<float> data[3];
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    if (random() % 2 == 0) std::swap(mine[0], mine[1]);
    farandole_handle handles[2];
    for (int i = 0; i < 2; ++i) {
      const int s = mine[static_cast<std::size_t>(i)];
      data[s].assign(static_cast<std::size_t>(elements), static_cast<float>(me + iteration));
      farandole_request request = allreduceOf("ring", data[s].data(), &elements);
      request.set = sets[s];
      handles[i] = submit(request);
    }
    const int from = static_cast<int>(random() % 2);
    for (int k = 0; k < 2; ++k) {
      const int i = (from + k) % 2;
      const int s = mine[static_cast<std::size_t>(i)];
      REQUIRE_OK(farandole_wait(handles[i], -1));
      const auto expected = static_cast<float>(members[s][0] + members[s][1] + 2 * iteration);
      REQUIRE(data[s].front() == expected && data[s].back() == expected);
      REQUIRE_OK(farandole_release(handles[i]));
    }
  }
  requireSum("world", 1.0F, 3.0F);
  REQUIRE_OK(farandole_shutdown());
}

// Sets that come and go while the world works.
CORE_CASE(set_changes) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const int me = farandole_rank();
  for (int round = 0; round < 50; ++round) {
    const int left_out = round % n;
    std::vector<std::int32_t> ranks;
    for (int rank = 0; rank < n; ++rank) {
      if (rank != left_out) ranks.push_back(rank);
    }
    farandole_set set = 0;
    REQUIRE_OK(farandole_add_set(ranks.data(), static_cast<std::int32_t>(ranks.size()), &set));
    REQUIRE(set == round + 1);
    if (me != left_out) {
      const auto members = static_cast<float>(ranks.size());
      requireSum("inner", 1.0F, members, set);
      const std::int64_t one = 1;
      float value = 1;
      farandole_request request = allreduceOf("inner", &value, &one);
      request.set = set;
      const farandole_handle handle = submit(request);
      REQUIRE_OK(farandole_wait(handle, -1));
      REQUIRE(value == members);
      REQUIRE_OK(farandole_release(handle));
    }
    REQUIRE_OK(farandole_remove_set(set));
    REQUIRE(farandole_set_size(set) == -1);
    REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_remove_set(set));
    if (round % 10 == 0) requireSum("world", 1.0F, static_cast<float>(n));
  }
  REQUIRE(farandole_set_count() == 1);
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_remove_set(0));
  const std::int32_t twice[2] = {0, 0};
  const std::int32_t beyond[1] = {n};
  farandole_set set = 0;
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_add_set(twice, 2, &set));
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_add_set(beyond, 1, &set));
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_add_set(beyond, 0, &set));
  REQUIRE_OK(farandole_shutdown());
}

namespace {

// What this rank's own shared memory holds.
std::size_t arenaBytes() {
  std::size_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    struct stat info {};
    if (gone || target.native().find("memfd:farandole-arena") == std::string::npos ||
        ::stat(entry.path().c_str(), &info) != 0) {
      continue;
    }
    bytes += static_cast<std::size_t>(info.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace

// sets_give_memory_back ROUNDS MIB: made, used now and then, and removed, without any wait between
// them: the first member may be ahead of the others.
CORE_CASE(sets_give_memory_back) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const int rounds = std::stoi(arguments.at(0));
  const std::size_t limit = std::stoul(arguments.at(1)) << 20;
  std::vector<std::int32_t> all;
  for (int rank = 0; rank < n; ++rank) all.push_back(rank);
  REQUIRE(arenaBytes() > 0 || farandole_rank() > 0);
  for (int round = 0; round < rounds; ++round) {
    // Of everybody, and of a pair that overlaps the next.
    std::int32_t pair[2] = {round % n, (round + 1) % n};
    const bool ofAll = round % 2 == 0;
    farandole_set set = 0;
    REQUIRE_OK(farandole_add_set(ofAll ? all.data() : pair, ofAll ? n : 2, &set));
    if (round % 50 < 2 && farandole_set_rank(set) >= 0) {
      requireSum("inner", 1.0F, ofAll ? static_cast<float>(n) : 2.0F, set);
    }
    REQUIRE_OK(farandole_remove_set(set));
    if (round % 100 == 99) REQUIRE(arenaBytes() < limit);
  }
  requireSum("world", 1.0F, static_cast<float>(n));
  REQUIRE_OK(farandole_shutdown());
}

// A set does not wait for ranks outside of it: rank 2 is away until the others are done.
CORE_CASE(set_without_outsiders) {
  REQUIRE_OK(farandole_init(nullptr));
  const std::int32_t pair[2] = {0, 1};
  if (farandole_rank() < 2) {
    farandole_set set = 0;
    REQUIRE_OK(farandole_add_set(pair, 2, &set));
    for (int i = 0; i < 100; ++i) requireSum("pair", 1.0F, 2.0F, set);
    const std::int64_t one = 1;
    float value = 1;
    farandole_request request = allreduceOf("pending", &value, &one);
    request.set = set;
    if (farandole_rank() == 0) {
      const farandole_handle handle = submit(request);
      REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_remove_set(set));
      requireSum("go", 1.0F, 2.0F, set);
      REQUIRE_OK(farandole_wait(handle, -1));
      REQUIRE_OK(farandole_release(handle));
    } else {
      requireSum("go", 1.0F, 2.0F, set);
      REQUIRE_OK(run(request));
    }
    REQUIRE(value == 2.0F);
  } else {
    // Until the test lets it go on: it does nothing for Farandole.
    say("away");
    sleepMs(1500);
    say("back");
  }
  say("done");
  requireSum("world", 1.0F, 3.0F);
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
