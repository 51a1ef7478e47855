// Random batches of operations, compared with a reference: one rank of them. Every rank runs
// `batches_rank SEED ROUNDS [FIRST [leave]]` and says, when something is wrong, which operation of
// which round it was; the same seed gives the same operations.
//
// A round's batch is submitted while that of the round before is still in flight, by each rank in
// an order of its own, and waited for in another. Now and then everything is waited for, ranks
// leave by joining, and process sets are exchanged. leave: in the midst of it rank 1 ends, and all
// the others must be told so.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "conformance/batch.h"
#include "conformance/rank.h"

namespace conformance {
namespace {

constexpr std::int64_t kPatienceMs = 60'000;
constexpr std::int64_t kRoundsPerSets = 16;  // then one of the sets is exchanged
constexpr std::int64_t kRoundsPerJoin = 6;
#if defined(FARANDOLE_ASAN) || defined(FARANDOLE_TSAN)
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
#else
constexpr std::int64_t kMostBytes = std::int64_t{8} << 20;
#endif

std::uint64_t seed = 1;
long checks = 0;
std::optional<std::int64_t> leaveIn;  // rank 1, in that round

// In good order, but in the midst of things: what is in flight is not waited for, nor freed.
[[noreturn]] void endHere() {
  farandole_shutdown();
  std::_Exit(0);
}

// What the others may be told then.
void mustUnlessLeft(farandole_code code, const std::string& what) {
  if (leaveIn && code == FARANDOLE_PEER_LOST) endHere();
  must(code, what);
}

// Ordinary or shared memory between guards, at any alignment.
class Memory {
 public:
  Memory(std::size_t bytes, Dice& dice) : bytes_(bytes), shared_(dice.percent(40)) {
    front_ = kGuard + (dice.percent(30) ? static_cast<std::size_t>(dice.upTo(63)) : 0);
    const std::size_t all = front_ + bytes + kGuard;
    if (shared_) {
      void* memory = nullptr;
      must(farandole_allocate(all, &memory), "allocate");
      base_ = static_cast<unsigned char*>(memory);
    } else {
      base_ = static_cast<unsigned char*>(std::malloc(all));
    }
    std::memset(base_, kMark, all);
  }
  ~Memory() {
    if (shared_) {
      farandole_free(base_);
    } else {
      std::free(base_);
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  unsigned char* data() const { return base_ + front_; }
  bool guarded() const { return untouched(base_, front_) && untouched(data() + bytes_, kGuard); }
  static bool untouched(const unsigned char* memory, std::size_t bytes) {
    return std::all_of(memory, memory + bytes, [](unsigned char each) { return each == kMark; });
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr unsigned char kMark = 0xa5;
  const std::size_t bytes_;
  const bool shared_;
  std::size_t front_ = 0;
  unsigned char* base_ = nullptr;
};

// This rank's share of one operation.
struct Share {
  const Planned* planned = nullptr;
  int member = 0;
  std::optional<Memory> input;
  std::optional<Memory> output;  // none: in place, or the library's
  bool inPlace = false;
  std::vector<std::int64_t> shape;
  farandole_request request = FARANDOLE_REQUEST_INIT;
  farandole_handle handle = 0;
};

// A batch under way.
struct Flight {
  std::int64_t round = 0;
  Batch batch;
  std::vector<std::unique_ptr<Share>> shares;
};

[[noreturn]] void wrong(std::int64_t round, const Planned& planned, const std::string& what) {
  const std::int64_t before = std::max<std::int64_t>(0, round - 1);
  fail("seed " + std::to_string(seed) + ", round " + std::to_string(round) + ", " +
       planned.describe() + ": " + what + "\nagain: batches_rank " + std::to_string(seed) + " " +
       std::to_string(round + 1 - before) + " " + std::to_string(before));
}

void giveMemory(Share& share, Dice& dice) {
  const Planned& planned = *share.planned;
  const std::size_t in = planned.bytes(planned.inputOf(share.member));
  const std::size_t out = planned.bytes(planned.outputOf(share.member));
  const bool mayOwn = planned.operation != FARANDOLE_ALLREDUCE &&
                      planned.operation != FARANDOLE_BROADCAST &&
                      planned.operation != FARANDOLE_REDUCE && planned.operation != FARANDOLE_SEND;
  share.inPlace = planned.operation != FARANDOLE_SEND && dice.percent(40);
  share.input.emplace(share.inPlace ? std::max(in, out) : in, dice);
  planned.fill(share.member, share.input->data());
  if (!share.inPlace && !(mayOwn && dice.percent(50))) share.output.emplace(out, dice);
  share.request.input = share.input->data();
  share.request.output = share.inPlace              ? share.input->data()
                         : share.output.has_value() ? share.output->data()
                                                    : nullptr;
  if (share.request.output != nullptr) {
    share.request.output_bytes = static_cast<std::int64_t>(share.inPlace ? std::max(in, out) : out);
  }
}

void describe(Share& share, farandole_set set, Dice& dice) {
  const Planned& planned = *share.planned;
  farandole_request& request = share.request;
  const auto member = static_cast<std::size_t>(share.member);
  const bool receives = planned.operation == FARANDOLE_SEND && rank == planned.peer;
  request.operation = receives ? int{FARANDOLE_RECV} : planned.operation;
  request.dtype = planned.dtype;
  request.op = planned.op;
  request.root = planned.root;
  if (planned.operation == FARANDOLE_SEND && !receives) request.root = planned.peer;
  if (receives && dice.percent(30)) request.root = FARANDOLE_ANY_RANK;
  request.set = set;
  request.tag = planned.tag;
  request.flags = dice.percent(50) ? FARANDOLE_FLAG_WILL_WAIT : 0;
  if (planned.ordered) request.flags |= FARANDOLE_FLAG_ORDERED;
  request.name = planned.name.c_str();
  share.shape = {planned.rows[member]};
  if (planned.width != 1) share.shape.push_back(planned.width);
  request.shape = share.shape.data();
  request.ndim = static_cast<std::int32_t>(share.shape.size());
  if (!planned.splits.empty()) {
    const auto& splits =
        planned.splits[planned.operation == FARANDOLE_ALLTOALL ? member : std::size_t{0}];
    request.splits = splits.data();
    request.nsplits = static_cast<std::int32_t>(splits.size());
  }
  request.prescale = planned.prescale;
  request.postscale = planned.postscale;
  request.group = static_cast<std::uint64_t>(planned.group);
}

// In an order of this rank's own: groups stay together, ordered ones keep their order.
std::vector<std::vector<Share*>> unitsOf(const Flight& flight, Dice& dice) {
  std::vector<std::vector<Share*>> units;
  std::vector<Share*> ordered;
  for (const auto& share : flight.shares) {
    const int group = share->planned->group;
    if (group != 0 && !units.empty() && units.back().back()->planned->group == group) {
      units.back().push_back(share.get());
    } else {
      units.push_back({share.get()});
    }
    if (share->planned->ordered) ordered.push_back(share.get());
  }
  dice.shuffle(units);
  auto next = ordered.begin();
  for (auto& unit : units) {
    if (unit.front()->planned->ordered) unit.front() = *next++;
  }
  return units;
}

void submit(const Flight& flight, Dice& dice) {
  std::vector<Share*> gathered;
  const auto flush = [&] {
    std::vector<farandole_request> requests;
    for (const Share* share : gathered) requests.push_back(share->request);
    std::vector<farandole_handle> handles(requests.size());
    mustUnlessLeft(
        farandole_submit(requests.data(), requests.size(), handles.data()),
        "seed " + std::to_string(seed) + ", round " + std::to_string(flight.round) + ", submit");
    for (std::size_t i = 0; i < gathered.size(); ++i) gathered[i]->handle = handles[i];
    gathered.clear();
  };
  const int together = dice.percent(50) ? 10 : 80;
  for (const auto& unit : unitsOf(flight, dice)) {
    // A call is for one set.
    if (!gathered.empty() && gathered.back()->request.set != unit.front()->request.set) flush();
    gathered.insert(gathered.end(), unit.begin(), unit.end());
    if (!dice.percent(together)) flush();
  }
  if (!gathered.empty()) flush();
}

Flight start(const std::vector<farandole_set>& sets, Batch batch, std::int64_t round, Dice& dice) {
  Flight flight;
  flight.round = round;
  flight.batch = std::move(batch);
  for (const Planned& planned : flight.batch) {
    const int member = planned.memberOf(rank);
    if (member < 0 || !planned.present[static_cast<std::size_t>(member)]) continue;
    const bool message = planned.operation == FARANDOLE_SEND;
    if (message && rank != planned.root && rank != planned.peer) continue;
    auto share = std::make_unique<Share>();
    share->planned = &planned;
    share->member = member;
    giveMemory(*share, dice);
    describe(*share, sets[static_cast<std::size_t>(planned.set)], dice);
    flight.shares.push_back(std::move(share));
  }
  submit(flight, dice);
  return flight;
}

void check(std::int64_t round, const Share& share) {
  const Planned& planned = *share.planned;
  const std::int64_t count = planned.outputOf(share.member);
  farandole_result result = {};
  result.struct_size = sizeof result;
  must(farandole_get_result(share.handle, &result), planned.describe());
  if (count > 0) {
    if (result.bytes != planned.bytes(count)) wrong(round, planned, "its size is wrong");
    const std::string text =
        planned.check(share.member, static_cast<const unsigned char*>(result.data));
    if (!text.empty()) wrong(round, planned, text);
  }
  const bool tells = planned.operation == FARANDOLE_ALLGATHER ||
                     planned.operation == FARANDOLE_ALLTOALL ||
                     (planned.operation == FARANDOLE_GATHER && rank == planned.root);
  if (tells) {
    const auto received = planned.receivedBy(share.member);
    if (!std::equal(received.begin(), received.end(), result.splits,
                    result.splits + result.nsplits)) {
      wrong(round, planned, "its splits are wrong");
    }
  }
  if (!share.input->guarded() || (share.output && !share.output->guarded())) {
    wrong(round, planned, "wrote outside of its memory");
  }
  if (!share.inPlace) {
    std::vector<unsigned char> before(planned.bytes(planned.inputOf(share.member)));
    planned.fill(share.member, before.data());
    if (!std::equal(before.begin(), before.end(), share.input->data())) {
      wrong(round, planned, "wrote into its input");
    }
  }
  ++checks;
}

void finish(Flight& flight, Dice& dice) {
  dice.shuffle(flight.shares);
  for (auto& share : flight.shares) {
    const farandole_code code = farandole_wait(share->handle, kPatienceMs);
    if (leaveIn && code == FARANDOLE_PEER_LOST) endHere();
    if (code != FARANDOLE_OK) {
      farandole_error error = {};
      error.struct_size = sizeof error;
      farandole_last_error(&error);
      std::string text = std::string(farandole_code_name(code)) + ": " +
                         (error.message != nullptr ? error.message : "");
      for (const auto& other : flight.shares) {
        int32_t done = 0;
        if (code == FARANDOLE_TIMEOUT && other->handle != 0 &&
            farandole_test(other->handle, &done) == FARANDOLE_OK && done == 0) {
          text += "\n  not done: " + other->planned->describe();
        }
      }
      wrong(flight.round, *share->planned, text);
    }
    check(flight.round, *share);
    must(farandole_release(share->handle), "release");
    share->handle = 0;
    if (leaveIn == flight.round && rank == 1 && dice.percent(20)) endHere();
  }
  if (leaveIn == flight.round && rank == 1) endHere();
}

void join(const BatchOptions& options, const std::vector<farandole_set>& sets, std::int64_t round,
          Dice& dice) {
  std::vector<std::int64_t> steps;
  Batch batch = joiningBatchOf(options, round, steps);
  Flight flight = start(sets, std::move(batch), round, dice);
  farandole_request request = FARANDOLE_REQUEST_INIT;
  request.operation = FARANDOLE_JOIN;
  farandole_handle handle = 0;
  mustUnlessLeft(farandole_submit(&request, 1, &handle), "join");
  finish(flight, dice);
  mustUnlessLeft(farandole_wait(handle, kPatienceMs), "join");
  must(farandole_release(handle), "join");
}

// Sets of the rounds [from, from + kRoundsPerSets): the world and three others, of which one is
// new.
std::vector<int> drawSet(std::uint64_t which) {
  Dice dice = diceOf(seed, which, 77);
  std::vector<int> ranks;
  for (int each = 0; each < size; ++each) ranks.push_back(each);
  dice.shuffle(ranks);
  ranks.resize(static_cast<std::size_t>(dice.between(1, size)));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

farandole_set addSet(const std::vector<int>& ranks) {
  farandole_set set = 0;
  const std::vector<std::int32_t> members(ranks.begin(), ranks.end());
  must(farandole_add_set(members.data(), static_cast<std::int32_t>(members.size()), &set),
       "add a set");
  return set;
}

void run(std::int64_t first, std::int64_t rounds) {
  BatchOptions options;
  options.seed = seed;
  options.mostBytes = kMostBytes;
  options.sets.emplace_back();
  for (int each = 0; each < size; ++each) options.sets.front().push_back(each);
  std::vector<farandole_set> sets{0};
  for (std::uint64_t i = 0; i < 3; ++i) {
    options.sets.push_back(drawSet(i));
    sets.push_back(addSet(options.sets.back()));
  }
  std::optional<Flight> before;
  for (std::int64_t round = first; round < first + rounds; ++round) {
    Dice dice = diceOf(seed, static_cast<std::uint64_t>(round),
                       static_cast<std::uint64_t>(1'000'000 + rank));
    const bool joins = round % kRoundsPerJoin == kRoundsPerJoin - 1;
    const bool exchanges = round % kRoundsPerSets == kRoundsPerSets - 1;
    if (before && (joins || exchanges)) {
      finish(*before, dice);
      before.reset();
    }
    if (exchanges) {
      must(farandole_remove_set(sets.back()), "remove a set");
      options.sets.back() = drawSet(static_cast<std::uint64_t>(round) + 3);
      sets.back() = addSet(options.sets.back());
    }
    if (joins) {
      join(options, sets, round, dice);
      continue;
    }
    Flight flight = start(sets, batchOf(options, round), round, dice);
    if (before) finish(*before, dice);
    before.emplace(std::move(flight));
  }
  Dice dice(1);
  if (before) finish(*before, dice);
}

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  using namespace conformance;
  if (argc < 3 || argc > 5) {
    std::fprintf(stderr, "usage: batches_rank SEED ROUNDS [FIRST [leave]]\n");
    return 2;
  }
  if (argc == 5) leaveIn = std::strtoll(argv[3], nullptr, 10) + 3;
  seed = std::strtoull(argv[1], nullptr, 10);
  must(farandole_init(nullptr), "init");
  rank = farandole_rank();
  size = farandole_size();
  run(argc > 3 ? std::strtoll(argv[3], nullptr, 10) : 0, std::strtoll(argv[2], nullptr, 10));
  if (leaveIn) fail("rank 1 has left, and nobody said so");
  must(farandole_shutdown(), "shutdown");
  if (checks == 0) fail("nothing was checked");
  std::printf("seed %s: rank %d of %d: %ld checks\n", argv[1], rank, size, checks);
  return 0;
}
