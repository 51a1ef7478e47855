// Outputs of the size that the caller says, and results of the size that the ranks make them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <random>

#include "core/rank.h"

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
      : kind_(kind), bytes_(bytes), all_(bytes + (kind == Kind::kExact ? 0 : kGuard)) {
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
  const std::size_t bytes_;
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

void play(const Round& round, int number, Random& own) {
  const int me = farandole_rank();
  const auto at = static_cast<std::size_t>(me);
  std::vector<std::byte> input(static_cast<std::size_t>(round.rows[at]) * round.rowBytes + 1);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = valueOf(me, i);
  const std::int64_t shape[2] = {round.rows[at], static_cast<std::int64_t>(round.rowBytes)};
  const std::string name = "outputs." + std::to_string(number % 5);  // most have plans
  farandole_request request = FARANDOLE_REQUEST_INIT;
  request.operation = round.operation;
  request.dtype = FARANDOLE_UINT8;
  request.root = round.root;
  request.name = round.named ? name.c_str() : nullptr;
  request.flags = round.ordered ? FARANDOLE_FLAG_ORDERED : 0;
  request.input = input.data();
  request.shape = shape;
  request.ndim = 2;
  if (round.operation == FARANDOLE_ALLTOALL || round.operation == FARANDOLE_SCATTER) {
    request.splits = round.splits[at].data();
    request.nsplits = static_cast<std::int32_t>(round.splits[at].size());
  }
  const std::size_t room = round.roomOf(me);
  const auto kind = static_cast<Output::Kind>(own() % 3);
  Output output(kind, room);
  if (round.rooms[at] != Round::Room::kLibrarys) {
    request.output = output.data();
    if (round.rooms[at] <= Round::Room::kToldLess) {
      request.output_bytes = static_cast<std::int64_t>(room);
    }
    if (round.rooms[at] == Round::Room::kOldStruct) {
      request.struct_size = offsetof(farandole_request, output_bytes);
      request.output_bytes = 1 << 30;  // not there
    }
  }
  const int tooSmall = round.firstTooSmall();
  const farandole_handle handle = submit(request);
  const farandole_code code = farandole_wait(handle, -1);
  if (tooSmall >= 0) {
    REQUIRE_CODE(FARANDOLE_MISMATCH, code);
    const farandole_error error = errorOf(handle);
    REQUIRE(error.rank == tooSmall);
    REQUIRE(contains(error, "room for " + std::to_string(round.roomOf(tooSmall)) + " bytes"));
    REQUIRE(contains(error, std::to_string(round.needs(tooSmall)) + " are to be received"));
    REQUIRE(output.untouchedFrom(0));
  } else {
    REQUIRE_OK(code);
    farandole_result result = emptyResult();
    REQUIRE_OK(farandole_get_result(handle, &result));
    if (round.receives(me)) {
      const auto expected = expectedOf(round, me);
      REQUIRE(result.bytes == expected.size());
      REQUIRE(expected.empty() || std::memcmp(result.data, expected.data(), expected.size()) == 0);
    }
    const bool written = request.output != nullptr && round.receives(me);
    REQUIRE(output.untouchedFrom(written ? round.needs(me) : 0));
  }
  REQUIRE_OK(farandole_release(handle));
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
