// reduce() against a plain scalar reference: every type, operator, number of sources, length around
// the vector widths, alignment, scaling, kind of store, with every set of kernels, in place or not.
#include "base/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/base/kernels_fixture.h"
#include "unit/base/reduce_reference.h"

namespace farandole {
namespace {

using reference::Bytes;

constexpr std::byte kGuard{0xa5};
constexpr std::size_t kGuardBytes = 64;

// An array somewhere inside a larger one whose other bytes must not change.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t misalignment)
      : bytes_(bytes), storage_(bytes + 4 * kGuardBytes, kGuard) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuardBytes;
    begin_ = kGuardBytes + (kGuardBytes - address % kGuardBytes) % kGuardBytes + misalignment;
  }
  std::byte* data() { return storage_.data() + begin_; }
  bool intact() const {
    const auto guard = [](std::byte b) { return b == kGuard; };
    const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(storage_.begin(), begin, guard) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), storage_.end(), guard);
  }

 private:
  std::size_t bytes_;
  Bytes storage_;
  std::size_t begin_ = 0;
};

struct Layout {
  std::size_t destinations;
  bool inPlace;  // destination i is source i, as far as there are sources
  std::size_t sourceMisalignment;
  std::size_t destinationMisalignment;  // of the first; the others are shifted by `spread` more
  std::size_t spread;
};

struct Case {
  DType dtype;
  ReduceOp op;
  std::size_t count;
  Scale scale;
};

// Runs reduce() on copies of the sources and compares what it leaves with `expected`.
void check(const Case& c, const std::vector<Bytes>& sources, const Bytes& expected,
           const Layout& layout, Store store) {
  const std::size_t bytes = c.count * sizeOf(c.dtype);
  std::vector<Guarded> inputs;
  std::vector<const void*> from;
  inputs.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    inputs.emplace_back(bytes, (layout.sourceMisalignment * (i + 1)) % kGuardBytes);
    std::copy(sources[i].begin(), sources[i].end(), inputs[i].data());
    from.push_back(inputs[i].data());
  }
  std::vector<Guarded> outputs;
  std::vector<void*> to;
  outputs.reserve(layout.destinations);
  for (std::size_t d = 0; d < layout.destinations; ++d) {
    if (layout.inPlace && d < inputs.size()) {
      to.push_back(inputs[d].data());
    } else {
      outputs.emplace_back(bytes, (layout.destinationMisalignment + d * layout.spread) % 64);
      to.push_back(outputs.back().data());
    }
  }

  reduce(to, from, static_cast<std::int64_t>(c.count), c.dtype, c.op, c.scale, store);

  for (std::size_t d = 0; d < to.size(); ++d) {
    const auto* result = static_cast<const std::byte*>(to[d]);
    const std::size_t bad = reference::firstDifference(result, expected.data(), c.count, c.dtype);
    ASSERT_EQ(bad, c.count) << "destination " << d << " differs at element " << bad << " of "
                            << c.count << ": " << name(c.dtype) << " " << name(c.op) << ", "
                            << sources.size() << " sources, pre " << c.scale.pre << ", post "
                            << c.scale.post << ", divisor " << c.scale.divisor << ", kernels "
                            << kernels() << (store == Store::kStreaming ? ", streaming" : "")
                            << (layout.inPlace ? ", in place" : "");
  }
  for (const Guarded& g : outputs) ASSERT_TRUE(g.intact());
  for (const Guarded& g : inputs) ASSERT_TRUE(g.intact());
  for (std::size_t i = layout.inPlace ? layout.destinations : 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(std::equal(sources[i].begin(), sources[i].end(), inputs[i].data()));
  }
}

std::vector<Scale> scalesOf(DType dtype) {
  std::vector<Scale> scales = {Scale{},           Scale{1, 1, 2},      Scale{1, 1, 3},
                               Scale{0.5, 1, 1},  Scale{1, 0.25, 1},   Scale{3, 2, 49},
                               Scale{-1.7, 1, 4}, Scale{1e-3, 1e4, 17}};
  if (!isFloating(dtype) && !isComplex(dtype)) scales.push_back(Scale{1e18, 1e18, 1});
  return scales;
}

class ReduceTest : public testing::TestWithParam<DType> {
 protected:
  // Calls body(case, sources, expected) for every operator, number of sources and scaling.
  template <typename Body>
  void forAll(std::span<const std::size_t> sourceCounts, std::size_t count, Body body) {
    const DType dtype = GetParam();
    std::mt19937_64 random(count * 1000 + static_cast<std::size_t>(dtype));
    for (int o = 0; o < kReduceOpCount; ++o) {
      const auto op = static_cast<ReduceOp>(o);
      if (op == ReduceOp::kAverage || op == ReduceOp::kAdasum || !supports(op, dtype)) continue;
      for (const std::size_t n : sourceCounts) {
        std::vector<Bytes> sources;
        for (std::size_t i = 0; i < n; ++i) {
          sources.push_back(reference::randomArray(count, dtype, random));
        }
        for (const Scale& scale : scalesOf(dtype)) {
          const Bytes expected = reference::reduceArray(sources, count, dtype, op, scale);
          body(Case{dtype, op, count, scale}, sources, expected);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  KernelsGuard guard_;
  FpModeGuard mode_;
};

TEST_P(ReduceTest, EveryLengthAroundTheVectorWidths) {
  constexpr std::size_t kSources[] = {2, 5};
  const Layout layouts[] = {{1, false, 0, 0, 0}, {2, true, 1, 0, 0}};
  for (std::size_t count = 0; count <= 140; count = count < 18 ? count + 1 : count * 9 / 8) {
    forAll(kSources, count, [&](const Case& c, const auto& sources, const Bytes& expected) {
      for (const std::string& isa : availableKernels()) {
        ASSERT_TRUE(setKernels(isa));
        for (const Layout& layout : layouts) {
          for (const Store store : {Store::kCached, Store::kStreaming}) {
            check(c, sources, expected, layout, store);
            if (HasFatalFailure()) return;
          }
        }
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST_P(ReduceTest, EveryNumberOfSourcesAndDestinations) {
  constexpr std::size_t kSources[] = {1, 2, 3, 4, 5, 8, 17};
  const std::size_t size = sizeOf(GetParam());
  const Layout layouts[] = {
      {1, false, size, size, 0}, {1, true, 0, 0, 0},        {2, false, 0, size, 0},
      {2, false, 3, 5, 7},       {2, true, size, 0, 0},     {3, false, 0, 32, 0},
      {3, true, 1, 1, size},     {5, false, size, 0, size},
  };
  forAll(kSources, 261, [&](const Case& c, const auto& sources, const Bytes& expected) {
    for (const std::string& isa : availableKernels()) {
      ASSERT_TRUE(setKernels(isa));
      for (const Layout& layout : layouts) {
        for (const Store store : {Store::kCached, Store::kStreaming}) {
          check(c, sources, expected, layout, store);
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_P(ReduceTest, MoreThanOneTile) {
  constexpr std::size_t kSources[] = {3};
  const std::size_t size = sizeOf(GetParam());
  const Layout layouts[] = {{1, true, 0, 0, 0}, {2, false, size, size, 0}, {3, true, 1, 1, 1}};
  forAll(kSources, 3 * 4096 / size + 77,
         [&](const Case& c, const auto& sources, const Bytes& expected) {
           for (const std::string& isa : availableKernels()) {
             ASSERT_TRUE(setKernels(isa));
             for (const Layout& layout : layouts) {
               for (const Store store : {Store::kCached, Store::kStreaming}) {
                 check(c, sources, expected, layout, store);
                 if (HasFatalFailure()) return;
               }
             }
           }
         });
}

INSTANTIATE_TEST_SUITE_P(Types, ReduceTest,
                         testing::Values(DType::kUint8, DType::kInt8, DType::kUint16, DType::kInt16,
                                         DType::kInt32, DType::kInt64, DType::kFloat16,
                                         DType::kBfloat16, DType::kFloat32, DType::kFloat64,
                                         DType::kBool, DType::kComplex64, DType::kComplex128),
                         [](const testing::TestParamInfo<DType>& tested) {
                           return std::string(name(tested.param));
                         });

// An integer average is a true division: a product with 1/49 would give 0.
TEST(Reduce, IntegerAverageOf49TimesOneIsOne) {
  const KernelsGuard guard;
  const std::int32_t one = 1;
  const std::vector<const void*> sources(49, &one);
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    std::int32_t result = 0;
    void* const to[] = {&result};
    reduce(to, sources, 1, DType::kInt32, ReduceOp::kSum, Scale{1, 1, 49}, Store::kCached);
    EXPECT_EQ(result, 1) << isa;
  }
}

// 200 + 100 does not fit a byte, its average does.
TEST(Reduce, AverageOfBytesDoesNotOverflow) {
  const KernelsGuard guard;
  const std::uint8_t a = 200;
  const std::uint8_t b = 100;
  const void* const from[] = {&a, &b};
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    std::uint8_t result = 0;
    void* const to[] = {&result};
    reduce(to, from, 1, DType::kUint8, ReduceOp::kSum, Scale{1, 1, 2}, Store::kCached);
    EXPECT_EQ(result, 150) << isa;
  }
}

// 2048 + 1 + 1 in float16 alone would stay 2048; one rounding from float32 gives 2050.
TEST(Reduce, HalfIsRoundedOnce) {
  const KernelsGuard guard;
  const std::uint16_t big = reference::encode(2048, reference::kHalf);
  const std::uint16_t one = reference::encode(1, reference::kHalf);
  const void* const from[] = {&big, &one, &one};
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    std::uint16_t result = 0;
    void* const to[] = {&result};
    reduce(to, from, 1, DType::kFloat16, ReduceOp::kSum, Scale{}, Store::kCached);
    EXPECT_EQ(reference::decode(result, reference::kHalf), 2050) << isa;
  }
}

TEST(Reduce, NothingIsTouchedForAnEmptyArray) {
  std::byte untouched = kGuard;
  void* const to[] = {&untouched};
  const void* const from[] = {nullptr, nullptr};
  reduce(to, from, 0, DType::kFloat32, ReduceOp::kSum, Scale{}, Store::kStreaming);
  EXPECT_EQ(untouched, kGuard);
}

TEST(Copy, AllLengthsAndAlignments) {
  const KernelsGuard guard;
  std::mt19937_64 random(1);
  const Bytes source = reference::randomArray(5000, DType::kUint8, random);
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    for (const Store store : {Store::kCached, Store::kStreaming}) {
      for (std::size_t bytes = 0; bytes < 4900; bytes = bytes < 300 ? bytes + 1 : bytes * 3 / 2) {
        const std::size_t shift = bytes % 64;
        Guarded to(bytes, shift);
        copy(to.data(), source.data() + (bytes * 7) % 64, bytes, store);
        ASSERT_TRUE(std::equal(to.data(), to.data() + bytes, source.data() + (bytes * 7) % 64))
            << bytes << " bytes, " << isa;
        ASSERT_TRUE(to.intact()) << bytes << " bytes, " << isa;
      }
    }
  }
}

TEST(Kernels, AreChosenByNameAndUnknownOnesRefused) {
  const KernelsGuard guard;
  const std::string before(kernels());
  EXPECT_FALSE(setKernels("sse9"));
  EXPECT_FALSE(setKernels(""));
  EXPECT_EQ(kernels(), before);
  EXPECT_TRUE(setKernels("baseline"));
  EXPECT_EQ(kernels(), "baseline");
}

}  // namespace
}  // namespace farandole
