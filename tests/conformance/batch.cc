#include "conformance/batch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "conformance/elements.h"

namespace conformance {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}
std::size_t index(int member) { return static_cast<std::size_t>(member); }

std::vector<std::int64_t> evenly(std::int64_t rows, int members) {
  std::vector<std::int64_t> parts(index(members), rows / members);
  for (std::int64_t i = 0; i < rows % members; ++i) ++parts[static_cast<std::size_t>(i)];
  return parts;
}

bool reduces(int operation) {
  return operation == FARANDOLE_ALLREDUCE || operation == FARANDOLE_REDUCE ||
         operation == FARANDOLE_REDUCESCATTER;
}

const char* nameOf(int operation) {
  constexpr const char* kNames[] = {"allreduce",     "allgather", "broadcast", "alltoall",
                                    "reducescatter", "reduce",    "gather",    "scatter",
                                    "barrier",       "join",      "send",      "recv"};
  return kNames[operation];
}

// ---- What elements are.

// Bytes [begin, begin + count) of what a rank moves.
void movedBytes(const Planned& planned, int rank, std::size_t begin, std::size_t count,
                unsigned char* to) {
  const std::uint64_t base = mixed(planned.salt + static_cast<std::uint64_t>(rank) * 0x1234567);
  for (std::size_t at = begin; at < begin + count; ++at) {
    const auto byte = static_cast<unsigned char>(mixed(base + at / 8) >> at % 8 * 8);
    *to++ = planned.dtype == FARANDOLE_BOOL ? byte & 1 : byte;
  }
}

std::int64_t broughtBy(const Planned& planned, int member, std::int64_t i) {
  if (planned.op == FARANDOLE_ADASUM) {
    // Equal ones give themselves, orthogonal ones their sum.
    if (planned.salt % 2 == 0) return i % 17 + 1;
    return i % static_cast<std::int64_t>(planned.members.size()) == member ? 3 : 0;
  }
  const auto offset = static_cast<std::int64_t>(planned.salt % 100'003);
  return valueOf(planned.members[index(member)], i + offset, planned.op, planned.dtype);
}

double reducedAt(const Planned& planned, std::int64_t i) {
  std::int64_t value = 0;
  int contributors = 0;
  for (int member = 0; member < static_cast<int>(planned.members.size()); ++member) {
    if (!planned.present[index(member)]) continue;
    const std::int64_t next =
        broughtBy(planned, member, i) * static_cast<std::int64_t>(planned.prescale);
    if (contributors++ == 0) {
      value = next;
    } else if (planned.op == FARANDOLE_ADASUM) {
      value = std::max(value, next);
    } else {
      value = reduceTwo(value, next, planned.op, planned.dtype);
    }
  }
  double result = static_cast<double>(value);
  if (planned.op == FARANDOLE_AVERAGE) result /= contributors;
  result *= planned.postscale;
  return isFloat(planned.dtype) || isComplex(planned.dtype) ? result : std::trunc(result);
}

float floatOfBits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double floatOfHalf(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 0x3ff;
  if (exponent == 31) return std::nan("");
  const double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename T>
double loadAs(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double load(const unsigned char* at, int dtype) {
  switch (dtype) {
    case FARANDOLE_UINT8: return loadAs<std::uint8_t>(at);
    case FARANDOLE_INT8: return loadAs<std::int8_t>(at);
    case FARANDOLE_UINT16: return loadAs<std::uint16_t>(at);
    case FARANDOLE_INT16: return loadAs<std::int16_t>(at);
    case FARANDOLE_INT32: return loadAs<std::int32_t>(at);
    case FARANDOLE_INT64: return loadAs<std::int64_t>(at);
    case FARANDOLE_FLOAT16:
      return floatOfHalf(static_cast<std::uint16_t>(loadAs<std::uint16_t>(at)));
    case FARANDOLE_BFLOAT16:
      return floatOfBits(static_cast<std::uint32_t>(loadAs<std::uint16_t>(at)) << 16);
    case FARANDOLE_FLOAT64: return loadAs<double>(at);
    case FARANDOLE_BOOL: return loadAs<std::uint8_t>(at);
    default: return loadAs<float>(at);
  }
}

// How far a result may be from the true one, relatively: only averages and Adasum are rounded.
double tolerance(const Planned& planned) {
  if (planned.op != FARANDOLE_AVERAGE && planned.op != FARANDOLE_ADASUM) return 0;
  switch (planned.dtype) {
    case FARANDOLE_FLOAT16: return 2e-3;
    case FARANDOLE_BFLOAT16: return 1e-2;
    case FARANDOLE_FLOAT32:
      if (std::getenv("FARANDOLE_WIRE") != nullptr) return 1e-2;  // it may travel as 16 bits
      [[fallthrough]];
    case FARANDOLE_COMPLEX64: return planned.op == FARANDOLE_ADASUM ? 1e-4 : 1e-6;
    case FARANDOLE_FLOAT64:
    case FARANDOLE_COMPLEX128: return 1e-9;
    default: return 0;
  }
}

// ---- How operations are drawn.

// What operations that may be fused have in common.
struct Template {
  int operation;
  int dtype;
  int op;
  int set;
  int root;
  double prescale;
  double postscale;
};

int drawOperation(Dice& dice) {
  struct Share {
    int operation;
    int percent;
  };
  constexpr Share kShares[] = {{FARANDOLE_ALLREDUCE, 30},    {FARANDOLE_BROADCAST, 20},
                               {FARANDOLE_ALLGATHER, 10},    {FARANDOLE_ALLTOALL, 8},
                               {FARANDOLE_REDUCESCATTER, 8}, {FARANDOLE_REDUCE, 8},
                               {FARANDOLE_GATHER, 5},        {FARANDOLE_SCATTER, 5},
                               {FARANDOLE_BARRIER, 2},       {FARANDOLE_SEND, 4}};
  std::int64_t at = dice.upTo(99);
  for (const Share& share : kShares) {
    if ((at -= share.percent) < 0) return share.operation;
  }
  return FARANDOLE_BARRIER;
}

void drawReduction(Dice& dice, Template& drawn) {
  do {
    drawn.op = static_cast<int>(dice.between(FARANDOLE_SUM, FARANDOLE_ADASUM));
    if (drawn.op == FARANDOLE_ADASUM) {
      drawn.dtype = static_cast<int>(dice.between(FARANDOLE_FLOAT16, FARANDOLE_FLOAT64));
    }
  } while (drawn.op == FARANDOLE_ADASUM    ? drawn.operation != FARANDOLE_ALLREDUCE
           : drawn.op == FARANDOLE_AVERAGE ? drawn.dtype == FARANDOLE_BOOL
                                           : !supported(drawn.op, drawn.dtype));
  const bool scales = drawn.op <= FARANDOLE_MAX && drawn.dtype != FARANDOLE_BOOL;
  if (scales && dice.percent(15)) drawn.prescale = 2;
  if (scales && dice.percent(15)) drawn.postscale = dice.percent(50) ? 2 : 0.5;
}

Template drawTemplate(Dice& dice, const BatchOptions& options) {
  Template drawn{drawOperation(dice), 0, FARANDOLE_SUM, 0, 0, 1, 1};
  drawn.dtype = static_cast<int>(dice.between(FARANDOLE_UINT8, FARANDOLE_COMPLEX128));
  if (dice.percent(40)) drawn.dtype = FARANDOLE_FLOAT32;
  if (dice.percent(40))
    drawn.set = static_cast<int>(dice.upTo(static_cast<std::int64_t>(options.sets.size()) - 1));
  drawn.root = dice.oneOf(options.sets[index(drawn.set)]);
  if (reduces(drawn.operation)) drawReduction(dice, drawn);
  return drawn;
}

// Elements of one tensor: often few, sometimes none, seldom as many as there may be.
std::int64_t drawCount(Dice& dice, std::int64_t most) {
  const std::int64_t limits[] = {0, 20, 300, 5000, 40'000, most};
  constexpr int kShares[] = {6, 20, 42, 72, 94, 100};
  const std::int64_t where = dice.upTo(99);
  for (std::size_t i = 0; i < std::size(limits); ++i) {
    if (where < kShares[i]) return dice.upTo(std::min(limits[i], most));
  }
  return 0;
}

// Parts of so many rows, of any lengths.
std::vector<std::int64_t> drawParts(Dice& dice, std::int64_t rows, int members) {
  std::vector<std::int64_t> borders{0, rows};
  for (int i = 1; i < members; ++i) borders.push_back(dice.upTo(rows));
  std::sort(borders.begin(), borders.end());
  std::vector<std::int64_t> parts;
  for (std::size_t i = 1; i < borders.size(); ++i) parts.push_back(borders[i] - borders[i - 1]);
  dice.shuffle(parts);
  return parts;
}

void drawShapes(Dice& dice, Planned& planned, std::int64_t mostElements) {
  const int members = static_cast<int>(planned.members.size());
  const std::int64_t count = drawCount(dice, mostElements);
  planned.width = dice.oneOf(std::vector<std::int64_t>{1, 1, 1, 2, 7, 64});
  const std::int64_t rows = (count + planned.width - 1) / planned.width;
  planned.rows.assign(index(members), rows);
  switch (planned.operation) {
    case FARANDOLE_ALLGATHER:
    case FARANDOLE_GATHER:
      if (dice.percent(60)) planned.rows = drawParts(dice, rows, members);
      break;
    case FARANDOLE_ALLTOALL: {
      const bool even = dice.percent(30);
      for (std::int64_t& each : planned.rows) {
        const std::int64_t mine = dice.upTo(rows / members + 1);
        each = mine * members;
        planned.splits.push_back(even ? evenly(each, members) : drawParts(dice, each, members));
      }
      if (even) planned.splits.clear();
      break;
    }
    case FARANDOLE_REDUCESCATTER:
    case FARANDOLE_SCATTER:
      if (dice.percent(50)) planned.splits.push_back(drawParts(dice, rows, members));
      break;
    case FARANDOLE_BARRIER: planned.rows.assign(index(members), 0); break;
    default: break;
  }
}

Planned draw(Dice& dice, const BatchOptions& options, const Template& from,
             std::int64_t mostBytes) {
  Planned planned;
  planned.operation = from.operation;
  planned.dtype = from.dtype;
  planned.op = from.op;
  planned.set = from.set;
  planned.members = options.sets[index(from.set)];
  planned.root = from.root;
  planned.prescale = from.prescale;
  planned.postscale = from.postscale;
  planned.present.assign(planned.members.size(), true);
  if (planned.operation == FARANDOLE_SEND) {
    if (planned.members.size() == 1) planned.operation = FARANDOLE_BARRIER;
    planned.peer = planned.root;
    while (planned.members.size() > 1 && planned.peer == planned.root) {
      planned.peer = dice.oneOf(planned.members);
    }
  }
  drawShapes(dice, planned, mostBytes / static_cast<std::int64_t>(sizeOf(planned.dtype)));
  return planned;
}

// Some neighbours of one set become a group.
void drawGroups(Dice& dice, Batch& batch) {
  if (!dice.percent(25)) return;
  int group = 0;
  for (std::size_t i = 0; i < batch.size();) {
    const auto wanted = static_cast<std::size_t>(dice.between(1, 6));
    std::size_t end = i;
    while (end < batch.size() && end - i < wanted && !batch[end].ordered &&
           batch[end].set == batch[i].set && batch[end].operation != FARANDOLE_SEND) {
      ++end;
    }
    if (end > i + 1) {
      ++group;
      for (std::size_t j = i; j < end; ++j) batch[j].group = group;
    }
    i = std::max(end, i + 1);
  }
}

void nameAll(Batch& batch, std::int64_t round, std::uint64_t seed) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].name = "b" + std::to_string(round % 2) + "." + std::to_string(i);
    batch[i].tag = static_cast<int>(round % 2 * 1000) + static_cast<int>(i);
    batch[i].salt = diceOf(seed, static_cast<std::uint64_t>(round), i + 1).next();
  }
}

}  // namespace

std::uint64_t Dice::next() { return mixed(state_ += 0x9e3779b97f4a7c15u); }

Dice diceOf(std::uint64_t seed, std::uint64_t which, std::uint64_t more) {
  return Dice(mixed(mixed(seed * 0x9e3779b97f4a7c15u + which) + more * 0x2545f4914f6cdd1du));
}

int Planned::memberOf(int rank) const {
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

std::size_t Planned::bytes(std::int64_t count) const {
  return static_cast<std::size_t>(count) * sizeOf(dtype);
}

std::int64_t Planned::inputOf(int member) const {
  const int who = members[index(member)];
  const bool onlyRoot = operation == FARANDOLE_BROADCAST || operation == FARANDOLE_SCATTER ||
                        operation == FARANDOLE_SEND;
  return onlyRoot && who != root ? 0 : rows[index(member)] * width;
}

std::vector<std::int64_t> Planned::receivedBy(int member) const {
  std::vector<std::int64_t> received;
  for (int other = 0; other < static_cast<int>(members.size()); ++other) {
    if (operation != FARANDOLE_ALLTOALL) {
      received.push_back(present[index(other)] ? rows[index(other)] : 0);
    } else if (splits.empty()) {
      received.push_back(rows[index(other)] / static_cast<std::int64_t>(members.size()));
    } else {
      received.push_back(splits[index(other)][index(member)]);
    }
  }
  return received;
}

std::int64_t Planned::outputOf(int member) const {
  const int who = members[index(member)];
  switch (operation) {
    case FARANDOLE_ALLREDUCE:
    case FARANDOLE_BROADCAST: return rows[index(member)] * width;
    case FARANDOLE_REDUCE: return who == root ? rows[index(member)] * width : 0;
    case FARANDOLE_GATHER: return who == root ? sum(receivedBy(member)) * width : 0;
    case FARANDOLE_ALLGATHER:
    case FARANDOLE_ALLTOALL: return sum(receivedBy(member)) * width;
    case FARANDOLE_REDUCESCATTER:
    case FARANDOLE_SCATTER: {
      const auto parts =
          splits.empty() ? evenly(rows[0], static_cast<int>(members.size())) : splits[0];
      return parts[index(member)] * width;
    }
    case FARANDOLE_SEND: return who == peer ? rows[index(member)] * width : 0;
    default: return 0;
  }
}

std::string Planned::describe() const {
  std::string text = name + " (" + nameOf(operation) + ", dtype " + std::to_string(dtype) +
                     ", op " + std::to_string(op) + ", root " + std::to_string(root) + ", ranks";
  for (std::size_t i = 0; i < members.size(); ++i) {
    text += " " + std::to_string(members[i]) + ":" + std::to_string(rows[i]);
    if (!present[i]) text += " joined";
  }
  text += ", rows of " + std::to_string(width);
  if (prescale != 1 || postscale != 1) {
    text += ", scales " + std::to_string(prescale) + " " + std::to_string(postscale);
  }
  if (ordered) text += ", ordered";
  if (group != 0) text += ", group " + std::to_string(group);
  return text + ")";
}

void Planned::fill(int member, unsigned char* memory) const {
  const std::int64_t count = inputOf(member);
  if (!reduces(operation)) {
    return movedBytes(*this, members[index(member)], 0, bytes(count), memory);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    store(memory + bytes(i), dtype, broughtBy(*this, member, i));
  }
}

std::string Planned::check(int member, const unsigned char* output) const {
  const auto wrong = [](std::int64_t i) { return "element " + std::to_string(i) + " is wrong"; };
  if (reduces(operation)) {
    std::int64_t first = 0;
    if (operation == FARANDOLE_REDUCESCATTER) {
      for (int before = 0; before < member; ++before) first += outputOf(before);
    }
    const double most = tolerance(*this);
    for (std::int64_t i = 0; i < outputOf(member); ++i) {
      const double want = reducedAt(*this, first + i);
      const unsigned char* at = output + bytes(i);
      const int real = dtype == FARANDOLE_COMPLEX128 ? int{FARANDOLE_FLOAT64} : dtype;
      const bool good = std::abs(load(at, real) - want) <= most * std::abs(want) &&
                        (!isComplex(dtype) || std::abs(load(at + sizeOf(dtype) / 2, real) + want) <=
                                                  most * std::abs(want));
      if (!good) {
        return wrong(i) + ": " + std::to_string(load(at, real)) + " instead of " +
               std::to_string(want);
      }
    }
    return "";
  }
  std::vector<unsigned char> want;
  const auto expect = [&](int rank, std::int64_t begin, std::int64_t count) {
    const std::size_t at = want.size();
    want.resize(at + bytes(count));
    movedBytes(*this, rank, bytes(begin), bytes(count), want.data() + at);
  };
  std::int64_t before = 0;
  switch (operation) {
    case FARANDOLE_ALLGATHER:
    case FARANDOLE_GATHER:
      for (int other = 0; other < static_cast<int>(members.size()) && outputOf(member) > 0;
           ++other) {
        expect(members[index(other)], 0, receivedBy(member)[index(other)] * width);
      }
      break;
    case FARANDOLE_ALLTOALL:
      for (int other = 0; other < static_cast<int>(members.size()); ++other) {
        std::int64_t begin = 0;
        for (int to = 0; to < member; ++to) begin += receivedBy(to)[index(other)] * width;
        expect(members[index(other)], begin, receivedBy(member)[index(other)] * width);
      }
      break;
    case FARANDOLE_SCATTER:
      for (int other = 0; other < member; ++other) before += outputOf(other);
      expect(root, before, outputOf(member));
      break;
    default: expect(root, 0, outputOf(member)); break;
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] != output[i]) return wrong(static_cast<std::int64_t>(i / sizeOf(dtype)));
  }
  return "";
}

Batch batchOf(const BatchOptions& options, std::int64_t round) {
  // A round may be that of two before again: names, shapes, everything but the data.
  std::int64_t source = round;
  while (source >= 2 && diceOf(options.seed, static_cast<std::uint64_t>(source)).percent(35)) {
    source -= 2;
  }
  Dice dice = diceOf(options.seed, static_cast<std::uint64_t>(source));
  (void)dice.next();
  // Most batches have few kinds of operations, so that there is something to fuse.
  std::vector<Template> templates;
  for (std::int64_t i = dice.between(1, 4); i > 0; --i) {
    templates.push_back(drawTemplate(dice, options));
  }
  const int strangers = dice.percent(30) ? 100 : 15;
  const auto wanted =
      static_cast<std::size_t>(dice.percent(70) ? dice.between(2, 24) : dice.between(24, 80));
  const std::int64_t most = dice.percent(60)   ? options.mostBytes / 40
                            : dice.percent(75) ? options.mostBytes / 8
                                               : options.mostBytes;
  Batch batch;
  std::size_t total = 0;
  while (batch.size() < wanted && total < static_cast<std::size_t>(options.mostBytes)) {
    const Template from =
        dice.percent(strangers) ? drawTemplate(dice, options) : dice.oneOf(templates);
    Planned planned = draw(dice, options, from, most);
    planned.ordered = planned.operation != FARANDOLE_SEND && dice.percent(10);
    for (int member = 0; member < static_cast<int>(planned.members.size()); ++member) {
      total += planned.bytes(std::max(planned.inputOf(member), planned.outputOf(member)));
    }
    batch.push_back(std::move(planned));
  }
  drawGroups(dice, batch);
  nameAll(batch, round, options.seed);
  return batch;
}

Batch joiningBatchOf(const BatchOptions& options, std::int64_t round,
                     std::vector<std::int64_t>& steps) {
  Dice dice = diceOf(options.seed, static_cast<std::uint64_t>(round), 1);
  const auto count = dice.between(1, 20);
  const std::vector<int>& world = options.sets.front();
  const int longest = dice.oneOf(world);
  steps.clear();
  for (const int rank : world) steps.push_back(rank == longest ? count : dice.upTo(count));
  Template base = drawTemplate(dice, options);
  Batch batch;
  while (static_cast<std::int64_t>(batch.size()) < count) {
    Template from = dice.percent(50) ? base : drawTemplate(dice, options);
    from.set = 0;
    // Those of a rank that has joined are refused.
    from.root = longest;
    if (from.operation != FARANDOLE_ALLREDUCE && from.operation != FARANDOLE_ALLGATHER &&
        from.operation != FARANDOLE_BROADCAST && from.operation != FARANDOLE_BARRIER) {
      from.operation = FARANDOLE_BARRIER;
    }
    Planned planned = draw(dice, options, from, options.mostBytes / 40);
    for (std::size_t i = 0; i < world.size(); ++i) {
      planned.present[i] = static_cast<std::int64_t>(batch.size()) < steps[i];
    }
    batch.push_back(std::move(planned));
  }
  nameAll(batch, round, options.seed);
  return batch;
}

}  // namespace conformance
