// Every reduction × dtype × size, fused and alone, in place and not; and what numbers promise.
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "base/half.h"
#include "multiproc/mpi/rank.h"

namespace farandole::test {
namespace {

using collective::Communicator;
using collective::Piece;

constexpr ReduceOp kOps[] = {ReduceOp::kSum,  ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct,
                             ReduceOp::kBand, ReduceOp::kBor, ReduceOp::kBxor};

std::string label(const char* what, DType dtype, ReduceOp op, std::int64_t count) {
  return std::string(what) + " " + std::string(name(dtype)) + " " + std::string(name(op)) + " × " +
         std::to_string(count);
}

void allreduceOnce(Communicator& all, DType dtype, ReduceOp op, std::int64_t count, bool inPlace) {
  const std::string what = label("allreduce", dtype, op, count);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeOf(dtype);
  Buffer in(bytes);
  Buffer out(bytes);
  fill(in.at(0), count, dtype, op, all.member());
  const Piece piece{in.data(), inPlace ? in.data() : out.data(), count};
  run(all.allreduce(std::span(&piece, 1), dtype, op, {}), what);
  Buffer& result = inPlace ? in : out;
  expectReduced(result.at(0), count, dtype, op, firstRanks(all.size()), what);
  result.checkGuard(what);
}

// Small and large pieces in one operation: packed ones and one that is used where it lies.
void fused(Communicator& all, DType dtype, ReduceOp op) {
  const std::string what = label("fused allreduce", dtype, op, 0);
  const std::int64_t counts[] = {0, 1, 300, 270'000, 17, 5000};
  std::vector<Buffer> buffers;
  std::vector<Piece> pieces;
  for (const std::int64_t count : counts) {
    Buffer& buffer = buffers.emplace_back(static_cast<std::size_t>(count) * sizeOf(dtype));
    fill(buffer.at(0), count, dtype, op, all.member(), count);
    pieces.push_back({buffer.data(), buffer.data(), count});
  }
  run(all.allreduce(pieces, dtype, op, {}), what);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    expectReduced(buffers[i].at(0), counts[i], dtype, op, firstRanks(all.size()), what, counts[i]);
    buffers[i].checkGuard(what);
  }
}

// Many chunks, and members that come to them at different times.
void manyChunks(Communicator& all, DType dtype, int round) {
  constexpr std::int64_t kEach = 60'000;
  const std::size_t bytes = kEach * sizeOf(dtype);
  Buffer buffer(100 * bytes);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < 100; ++i) {
    std::byte* const at = buffer.at(i * bytes);
    fill(at, kEach, dtype, ReduceOp::kSum, all.member(), static_cast<std::int64_t>(i * 1013));
    pieces.push_back({at, at, kEach});
  }
  const auto operation = all.allreduce(pieces, dtype, ReduceOp::kSum, {});
  for (int i = 0; operation->progress() == collective::Progress::kPending; ++i) {
    if ((i * 7 + all.member() * 3 + round) % 5 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds((all.member() + round) % 3));
    }
  }
  must(operation->status(), "many chunks");
  for (std::size_t i = 0; i < 100; ++i) {
    expectReduced(buffer.at(i * bytes), kEach, dtype, ReduceOp::kSum, firstRanks(all.size()),
                  "many chunks", static_cast<std::int64_t>(i * 1013));
  }
  buffer.checkGuard("many chunks");
}

void reduceScatterOnce(Communicator& all, DType dtype, ReduceOp op, std::int64_t base) {
  const std::string what = label("reducescatter", dtype, op, base);
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  std::int64_t before = 0;
  for (int i = 0; i < all.size(); ++i) {
    counts.push_back(i == 1 ? 0 : base + i);
    if (i < all.member()) before += counts.back();
    total += counts.back();
  }
  const std::int64_t mine = counts[static_cast<std::size_t>(all.member())];
  Buffer in(static_cast<std::size_t>(total) * sizeOf(dtype));
  Buffer out(static_cast<std::size_t>(mine) * sizeOf(dtype));
  fill(in.at(0), total, dtype, op, all.member());
  run(all.reducescatter(in.data(), out.data(), counts, dtype, op, {}), what);
  expectReduced(out.at(0), mine, dtype, op, firstRanks(all.size()), what, before);
  out.checkGuard(what);
  // The result at the beginning of the input, where others' parts still are to be sent.
  run(all.reducescatter(in.data(), in.data(), counts, dtype, op, {}), what);
  expectReduced(in.at(0), mine, dtype, op, firstRanks(all.size()), what + " in place", before);
}

void reduceOnce(Communicator& all, DType dtype, ReduceOp op, std::int64_t count, int root) {
  const std::string what = label("reduce", dtype, op, count);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeOf(dtype);
  Buffer in(bytes);
  Buffer out(bytes);
  fill(in.at(0), count, dtype, op, all.member());
  void* const to = all.member() == root ? out.data() : nullptr;
  run(all.reduce(in.data(), to, count, dtype, op, {}, root), what);
  if (all.member() != root) return;
  expectReduced(out.at(0), count, dtype, op, firstRanks(all.size()), what);
  out.checkGuard(what);
}

template <typename T>
std::vector<T> allreduced(Communicator& all, std::vector<T> values, DType dtype, ReduceOp op,
                          Scale scale) {
  const Piece piece{values.data(), values.data(), static_cast<std::int64_t>(values.size())};
  run(all.allreduce(std::span(&piece, 1), dtype, op, scale), "numbers");
  expectSame(all, reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T),
             "numbers");
  return values;
}

template <typename T>
void expect(T got, T want, const char* what) {
  if (got != want) {
    fail(std::string(what) + ": " + std::to_string(got) + " instead of " + std::to_string(want));
  }
}

void specialValues(Communicator& all, std::size_t count) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto mine = static_cast<float>(all.member());
  std::vector<float> values(count, mine);
  values[0] = all.member() == all.size() - 1 ? nan : mine;
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum}) {
    const auto got = allreduced(all, values, DType::kFloat32, op, {});
    if (!std::isnan(got[0])) fail("a NaN was lost");
    if (std::isnan(got[1])) fail("a NaN was invented");
  }
  // 1 + 2^-11 + …: lost if the sum were rounded to float16 after each step.
  std::vector<std::uint16_t> halves(count, floatToHalf(all.member() == 0 ? 1.0f : 0x1p-11f));
  const auto sum = allreduced(all, halves, DType::kFloat16, ReduceOp::kSum, {});
  const float exact = 1.0f + static_cast<float>(all.size() - 1) * 0x1p-11f;
  expect<int>(sum[0], floatToHalf(exact), "float16 sum");
  expect<int>(sum[count - 1], floatToHalf(exact), "float16 sum");
}

void scales(Communicator& all, std::size_t count) {
  const int n = all.size();
  std::vector<float> floats(count, static_cast<float>(all.member() + 1));
  const auto total = static_cast<float>(n * (n + 1) / 2);
  expect(allreduced(all, floats, DType::kFloat32, ReduceOp::kSum, {2.0, 0.25, 1})[0],
         total * 2.0f * 0.25f, "scaled float");
  expect(allreduced(all, floats, DType::kFloat32, ReduceOp::kAverage, {})[count - 1],
         total / static_cast<float>(n), "average of floats");
  // Would wrap in 8 bits.
  std::vector<std::uint8_t> bytes(count, 200);
  expect<int>(allreduced(all, bytes, DType::kUint8, ReduceOp::kAverage, {})[0], 200,
              "average of bytes");
  std::vector<std::int32_t> ints(count, -7);
  expect(allreduced(all, ints, DType::kInt32, ReduceOp::kAverage, {})[count - 1], -7,
         "average of integers");
  std::vector<std::uint8_t> truths(count, all.member() == 0 ? 7 : 0);
  expect<int>(allreduced(all, truths, DType::kBool, ReduceOp::kSum, {})[0], 1, "sum of truths");
  expect<int>(allreduced(all, truths, DType::kBool, ReduceOp::kMin, {})[0], n == 1 ? 1 : 0,
              "minimum of truths");
}

void adasum(Communicator& all, std::int64_t count) {
  // Equal vectors: their Adasum is the vector itself. Orthogonal ones: their sum.
  std::vector<float> equal(static_cast<std::size_t>(count), 0.5f);
  std::vector<float> own(static_cast<std::size_t>(count), 0.0f);
  own[static_cast<std::size_t>(all.member())] = static_cast<float>(all.member() + 1);
  const Piece pieces[] = {{equal.data(), equal.data(), count}, {own.data(), own.data(), count}};
  run(all.allreduce(pieces, DType::kFloat32, ReduceOp::kAdasum, {}), "adasum");
  for (std::size_t i = 0; i < equal.size(); ++i) {
    if (std::abs(equal[i] - 0.5f) > 1e-5f) fail("adasum of equal vectors is wrong");
    const float want = i < static_cast<std::size_t>(all.size()) ? static_cast<float>(i + 1) : 0.0f;
    expect(own[i], want, "adasum of orthogonal vectors");
  }
  expectSame(all, reinterpret_cast<const std::byte*>(equal.data()), equal.size() * sizeof(float),
             "adasum");
}

}  // namespace

void reductions(bool native) {
  const auto engine = startEngine(native);
  const auto all = everybody(*engine);
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    for (const ReduceOp op : kOps) {
      if (!supports(op, dtype)) continue;
      for (const std::int64_t count : {0, 1, 17, 4099}) {
        allreduceOnce(*all, dtype, op, count, count % 2 == 0);
      }
      allreduceOnce(*all, dtype, op, 40'001, true);
      reduceScatterOnce(*all, dtype, op, 3);
      reduceOnce(*all, dtype, op, 4099, all->size() - 1);
      if (op == ReduceOp::kSum || op == ReduceOp::kMax) fused(*all, dtype, op);
    }
  }
  // Several chunks and windows.
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    allreduceOnce(*all, dtype, ReduceOp::kSum, 4'500'001, false);
    reduceScatterOnce(*all, dtype, ReduceOp::kSum, 1'600'001);
    reduceOnce(*all, dtype, ReduceOp::kSum, 4'500'001, 0);
    for (int round = 0; round < 3; ++round) manyChunks(*all, dtype, round);
  }
}

void numbers() {
  for (const bool native : {false, true}) {
    const auto engine = startEngine(native);
    const auto all = everybody(*engine);
    for (const std::size_t count : {4, 50'000}) {
      specialValues(*all, count);
      scales(*all, count);
    }
    adasum(*all, 100);
    adasum(*all, 1'500'000);
    // Sums that are rounded: all members must round alike.
    std::vector<float> values(100'003);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(all->member()));
    }
    allreduced(*all, values, DType::kFloat32, ReduceOp::kSum, {});
    allreduced(*all, values, DType::kFloat32, ReduceOp::kAverage, {0.1, 0.3, 1});
  }
}

}  // namespace farandole::test
