// Outputs of the size that the caller says, and results of the size that the ranks make them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kUntouched{0xA5};

// Memory for an output: exactly as large as it is said to be, and bytes behind it that must stay as
// they are. Some of it without them, so that a sanitizer sees what is written there.
class Output {
 public:
  enum class Kind { kGuarded, kExact, kShared };
  Output(Kind kind, std::size_t bytes)
      : kind_(kind), all_(bytes + (kind == Kind::kExact ? 0 : kGuard)) {
    if (kind_ == Kind::kShared) {
      void* memory = nullptr;
      REQUIRE_OK(farandole_allocate(all_, &memory));
      data_ = static_cast<std::byte*>(memory);
    } else {
      data_ = static_cast<std::byte*>(std::malloc(all_));  // of 0 bytes, too: an address
      REQUIRE(data_ != nullptr);
    }
    std::memset(data_, static_cast<int>(kUntouched), all_);
  }
  ~Output() {
    if (kind_ == Kind::kShared) {
      farandole_free(data_);
    } else {
      std::free(data_);
    }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  std::byte* data() { return data_; }
  bool untouchedFrom(std::size_t first) const {
    for (std::size_t i = first; i < all_; ++i) {
      if (data_[i] != kUntouched) return false;
    }
    return true;
  }

 private:
  const Kind kind_;
  const std::size_t all_;
  std::byte* data_ = nullptr;
};

// What all ranks know of one round: made by all of them alike.
struct Round {
  int operation = 0;
  int root = 0;
  std::size_t rowBytes = 1;
  std::vector<std::int64_t> rows;                 // of each rank's input
  std::vector<std::vector<std::int64_t>> splits;  // rows of a rank for each rank
  enum class Room { kToldExactly, kToldMore, kToldLess, kUnknown, kOldStruct, kLibrarys };
  std::vector<Room> rooms;
  std::vector<int> by;  // how much more or less
  bool ordered = false;
  bool named = true;

  bool receives(int rank) const { return operation != FARANDOLE_GATHER || rank == root; }
  std::int64_t rowsFor(int rank) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (operation == FARANDOLE_ALLTOALL) sum += splits[i][static_cast<std::size_t>(rank)];
      if (operation == FARANDOLE_ALLGATHER || operation == FARANDOLE_GATHER) sum += rows[i];
    }
    if (operation == FARANDOLE_SCATTER)
      sum = splits[static_cast<std::size_t>(root)][static_cast<std::size_t>(rank)];
    return sum;
  }
  std::size_t needs(int rank) const { return static_cast<std::size_t>(rowsFor(rank)) * rowBytes; }
  std::size_t roomOf(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    const std::size_t needed = needs(rank);
    const auto own = static_cast<std::size_t>(rows[at]) * rowBytes;
    switch (rooms[at]) {
      case Room::kToldExactly:
      case Room::kLibrarys: return needed;
      case Room::kToldMore: return needed + static_cast<std::size_t>(by[at]);
      case Room::kToldLess: return needed - std::min(needed, static_cast<std::size_t>(by[at]));
      default: break;
    }
    const bool all = operation == FARANDOLE_ALLGATHER || operation == FARANDOLE_GATHER;
    return all ? own * rows.size() : own;
  }
  int firstTooSmall() const {
    for (int rank = 0; rank < static_cast<int>(rows.size()); ++rank) {
      if (receives(rank) && roomOf(rank) < needs(rank)) return rank;
    }
    return -1;
  }
};

using Random = std::mt19937_64;
std::int64_t below(Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

std::vector<std::int64_t> randomSplits(Random& random, std::int64_t rows, int n) {
  std::vector<std::int64_t> splits(static_cast<std::size_t>(n));
  for (int i = 0; i + 1 < n; ++i) {
    splits[static_cast<std::size_t>(i)] = below(random, rows + 1);
    rows -= splits[static_cast<std::size_t>(i)];
  }
  splits.back() = rows;
  return splits;
}

Round randomRound(Random& random, int n) {
  Round round;
  constexpr int kOperations[] = {FARANDOLE_ALLGATHER, FARANDOLE_GATHER, FARANDOLE_ALLTOALL,
                                 FARANDOLE_SCATTER};
  round.operation = kOperations[below(random, 4)];
  round.root = static_cast<int>(below(random, n));
  round.rowBytes = static_cast<std::size_t>(1 + below(random, 9));
  round.ordered = below(random, 3) == 0;
  round.named = below(random, 3) != 0;
  // Mostly few bytes, sometimes more than an engine sends at once.
  const std::int64_t most = below(random, 8) == 0 ? 200'000 : 40;
  const bool mayFail = below(random, 2) == 0;
  for (int rank = 0; rank < n; ++rank) {
    round.rows.push_back(below(random, most));
    round.splits.push_back(randomSplits(random, round.rows.back(), n));
    const bool odd = mayFail && below(random, n) == 0;
    round.rooms.push_back(odd ? static_cast<Round::Room>(2 + below(random, 3))
                              : static_cast<Round::Room>(std::array{0, 1, 5}[below(random, 3)]));
    const auto upTo = static_cast<std::int64_t>(round.rowBytes) * 3;
    round.by.push_back(static_cast<int>(1 + below(random, upTo)));
  }
  return round;
}

std::byte valueOf(int rank, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(rank) + 1) * 31 + i * 7);
}

// The bytes that the result must be.
std::vector<std::byte> expectedOf(const Round& round, int me) {
  std::vector<std::byte> all;
  const auto append = [&](int from, std::int64_t firstRow, std::int64_t rows) {
    const auto first = static_cast<std::size_t>(firstRow) * round.rowBytes;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows) * round.rowBytes; ++i) {
      all.push_back(valueOf(from, first + i));
    }
  };
  const auto n = static_cast<int>(round.rows.size());
  for (int from = 0; from < n; ++from) {
    const auto& splits = round.splits[static_cast<std::size_t>(from)];
    std::int64_t before = 0;
    for (int i = 0; i < me; ++i) before += splits[static_cast<std::size_t>(i)];
    if (round.operation == FARANDOLE_ALLTOALL ||
        (round.operation == FARANDOLE_SCATTER && from == round.root)) {
      append(from, before, splits[static_cast<std::size_t>(me)]);
    } else if (round.operation != FARANDOLE_SCATTER) {
      append(from, 0, round.rows[static_cast<std::size_t>(from)]);
    }
  }
  return all;
}

// This rank's part of a round, from the request to its outcome.
class Player {
 public:
  Player(const Round& round, std::string name, Random& own)
      : round_(round),
        name_(std::move(name)),
        me_(farandole_rank()),
        shape_{mine(round.rows), static_cast<std::int64_t>(round.rowBytes)},
        input_(static_cast<std::size_t>(shape_[0]) * round.rowBytes + 1),
        output_(static_cast<Output::Kind>(own() % 3), round.roomOf(me_)) {
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = valueOf(me_, i);
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  farandole_request request() {
    farandole_request request = FARANDOLE_REQUEST_INIT;
    request.operation = round_.operation;
    request.dtype = FARANDOLE_UINT8;
    request.root = round_.root;
    request.name = round_.named ? name_.c_str() : nullptr;
    request.flags = round_.ordered ? FARANDOLE_FLAG_ORDERED : 0;
    request.input = input_.data();
    request.shape = shape_;
    request.ndim = 2;
    if (round_.operation == FARANDOLE_ALLTOALL || round_.operation == FARANDOLE_SCATTER) {
      const auto& splits = mine(round_.splits);
      request.splits = splits.data();
      request.nsplits = static_cast<std::int32_t>(splits.size());
    }
    const Round::Room room = mine(round_.rooms);
    hasOutput_ = room != Round::Room::kLibrarys;
    if (!hasOutput_) return request;
    request.output = output_.data();
    if (room <= Round::Room::kToldLess) {
      request.output_bytes = static_cast<std::int64_t>(round_.roomOf(me_));
    }
    if (room == Round::Room::kOldStruct) {
      request.struct_size = offsetof(farandole_request, output_bytes);
      request.output_bytes = 1 << 30;  // not there
    }
    return request;
  }
  // `refused`: the round whose output is too small, because of which none has run; or null.
  void requireOutcome(farandole_handle handle, const Round* refused) {
    const farandole_code code = farandole_wait(handle, -1);
    if (refused != nullptr) {
      requireRefusal(code, handle, *refused);
      REQUIRE(output_.untouchedFrom(0));
    } else {
      REQUIRE_OK(code);
      requireResult(handle);
    }
    REQUIRE_OK(farandole_release(handle));
  }

  static void requireRefusal(farandole_code code, farandole_handle handle, const Round& refused) {
    REQUIRE_CODE(FARANDOLE_MISMATCH, code);
    const int odd = refused.firstTooSmall();
    const farandole_error error = errorOf(handle);
    REQUIRE(error.rank == odd);
    REQUIRE(contains(error, "room for " + std::to_string(refused.roomOf(odd)) + " bytes"));
    REQUIRE(contains(error, std::to_string(refused.needs(odd)) + " are to be received"));
  }

 private:
  template <typename T>
  const T& mine(const std::vector<T>& ofAll) const {
    return ofAll[static_cast<std::size_t>(me_)];
  }
  void requireResult(farandole_handle handle) {
    farandole_result result = emptyResult();
    REQUIRE_OK(farandole_get_result(handle, &result));
    if (round_.receives(me_)) {
      const auto expected = expectedOf(round_, me_);
      REQUIRE(result.bytes == expected.size());
      REQUIRE(expected.empty() || std::memcmp(result.data, expected.data(), expected.size()) == 0);
    }
    const bool written = hasOutput_ && round_.receives(me_);
    REQUIRE(output_.untouchedFrom(written ? round_.needs(me_) : 0));
  }

  const Round& round_;
  const std::string name_;
  const int me_;
  const std::int64_t shape_[2];
  std::vector<std::byte> input_;
  Output output_;
  bool hasOutput_ = false;
};

void play(const Round& round, int number, Random& own) {
  Player player(round, "outputs." + std::to_string(number % 5), own);  // most have plans
  const farandole_handle handle = submit(player.request());
  player.requireOutcome(handle, round.firstTooSmall() >= 0 ? &round : nullptr);
}

// Several of them in one group, with two reductions before, between or behind them, which nobody
// could refuse. True if the group was refused.
bool playGroup(const std::vector<Round>& rounds, std::size_t reductionsAt, int number,
               Random& own) {
  std::vector<std::unique_ptr<Player>> players;
  std::vector<farandole_request> requests;
  const Round* refused = nullptr;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const std::string name = std::to_string(number % 3) + "." + std::to_string(i);
    players.push_back(std::make_unique<Player>(rounds[i], "grouped." + name, own));
    requests.push_back(players.back()->request());
    if (refused == nullptr && rounds[i].firstTooSmall() >= 0) refused = &rounds[i];
  }
  float sums[2] = {1, 2};
  const std::int64_t one = 1;
  const std::string names[2] = {"grouped.sum.a", "grouped.sum.b"};
  for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    requests.insert(requests.begin() + static_cast<std::ptrdiff_t>(reductionsAt + i),
                    allreduceOf(names[i].c_str(), &sums[i], &one));
  }
  for (auto& request : requests) request.group = 3;
  std::vector<farandole_handle> handles(requests.size());
  REQUIRE_OK(farandole_submit(requests.data(), static_cast<std::int32_t>(requests.size()),
                              handles.data()));
  for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const farandole_handle handle = handles[reductionsAt + i];
    const farandole_code code = farandole_wait(handle, -1);
    const float mine = static_cast<float>(i + 1);
    if (refused != nullptr) {
      Player::requireRefusal(code, handle, *refused);
      REQUIRE(contains(errorOf(handle), "of this group cannot run"));
      REQUIRE(sums[i] == mine);
    } else {
      REQUIRE_OK(code);
      REQUIRE(sums[i] == mine * static_cast<float>(farandole_size()));
    }
    REQUIRE_OK(farandole_release(handle));
  }
  for (std::size_t i = 0; i < players.size(); ++i) {
    players[i]->requireOutcome(handles[i < reductionsAt ? i : i + 2], refused);
  }
  return refused != nullptr;
}

}  // namespace

// outputs ROUNDS SEED: random operations whose results' sizes other ranks decide, into outputs that
// are large enough, or not, or of unknown size.
CORE_CASE(outputs) {
  REQUIRE_OK(farandole_init(nullptr));
  const int rounds = std::stoi(arguments.at(0));
  Random random(std::stoull(arguments.at(1)));
  Random own(std::stoull(arguments.at(1)) + static_cast<std::uint64_t>(farandole_rank()) + 1);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    const Round round = randomRound(random, farandole_size());
    refused += round.firstTooSmall() >= 0;
    play(round, i, own);
  }
  // Both kinds have been seen.
  REQUIRE(refused > rounds / 20 && refused < rounds * 19 / 20);
  requireSum("after", 1.0F, static_cast<float>(farandole_size()));
  REQUIRE_OK(farandole_shutdown());
}

// grouped_outputs ROUNDS SEED: the same in groups, which run as a whole or not at all.
CORE_CASE(grouped_outputs) {
  REQUIRE_OK(farandole_init(nullptr));
  const int rounds = std::stoi(arguments.at(0));
  Random random(std::stoull(arguments.at(1)));
  Random own(std::stoull(arguments.at(1)) + static_cast<std::uint64_t>(farandole_rank()) + 1);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    std::vector<Round> group;
    const auto size = static_cast<std::size_t>(1 + below(random, 3));
    while (group.size() < size) {
      group.push_back(randomRound(random, farandole_size()));
      // Structs of one submission have one size; without the field its room is unknown, too.
      for (auto& room : group.back().rooms) {
        if (room == Round::Room::kOldStruct) room = Round::Room::kUnknown;
      }
    }
    const auto at = static_cast<std::size_t>(below(random, static_cast<std::int64_t>(size) + 1));
    refused += playGroup(group, at, i, own);
  }
  REQUIRE(refused > rounds / 20 && refused < rounds * 19 / 20);
  requireSum("after", 1.0F, static_cast<float>(farandole_size()));
  REQUIRE_OK(farandole_shutdown());
}

// Where the request itself tells the size, too small an output is refused at once.
CORE_CASE(outputs_of_known_size) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const bool first = farandole_rank() == 0;
  std::vector<float> data(static_cast<std::size_t>(4 * n), 1.0F);
  const std::int64_t rows = 4 * n;
  for (const int operation : {FARANDOLE_ALLREDUCE, FARANDOLE_BROADCAST, FARANDOLE_REDUCE,
                              FARANDOLE_REDUCESCATTER, FARANDOLE_RECV}) {
    farandole_request request = allreduceOf("known", data.data(), &rows);
    request.operation = operation;
    request.root = operation == FARANDOLE_RECV ? (farandole_rank() + 1) % n : farandole_rank();
    const std::int64_t needed = operation == FARANDOLE_REDUCESCATTER ? 16 : 16 * n;
    farandole_handle none = 0;
    for (const std::int64_t bytes : {std::int64_t{0}, needed - 1, std::int64_t{-2}}) {
      request.output_bytes = bytes;
      REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_submit(&request, 1, &none));
      REQUIRE(lastMessage().find(std::to_string(needed) + " are needed") != std::string::npos);
    }
    if (operation == FARANDOLE_RECV) continue;
    request.root = 0;
    request.output_bytes = operation == FARANDOLE_REDUCE && !first ? 0 : needed;
    REQUIRE_OK(run(request));
  }
  // Requests of a caller that does not know the field lie closer together.
  constexpr std::size_t kOld = offsetof(farandole_request, output_bytes);
  std::vector<std::byte> old(3 * kOld);
  std::vector<float> values(3, 1.0F);
  const std::int64_t one = 1;
  const char* const names[3] = {"old.0", "old.1", "old.2"};
  for (std::size_t i = 0; i < 3; ++i) {
    farandole_request request = allreduceOf(names[i], &values[i], &one);
    request.struct_size = kOld;
    std::memcpy(old.data() + i * kOld, &request, kOld);
  }
  farandole_handle handles[3];
  const auto* requests = reinterpret_cast<const farandole_request*>(old.data());
  REQUIRE_OK(farandole_submit(requests, 3, handles));
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE_OK(farandole_wait(handles[i], -1));
    REQUIRE_OK(farandole_release(handles[i]));
    REQUIRE(values[i] == static_cast<float>(n));
  }
  farandole_request mixed[2] = {allreduceOf("old.0", &values[0], &one),
                                allreduceOf("old.1", &values[1], &one)};
  mixed[1].struct_size = kOld;
  REQUIRE_CODE(FARANDOLE_INVALID_ARGUMENT, farandole_submit(mixed, 2, handles));
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
