// A rank for tests/attack: it works, checks every element, and says how it ended.
#include <signal.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

using Random = std::mt19937_64;

// A child that no launcher can know by its environment or session, and that does not end when it is
// asked to.
void startUnmarkedChild() {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    char* const none[] = {nullptr};
    ::execle("/bin/sh", "sh", "-c", "trap '' TERM HUP INT; echo child $$; exec setsid sleep 120",
             static_cast<char*>(nullptr), none);
    ::_exit(127);
  }
}

struct Area {
  unsigned char* begin;
  std::size_t bytes;
};

// All arenas that this rank has mapped, the other ranks' among them.
std::vector<Area> arenas() {
  std::vector<Area> found;
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  REQUIRE(maps != nullptr);
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::strstr(line, "memfd:farandole-arena") != nullptr &&
        std::strstr(line, " rw-s ") != nullptr &&
        std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2) {
      found.push_back({reinterpret_cast<unsigned char*>(begin), end - begin});
    }
  }
  std::fclose(maps);
  return found;
}

// Overwrites words where it hurts: most of them near the beginning, where headers, rings and flags
// lie. Only pages that exist: the rest of an arena is address space.
void scribble(Random& random, int words) {
  const std::vector<Area> all = arenas();
  REQUIRE(!all.empty());
  constexpr std::size_t kReaches[] = {256, 4096, 65'536, 1 << 20, 8 << 20};
  constexpr std::uint64_t kValues[] = {0,          1,          ~0ULL,       1ULL << 31,
                                       1ULL << 32, 1ULL << 63, 0x7fff'ffff, 64};
  for (int i = 0; i < words; ++i) {
    const Area& area = all[random() % all.size()];
    const std::size_t reach = std::min(area.bytes, kReaches[random() % std::size(kReaches)]);
    unsigned char* place = area.begin + random() % (reach / 8) * 8;
    const std::uint64_t value =
        random() % 2 == 0 ? kValues[random() % std::size(kValues)] : random();
    const std::size_t width = random() % 2 == 0 ? 4 : 8;
    std::memcpy(place, &value, width);
  }
}

void requireSums(const float* data, std::int64_t count, bool& stop) {
  const auto expected = static_cast<float>(farandole_size());
  stop = data[0] == expected + 1;  // rank 0 has had enough
  for (std::int64_t i = 0; i < count; ++i) {
    if (data[i] != expected && !(i == 0 && stop)) {
      say("wrong: element " + std::to_string(i) + " is " + std::to_string(data[i]));
      ::_exit(1);
    }
  }
}

}  // namespace

// under_attack SECONDS BYTES ordinary|shared named|ordered [child] [scribble SEED RANK]
CORE_CASE(under_attack) {
  const std::int64_t end =
      monotonicNanoseconds() + static_cast<std::int64_t>(std::stod(arguments.at(0)) * 1e9);
  const std::int64_t count = std::stoll(arguments.at(1)) / static_cast<std::int64_t>(sizeof(float));
  const bool shared = arguments.at(2) == "shared";
  const bool ordered = arguments.at(3) == "ordered";
  const bool scribbles = arguments.size() > 6 && arguments.at(4) == "scribble";
  // The launcher asks the survivors to end as soon as it knows of a death: they are to hear of it
  // from their call.
  ::signal(SIGTERM, SIG_IGN);
  if (arguments.size() > 4 && arguments.at(4) == "child") startUnmarkedChild();
  farandole_error error{};
  error.struct_size = sizeof error;
  const auto lost = [&](const char* where, farandole_code code) {
    farandole_last_error(&error);
    say(std::string("lost ") + where + " at=" + std::to_string(monotonicNanoseconds()) + " code=" +
        std::to_string(code) + " rank=" + std::to_string(error.rank) + " message=" + error.message);
    ::_exit(23);
  };
  if (const farandole_code code = farandole_init(nullptr); code != FARANDOLE_OK) lost("init", code);
  const int me = farandole_rank();
  std::vector<float> ordinary(shared ? 0 : static_cast<std::size_t>(count));
  void* memory = ordinary.data();
  if (shared) {
    if (const farandole_code code =
            farandole_allocate(static_cast<std::size_t>(count) * sizeof(float), &memory);
        code != FARANDOLE_OK) {
      lost("allocate", code);
    }
  }
  auto* data = static_cast<float*>(memory);
  say("ready");
  const bool hostile = scribbles && me == std::stoi(arguments.at(6));
  Random random(scribbles ? std::stoull(arguments.at(5)) : 0);
  bool stop = false;
  for (int round = 0; !stop; ++round) {
    std::fill_n(data, count, 1.0F);
    if (me == 0 && monotonicNanoseconds() > end) data[0] = 2;
    farandole_request request = allreduceOf("gradient", data, &count);
    if (ordered) request.flags |= FARANDOLE_FLAG_ORDERED;
    if (hostile && round >= 20) {
      if (round == 60) ::_exit(9);
      scribble(random, 1 << random() % 8);
    }
    farandole_handle pending = 0;
    if (const farandole_code code = farandole_call(&request, hostile ? 200 : -1, &pending);
        code != FARANDOLE_OK) {
      if (hostile) ::_exit(9);
      lost("call", code);
    }
    if (!scribbles) requireSums(data, count, stop);
    // Wrong numbers are what a hostile rank can always cause; the others must only not break, and
    // must end.
    if (scribbles && monotonicNanoseconds() > end) stop = true;
    if (round % 8 == 0) sleepMs(1);
  }
  say("done");
  farandole_shutdown();
}

}  // namespace farandole::test
