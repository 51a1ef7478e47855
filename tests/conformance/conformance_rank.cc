// The conformance suite: one rank of it. Every operation × dtype × reduction × size, through the C
// ABI, against a plain sequential reference. Started as `farandole run -np N conformance_rank CASE
// [ordered]`; exits 0 or says what was wrong. ordered: every operation with the promise of its
// order. `order 2+2`: float sums have the bits of the order that a hierarchy of such machines
// promises; without a layout, of all ranks in their order.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "conformance/elements.h"
#include "conformance/rank.h"
#include "farandole.h"

namespace conformance {
namespace {

long checks = 0;
std::uint32_t flags = FARANDOLE_FLAG_WILL_WAIT;

// A buffer in ordinary or shared memory with guard bytes behind it.
class Buffer {
 public:
  static constexpr std::size_t kGuard = 64;

  Buffer(std::size_t bytes, bool shared) : bytes_(bytes), shared_(shared) {
    if (shared) {
      void* memory = nullptr;
      must(farandole_allocate(bytes + kGuard, &memory), "allocate");
      data_ = static_cast<unsigned char*>(memory);
    } else {
      data_ = static_cast<unsigned char*>(std::malloc(bytes + kGuard));
    }
    std::memset(data_, 0xa5, bytes + kGuard);
  }
  ~Buffer() {
    if (shared_) {
      farandole_free(data_);
    } else {
      std::free(data_);
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  unsigned char* data() const { return data_; }
  void checkGuard(const std::string& what) const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (data_[bytes_ + i] != 0xa5) fail(what + ": wrote past its end");
    }
  }

 private:
  std::size_t bytes_;
  bool shared_;
  unsigned char* data_ = nullptr;
};

void run(farandole_request& request, const std::string& what, farandole_handle* keep = nullptr) {
  farandole_handle handle = 0;
  must(farandole_submit(&request, 1, &handle), what);
  must(farandole_wait(handle, 120'000), what);
  if (keep != nullptr) {
    *keep = handle;
  } else {
    must(farandole_release(handle), what);
  }
}

farandole_request requestOf(int operation, int dtype, const std::vector<std::int64_t>& shape) {
  farandole_request request = FARANDOLE_REQUEST_INIT;
  request.operation = operation;
  request.dtype = dtype;
  request.shape = shape.data();
  request.ndim = static_cast<std::int32_t>(shape.size());
  request.flags = flags;
  return request;
}

void expectElement(const void* got, int dtype, std::int64_t want, const std::string& what,
                   std::int64_t i) {
  unsigned char expected[16];
  store(expected, dtype, want);
  if (std::memcmp(got, expected, sizeOf(dtype)) != 0) {
    fail(what + ": element " + std::to_string(i) + " is wrong (expected " + std::to_string(want) +
         ")");
  }
  ++checks;
}

std::int64_t reduced(std::int64_t i, int op, int dtype) {
  std::int64_t value = valueOf(0, i, op, dtype);
  for (int r = 1; r < size; ++r) value = reduceTwo(value, valueOf(r, i, op, dtype), op, dtype);
  return value;
}

void fill(unsigned char* at, std::int64_t count, int op, int dtype, std::int64_t offset = 0) {
  for (std::int64_t i = 0; i < count; ++i) {
    store(at + static_cast<std::size_t>(i) * sizeOf(dtype), dtype,
          valueOf(rank, i + offset, op, dtype));
  }
}

const std::int64_t kCounts[] = {0, 1, 3, 15, 16, 17, 255, 1000, 4099, 70'001};

template <typename Body>
void forEachReduction(Body&& body) {
  for (int dtype = FARANDOLE_UINT8; dtype <= FARANDOLE_COMPLEX128; ++dtype) {
    for (int op = FARANDOLE_SUM; op <= FARANDOLE_BXOR; ++op) {
      if (supported(op, dtype)) body(dtype, op);
    }
  }
}

std::string label(const char* what, int dtype, int op, std::int64_t count) {
  return std::string(what) + " dtype " + std::to_string(dtype) + " op " + std::to_string(op) +
         " count " + std::to_string(count);
}

// Elements as they must be, compared with many results at once.
using Elements = std::vector<unsigned char>;

void expectElements(const void* got, const Elements& expected, int dtype, const std::string& what) {
  ++checks;
  if (expected.empty() || std::memcmp(got, expected.data(), expected.size()) == 0) return;
  for (std::size_t at = 0; at < expected.size(); at += sizeOf(dtype)) {
    if (std::memcmp(static_cast<const unsigned char*>(got) + at, expected.data() + at,
                    sizeOf(dtype)) != 0) {
      fail(what + ": element " + std::to_string(at / sizeOf(dtype)) + " is wrong");
    }
  }
}

void testAllreduceOf(int dtype, int op, std::int64_t count) {
  const std::string what = label("allreduce", dtype, op, count);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeOf(dtype);
  Elements input(bytes);
  fill(input.data(), count, op, dtype);
  Elements sum(bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    store(sum.data() + static_cast<std::size_t>(i) * sizeOf(dtype), dtype, reduced(i, op, dtype));
  }
  for (int variant = 0; variant < 4; ++variant) {
    const bool shared = (variant & 1) != 0;
    const bool inPlace = (variant & 2) != 0;
    Buffer in(bytes, shared);
    Buffer out(bytes, shared);
    std::copy(input.begin(), input.end(), in.data());
    const std::vector<std::int64_t> shape = {count};
    auto request = requestOf(FARANDOLE_ALLREDUCE, dtype, shape);
    request.op = op;
    request.input = in.data();
    request.output = inPlace ? in.data() : out.data();
    run(request, what);
    expectElements(request.output, sum, dtype, what);
    if (!inPlace) expectElements(in.data(), input, dtype, what + " input");
    in.checkGuard(what);
    out.checkGuard(what);
  }
}

void testAllreduce() {
  forEachReduction([](int dtype, int op) {
    for (const auto count : kCounts) {
      // Too large for its order to matter.
      if ((flags & FARANDOLE_FLAG_ORDERED) != 0 && count > 64 << 10) continue;
      testAllreduceOf(dtype, op, count);
    }
  });
}

void testScales() {
  // Averages and scales: integers in float64, truncated towards zero; float16 and bfloat16 in
  // float32.
  for (const int dtype : {FARANDOLE_INT32, FARANDOLE_INT8, FARANDOLE_INT64}) {
    const std::vector<std::int64_t> shape = {101};
    Buffer data(101 * sizeOf(dtype), false);
    for (int i = 0; i < 101; ++i) store(data.data() + i * sizeOf(dtype), dtype, i - 50 + rank);
    auto request = requestOf(FARANDOLE_ALLREDUCE, dtype, shape);
    request.op = FARANDOLE_AVERAGE;
    request.input = request.output = data.data();
    run(request, "integer average");
    for (int i = 0; i < 101; ++i) {
      std::int64_t sum = 0;
      for (int r = 0; r < size; ++r) sum += i - 50 + r;
      const auto mean = static_cast<std::int64_t>(static_cast<double>(sum) / size);
      expectElement(data.data() + i * sizeOf(dtype), dtype, mean, "integer average", i);
    }
  }
  std::vector<float> x(1000);
  for (int i = 0; i < 1000; ++i) x[i] = static_cast<float>(i);
  const std::vector<std::int64_t> shape = {1000};
  auto request = requestOf(FARANDOLE_ALLREDUCE, FARANDOLE_FLOAT32, shape);
  request.prescale = 0.5;
  request.postscale = 4.0;
  request.input = request.output = x.data();
  run(request, "scaled sum");
  for (int i = 0; i < 1000; ++i) {
    if (x[i] != 2.0f * static_cast<float>(i) * static_cast<float>(size)) fail("scaled sum: wrong");
    ++checks;
  }
}

// Floats whose sum depends on the order of adding.
template <typename T>
std::vector<T> randomFloats(int ofRank, std::int64_t count) {
  std::vector<T> x(static_cast<std::size_t>(count));
  std::uint32_t state = 12345u + static_cast<std::uint32_t>(ofRank);
  for (auto& each : x) {
    state = state * 1664525u + 1013904223u;
    each = std::ldexp(static_cast<T>(state >> 8), static_cast<int>(state % 40) - 44);
  }
  return x;
}

// FNV-1a over everything that is added.
std::uint64_t digest = 0xcbf29ce484222325u;
void addToDigest(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) digest = (digest ^ at[i]) * 0x100000001b3u;
}

void expectSameOnAll(const std::vector<float>& x) {
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(x.size())};
  auto gather = requestOf(FARANDOLE_ALLGATHER, FARANDOLE_FLOAT32, shape);
  gather.input = const_cast<float*>(x.data());
  farandole_handle handle = 0;
  run(gather, "allgather of results", &handle);
  farandole_result result = {};
  result.struct_size = sizeof result;
  must(farandole_get_result(handle, &result), "result");
  for (int r = 0; r < size; ++r) {
    const auto* theirs = static_cast<const float*>(result.data) + r * shape[0];
    if (std::memcmp(theirs, x.data(), x.size() * sizeof(float)) != 0) {
      fail("rank " + std::to_string(r) + " has other bits");
    }
    ++checks;
  }
  must(farandole_release(handle), "release");
}

// Random floats: all ranks have the same bits, whatever path the size takes, and so has the same
// operation when it is repeated. twice.sh compares the digests of two jobs.
void testBits() {
  for (const std::int64_t count : {7, 1000, 5000, 300'001}) {
    for (const int op : {FARANDOLE_SUM, FARANDOLE_ADASUM}) {
      std::vector<float> first;
      for (int repeat = 0; repeat < 2; ++repeat) {
        std::vector<float> x = randomFloats<float>(rank, count);
        if (op == FARANDOLE_SUM) {
          x[0] = rank == 0 ? INFINITY : 1.0f;
          x[1] = rank == size - 1 ? NAN : 1.0f;
        }
        const std::vector<std::int64_t> shape = {count};
        auto request = requestOf(FARANDOLE_ALLREDUCE, FARANDOLE_FLOAT32, shape);
        request.op = op;
        request.input = request.output = x.data();
        run(request, "random floats");
        if (op == FARANDOLE_SUM && (!std::isinf(x[0]) || !std::isnan(x[1]))) {
          fail("Inf or NaN did not pass through");
        }
        expectSameOnAll(x);
        if (repeat == 1 && std::memcmp(first.data(), x.data(), x.size() * sizeof(float)) != 0) {
          fail("two runs disagree");
        }
        first = x;
      }
      addToDigest(first.data(), first.size() * sizeof(float));
    }
  }
}

// How many ranks each machine has, as the command line tells; one machine has all if it does not.
std::vector<int> machines;

// The sum in the order that engines promise: ranks of a machine in their order, then the machines
// in theirs.
template <typename T>
std::vector<T> orderedSum(std::int64_t count) {
  std::vector<T> sum;
  int next = 0;
  for (const int members : machines) {
    std::vector<T> part = randomFloats<T>(next, count);
    for (int r = next + 1; r < next + members; ++r) {
      const std::vector<T> x = randomFloats<T>(r, count);
      for (std::size_t i = 0; i < part.size(); ++i) part[i] += x[i];
    }
    next += members;
    if (sum.empty()) {
      sum = std::move(part);
    } else {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
  }
  return sum;
}

template <typename T>
void testOrderOf(int dtype, std::int64_t count) {
  const std::vector<std::int64_t> shape = {count};
  const std::vector<T> want = orderedSum<T>(count);
  const auto expect = [&](const T* got, std::int64_t from, std::int64_t length, const char* what) {
    for (std::int64_t i = 0; i < length; ++i, ++checks) {
      if (std::memcmp(got + i, &want[static_cast<std::size_t>(from + i)], sizeof(T)) == 0) continue;
      fail(label(what, dtype, FARANDOLE_SUM, count) + ": element " + std::to_string(from + i) +
           " is not the sum in the promised order");
    }
  };
  std::vector<T> x = randomFloats<T>(rank, count);
  auto request = requestOf(FARANDOLE_ALLREDUCE, dtype, shape);
  request.input = request.output = x.data();
  run(request, "ordered allreduce");
  expect(x.data(), 0, count, "allreduce");

  x = randomFloats<T>(rank, count);
  std::vector<T> out(x.size());
  auto rooted = requestOf(FARANDOLE_REDUCE, dtype, shape);
  rooted.root = size - 1;
  rooted.input = x.data();
  rooted.output = out.data();
  run(rooted, "ordered reduce");
  if (rank == rooted.root) expect(out.data(), 0, count, "reduce");

  auto scatter = requestOf(FARANDOLE_REDUCESCATTER, dtype, shape);
  scatter.input = x.data();
  farandole_handle handle = 0;
  run(scatter, "ordered reducescatter", &handle);
  farandole_result result = {};
  result.struct_size = sizeof result;
  must(farandole_get_result(handle, &result), "ordered reducescatter");
  std::int64_t first = 0;
  for (int r = 0; r < rank; ++r) first += count / size + (r < count % size ? 1 : 0);
  expect(static_cast<const T*>(result.data), first, result.shape[0], "reducescatter");
  must(farandole_release(handle), "ordered reducescatter");
}

void testOrder() {
  if (machines.empty()) machines = {size};
  int ranks = 0;
  for (const int members : machines) ranks += members;
  if (ranks != size) fail("the layout has " + std::to_string(ranks) + " ranks");
  for (const std::int64_t count : {1, 7, 1000, 5000, 300'001, 2'000'003}) {
    testOrderOf<float>(FARANDOLE_FLOAT32, count);
    testOrderOf<double>(FARANDOLE_FLOAT64, count);
  }
}

// Sets that overlap: the world, the same ranks again, all but the last, all but the first.
// Operations of all of them are in flight at once, submitted in another order on each rank.
void testSets() {
  std::vector<std::vector<int>> members(4);
  for (int r = 0; r < size; ++r) {
    members[0].push_back(r);
    members[1].push_back(r);
    if (r + 1 < size || size == 1) members[2].push_back(r);
    if (r > 0 || size == 1) members[3].push_back(r);
  }
  std::vector<farandole_set> sets = {0};
  for (std::size_t i = 1; i < members.size(); ++i) {
    const std::vector<std::int32_t> ranks(members[i].begin(), members[i].end());
    farandole_set set = 0;
    must(farandole_add_set(ranks.data(), static_cast<std::int32_t>(ranks.size()), &set), "a set");
    sets.push_back(set);
  }
  for (const std::int64_t count : kCounts) {
    const std::vector<std::int64_t> shape = {count};
    struct Flight {
      std::size_t set;
      std::vector<std::int64_t> data;
      farandole_handle handle;
    };
    std::vector<Flight> flights;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(rank)) % sets.size();
      bool member = false;
      for (const int r : members[which]) member = member || r == rank;
      if (!member) continue;
      Flight& flight = flights.emplace_back(Flight{which, {}, 0});
      const auto factor = static_cast<std::int64_t>(which) * 1000 + 1;
      flight.data.reserve(static_cast<std::size_t>(count) + 1);  // memory, if only of nothing
      for (std::int64_t k = 0; k < count; ++k) flight.data.push_back(factor * (k + rank));
      const std::string name = "sets." + std::to_string(which);
      auto request = requestOf(FARANDOLE_ALLREDUCE, FARANDOLE_INT64, shape);
      request.name = name.c_str();
      request.set = sets[which];
      request.input = request.output = flight.data.data();
      must(farandole_submit(&request, 1, &flight.handle), name);
    }
    for (Flight& flight : flights) {
      const std::string what = "set " + std::to_string(flight.set);
      must(farandole_wait(flight.handle, 120'000), what);
      must(farandole_release(flight.handle), what);
      const auto factor = static_cast<std::int64_t>(flight.set) * 1000 + 1;
      for (std::int64_t k = 0; k < count; ++k) {
        std::int64_t want = 0;
        for (const int r : members[flight.set]) want += factor * (k + r);
        expectElement(&flight.data[static_cast<std::size_t>(k)], FARANDOLE_INT64, want, what, k);
      }
    }
  }
  for (std::size_t i = 1; i < sets.size(); ++i) must(farandole_remove_set(sets[i]), "remove");
}

void testAllgather() {
  for (int dtype = FARANDOLE_UINT8; dtype <= FARANDOLE_COMPLEX128; ++dtype) {
    for (const std::int64_t width : {1, 7, 1000}) {
      // Rank r brings r rows (rank 0 none), then an even number each.
      for (const bool uneven : {true, false}) {
        const auto rowsOf = [&](int r) { return std::int64_t{uneven ? r * 3 : 4}; };
        const std::vector<std::int64_t> shape = {rowsOf(rank), width};
        const std::string what = label("allgather", dtype, uneven, width);
        Buffer in(static_cast<std::size_t>(rowsOf(rank) * width) * sizeOf(dtype), false);
        fill(in.data(), rowsOf(rank) * width, FARANDOLE_SUM, dtype);
        auto request = requestOf(FARANDOLE_ALLGATHER, dtype, shape);
        request.input = in.data();
        farandole_handle handle = 0;
        run(request, what, &handle);
        farandole_result result = {};
        result.struct_size = sizeof result;
        must(farandole_get_result(handle, &result), what);
        const auto* at = static_cast<const unsigned char*>(result.data);
        std::int64_t rows = 0;
        for (int r = 0; r < size; ++r) {
          if (result.splits[r] != rowsOf(r)) fail(what + ": splits");
          rows += rowsOf(r);
          for (std::int64_t i = 0; i < rowsOf(r) * width; ++i, at += sizeOf(dtype)) {
            expectElement(at, dtype, valueOf(r, i, FARANDOLE_SUM, dtype), what, i);
          }
        }
        if (result.ndim != 2 || result.shape[0] != rows || result.shape[1] != width)
          fail(what + ": shape");
        must(farandole_release(handle), what);
      }
    }
  }
}

void testBroadcast() {
  for (int dtype = FARANDOLE_UINT8; dtype <= FARANDOLE_COMPLEX128; ++dtype) {
    for (const auto count : kCounts) {
      for (int root = 0; root<size; root += size> 3 ? 3 : 1) {
        const std::string what = label("broadcast", dtype, root, count);
        const std::vector<std::int64_t> shape = {count};
        Buffer data(static_cast<std::size_t>(count) * sizeOf(dtype), count % 2 == 0);
        fill(data.data(), count, FARANDOLE_SUM, dtype);
        auto request = requestOf(FARANDOLE_BROADCAST, dtype, shape);
        request.root = root;
        request.input = request.output = data.data();
        run(request, what);
        for (std::int64_t i = 0; i < count; ++i) {
          expectElement(data.data() + static_cast<std::size_t>(i) * sizeOf(dtype), dtype,
                        valueOf(root, i, FARANDOLE_SUM, dtype), what, i);
        }
        data.checkGuard(what);
      }
    }
  }
}

void testAlltoall() {
  for (int dtype = FARANDOLE_UINT8; dtype <= FARANDOLE_COMPLEX128; ++dtype) {
    for (const std::int64_t width : {1, 33, 2000}) {
      // Rank r sends (r + d + 1) % 3 rows to rank d; every element is valueOf(r, 1000 * d + index).
      const auto rowsTo = [](int from, int to) { return std::int64_t{(from + to + 1) % 3}; };
      std::vector<std::int64_t> splits;
      std::int64_t rows = 0;
      for (int d = 0; d < size; ++d) splits.push_back(rowsTo(rank, d)), rows += splits.back();
      const std::vector<std::int64_t> shape = {rows, width};
      const std::string what = label("alltoall", dtype, 0, width);
      Buffer in(static_cast<std::size_t>(rows * width) * sizeOf(dtype), false);
      std::int64_t done = 0;
      for (int d = 0; d < size; ++d) {
        fill(in.data() + static_cast<std::size_t>(done) * sizeOf(dtype), splits[d] * width,
             FARANDOLE_SUM, dtype, 1000 * d);
        done += splits[d] * width;
      }
      auto request = requestOf(FARANDOLE_ALLTOALL, dtype, shape);
      request.input = in.data();
      request.splits = splits.data();
      request.nsplits = size;
      farandole_handle handle = 0;
      run(request, what, &handle);
      farandole_result result = {};
      result.struct_size = sizeof result;
      must(farandole_get_result(handle, &result), what);
      const auto* at = static_cast<const unsigned char*>(result.data);
      for (int r = 0; r < size; ++r) {
        if (result.splits[r] != rowsTo(r, rank)) fail(what + ": received splits");
        for (std::int64_t i = 0; i < rowsTo(r, rank) * width; ++i, at += sizeOf(dtype)) {
          expectElement(at, dtype, valueOf(r, i + 1000 * rank, FARANDOLE_SUM, dtype), what, i);
        }
      }
      must(farandole_release(handle), what);
    }
  }
}

void testReducescatter() {
  forEachReduction([](int dtype, int op) {
    for (const std::int64_t rows :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{size}, std::int64_t{7 * size + 1}}) {
      for (const std::int64_t width : {1, 300}) {
        const std::string what = label("reducescatter", dtype, op, rows * width);
        const std::vector<std::int64_t> shape = {rows, width};
        Buffer in(static_cast<std::size_t>(rows * width) * sizeOf(dtype), false);
        fill(in.data(), rows * width, op, dtype);
        auto request = requestOf(FARANDOLE_REDUCESCATTER, dtype, shape);
        request.op = op;
        request.input = in.data();
        farandole_handle handle = 0;
        run(request, what, &handle);
        farandole_result result = {};
        result.struct_size = sizeof result;
        must(farandole_get_result(handle, &result), what);
        // As evenly as possible, the first ranks larger.
        std::int64_t first = 0;
        for (int r = 0; r < rank; ++r) first += rows / size + (r < rows % size ? 1 : 0);
        const std::int64_t mine = rows / size + (rank < rows % size ? 1 : 0);
        if (result.shape[0] != mine) fail(what + ": shape");
        for (std::int64_t i = 0; i < mine * width; ++i) {
          expectElement(static_cast<unsigned char*>(result.data) +
                            static_cast<std::size_t>(i) * sizeOf(dtype),
                        dtype, reduced(first * width + i, op, dtype), what, i);
        }
        must(farandole_release(handle), what);
      }
    }
  });
}

void testRooted() {
  for (const int root : {0, size - 1}) {
    forEachReduction([&](int dtype, int op) {
      const std::int64_t count = 1234;
      const std::string what = label("reduce", dtype, op, count);
      const std::vector<std::int64_t> shape = {count};
      Buffer in(count * sizeOf(dtype), false);
      Buffer out(count * sizeOf(dtype), false);
      fill(in.data(), count, op, dtype);
      auto request = requestOf(FARANDOLE_REDUCE, dtype, shape);
      request.op = op;
      request.root = root;
      request.input = in.data();
      request.output = out.data();
      run(request, what);
      for (std::int64_t i = 0; rank == root && i < count; ++i) {
        expectElement(out.data() + static_cast<std::size_t>(i) * sizeOf(dtype), dtype,
                      reduced(i, op, dtype), what, i);
      }
    });
    for (const std::int64_t width : {1, 5000}) {
      std::vector<std::int64_t> shape = {rank + 1, width};
      std::vector<std::int32_t> mine(static_cast<std::size_t>((rank + 1) * width), rank);
      auto gather = requestOf(FARANDOLE_GATHER, FARANDOLE_INT32, shape);
      gather.root = root;
      gather.input = mine.data();
      farandole_handle handle = 0;
      run(gather, "gather", &handle);
      farandole_result result = {};
      result.struct_size = sizeof result;
      must(farandole_get_result(handle, &result), "gather");
      const auto* at = static_cast<const std::int32_t*>(result.data);
      for (int r = 0; rank == root && r < size; ++r) {
        for (std::int64_t i = 0; i < (r + 1) * width; ++i)
          expectElement(at++, FARANDOLE_INT32, r, "gather", i);
      }
      must(farandole_release(handle), "gather");

      std::vector<std::int64_t> splits;
      std::vector<std::int32_t> parts;
      for (int r = 0; r < size; ++r) {
        splits.push_back(r % 2 + 1);
        parts.insert(parts.end(), static_cast<std::size_t>(splits.back() * width), 100 + r);
      }
      shape = {static_cast<std::int64_t>(parts.size()) / width, width};
      auto scatter = requestOf(FARANDOLE_SCATTER, FARANDOLE_INT32, shape);
      scatter.root = root;
      scatter.input = rank == root ? parts.data() : nullptr;
      scatter.splits = splits.data();
      scatter.nsplits = size;
      run(scatter, "scatter", &handle);
      result = {};
      result.struct_size = sizeof result;
      must(farandole_get_result(handle, &result), "scatter");
      if (result.shape[0] != splits[rank]) fail("scatter: shape");
      for (std::int64_t i = 0; i < splits[rank] * width; ++i) {
        expectElement(static_cast<const std::int32_t*>(result.data) + i, FARANDOLE_INT32,
                      100 + rank, "scatter", i);
      }
      must(farandole_release(handle), "scatter");
    }
  }
  const std::vector<std::int64_t> none;
  for (int i = 0; i < 100; ++i) {
    auto barrier = requestOf(FARANDOLE_BARRIER, 0, none);
    run(barrier, "barrier");
    ++checks;
  }
}

void testAdasum() {
  // Equal vectors: Adasum gives the vector itself. Orthogonal ones: their sum.
  for (const int count : {1, 100, 100'003}) {
    const std::vector<std::int64_t> shape = {count};
    std::vector<float> x(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 17 + 1);
    auto request = requestOf(FARANDOLE_ALLREDUCE, FARANDOLE_FLOAT32, shape);
    request.op = FARANDOLE_ADASUM;
    request.input = request.output = x.data();
    run(request, "adasum of equals");
    for (int i = 0; i < count; ++i) {
      if (std::fabs(x[static_cast<std::size_t>(i)] - static_cast<float>(i % 17 + 1)) > 1e-4f)
        fail("adasum of equals");
      ++checks;
    }
    for (int i = 0; i < count; ++i) x[static_cast<std::size_t>(i)] = i % size == rank ? 3.0f : 0.0f;
    run(request, "adasum of orthogonals");
    for (int i = 0; i < count; ++i) {
      if (x[static_cast<std::size_t>(i)] != 3.0f) fail("adasum of orthogonals");
      ++checks;
    }
  }
}

void testLarge() {
  // More than 2^31 elements: every count on the way is 64 bits wide.
  const std::int64_t count = (std::int64_t{1} << 31) + 12'345;
  const std::vector<std::int64_t> shape = {count};
  std::vector<std::uint8_t> x(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; i += 4093)
    x[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(rank + i);
  auto request = requestOf(FARANDOLE_ALLREDUCE, FARANDOLE_UINT8, shape);
  request.input = request.output = x.data();
  run(request, "large allreduce");
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint8_t want = 0;
    for (int r = 0; i % 4093 == 0 && r < size; ++r) want = static_cast<std::uint8_t>(want + r + i);
    if (x[static_cast<std::size_t>(i)] != want)
      fail("large allreduce: element " + std::to_string(i));
  }
  checks += count;
}

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  using namespace conformance;
  const std::map<std::string, void (*)()> cases = {{"allreduce", testAllreduce},
                                                   {"scales", testScales},
                                                   {"bits", testBits},
                                                   {"order", testOrder},
                                                   {"allgather", testAllgather},
                                                   {"broadcast", testBroadcast},
                                                   {"alltoall", testAlltoall},
                                                   {"rooted", testRooted},
                                                   {"reducescatter", testReducescatter},
                                                   {"adasum", testAdasum},
                                                   {"sets", testSets},
                                                   {"large", testLarge}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  const std::string more = argc == 3 ? argv[2] : "";
  const bool ordered = more == "ordered";
  const bool layout = found != cases.end() && found->first == "order" && !ordered;
  if (found == cases.end() || argc > 3 || (argc == 3 && !ordered && !layout)) {
    std::fprintf(stderr,
                 "usage: conformance_rank CASE [ordered]\n"
                 "       conformance_rank order [RANKS+RANKS…]\n");
    return 2;
  }
  if (ordered) flags |= FARANDOLE_FLAG_ORDERED;
  for (std::size_t at = 0; layout && at < more.size(); at = more.find('+', at)) {
    if (at > 0) ++at;
    machines.push_back(std::atoi(more.c_str() + at));
  }
  must(farandole_init(nullptr), "init");
  rank = farandole_rank();
  size = farandole_size();
  found->second();
  must(farandole_shutdown(), "shutdown");
  if (checks == 0) fail("nothing was checked");
  std::printf("%s: rank %d of %d: %ld checks, digest %016llx\n", argv[1], rank, size, checks,
              static_cast<unsigned long long>(digest));
  return 0;
}
