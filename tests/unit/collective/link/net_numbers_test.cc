// Numbers: 16-bit wire formats, Adasum, and conversions.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/half.h"
#include "collective/adasum.h"
#include "unit/collective/link/link_group.h"

namespace farandole::testing {
namespace {

using collective::Piece;
using collective::link::WireFormat;

class LinkNumbers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LinkNumbers, ::testing::ValuesIn(rankCounts()));

std::uint16_t narrowed(float value, DType type) {
  return type == DType::kFloat16 ? floatToHalf(value) : floatToBfloat(value);
}
float widened(std::uint16_t bits, DType type) {
  return type == DType::kFloat16 ? halfToFloat(bits) : bfloatToFloat(bits);
}

Bytes bytesOf(const auto& values) {
  const auto* from = reinterpret_cast<const std::byte*>(values.data());
  return Bytes(from, from + values.size() * sizeof(values[0]));
}

// What all members must get: everybody's input rounded, the result rounded once more.
std::vector<float> throughWire(const std::vector<std::vector<float>>& inputs, DType type,
                               Scale scale) {
  std::vector<Bytes> rounded;
  for (const std::vector<float>& input : inputs) {
    std::vector<std::uint16_t> halves;
    for (const float value : input) {
      halves.push_back(narrowed(value * static_cast<float>(scale.pre), type));
    }
    rounded.push_back(bytesOf(halves));
  }
  const auto count = static_cast<std::int64_t>(inputs[0].size());
  scale.pre = 1.0;
  const Bytes result = reduced(rounded, count, type, ReduceOp::kAverage, scale);
  std::vector<float> wide;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, result.data() + 2 * i, 2);
    wide.push_back(widened(bits, type));
  }
  return wide;
}

std::vector<float> scaled(std::vector<float> values, const Scale& scale) {
  const auto count = static_cast<std::int64_t>(values.size());
  Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const Bytes result = reduced({bytes}, count, DType::kFloat32, ReduceOp::kAverage, scale);
  std::memcpy(values.data(), result.data(), result.size());
  return values;
}

TEST_P(LinkNumbers, Float32TravelsIn16BitsAndAllMembersAgree) {
  const int ranks = GetParam();
  LinkGroup group(ranks);
  std::uint32_t key = 1;
  for (const auto& [wire, type] : {std::pair{WireFormat::kFloat16, DType::kFloat16},
                                   std::pair{WireFormat::kBfloat16, DType::kBfloat16}}) {
    ++key;
    for (const std::int64_t count : {1, 1000, 5000, 200000}) {
      ++key;
      const Scale scale = count == 5000 ? Scale{0.3, 2.0, 1} : Scale{};
      std::vector<std::vector<float>> inputs;
      for (int rank = 0; rank < ranks; ++rank) {
        inputs.emplace_back(static_cast<std::size_t>(count));
        const Bytes data = makeData(DType::kFloat32, count, 3, rank);
        std::memcpy(inputs.back().data(), data.data(), data.size());
      }
      // One member alone sends nothing, and nothing is rounded.
      const std::vector<float> expected =
          ranks == 1 ? scaled(inputs.front(), scale) : throughWire(inputs, type, scale);
      group.run([&, wire = wire](LinkMember& member) {
        auto communicator = member.world(key, wire);
        std::vector<float> values = inputs[static_cast<std::size_t>(member.rank())];
        const Piece pieces[] = {
            {values.data(), values.data(), count / 3},
            {values.data() + count / 3, values.data() + count / 3, count - count / 3}};
        const Status status = member.wait(
            communicator->allreduce(pieces, DType::kFloat32, ReduceOp::kAverage, scale));
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(values == expected) << count << " " << collective::link::wireFormatName(wire);
        // Integers and doubles are left alone.
        std::int64_t big = (std::int64_t{1} << 50) + member.rank();
        const Piece one{&big, &big, 1};
        ASSERT_TRUE(member
                        .wait(communicator->allreduce(std::span(&one, 1), DType::kInt64,
                                                      ReduceOp::kMin, {}))
                        .ok());
        ASSERT_EQ(big, std::int64_t{1} << 50);
      });
    }
  }
}

TEST(LinkNumbersOnTheWire, ConversionsAreThoseOfHalfH) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761U)));
  }
  for (const float value : {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 65504.0F, 65520.0F, 1e-8F}) {
    values.push_back(value);
  }
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::uint16_t> halves(values.size());
  std::vector<float> wide(values.size());
  for (const DType type : {DType::kFloat16, DType::kBfloat16}) {
    collective::link::narrow(halves.data(), values.data(), count, type);
    collective::link::widen(wide.data(), halves.data(), count, type);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(halves[i], narrowed(values[i], type)) << values[i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(widened(halves[i], type)))
          << values[i];
    }
  }
  EXPECT_EQ(collective::link::wireFormatFromName("bf16"), WireFormat::kBfloat16);
  EXPECT_EQ(collective::link::wireFormatFromName("fp8"), std::nullopt);
}

// The definition, with the blocks and the order of the shared-memory engine.
Bytes tournament(std::vector<Bytes> vectors, std::int64_t count, DType dtype) {
  while (vectors.size() > 1) {
    std::vector<Bytes> winners;
    for (std::size_t i = 0; i < vectors.size(); i += 2) {
      if (i + 1 < vectors.size()) {
        double sums[3] = {0, 0, 0};
        for (std::int64_t at = 0; at < count; at += 16384) {
          const std::size_t offset = static_cast<std::size_t>(at) * sizeOf(dtype);
          double block[3] = {0, 0, 0};
          dot3(vectors[i].data() + offset, vectors[i + 1].data() + offset,
               std::min<std::int64_t>(16384, count - at), dtype, block);
          for (int k = 0; k < 3; ++k) sums[k] += block[k];
        }
        const collective::AdasumWeights weights = collective::adasumWeights(sums);
        combine(vectors[i].data(), vectors[i].data(), weights.a, vectors[i + 1].data(), weights.b,
                count, dtype);
      }
      winners.push_back(vectors[i]);
    }
    vectors = std::move(winners);
  }
  return vectors.front();
}

TEST_P(LinkNumbers, AdasumHasTheBitsOfTheSharedMemoryEngine) {
  const int ranks = GetParam();
  const std::int64_t counts[] = {5, 40000, 0, 333, 100000, 7};
  LinkGroup group(ranks);
  std::uint32_t key = 1;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kFloat64}) {
    ++key;
    std::vector<std::vector<Bytes>> inputs;  // [piece][rank]
    std::vector<Bytes> expected;
    for (const std::int64_t count : counts) {
      inputs.emplace_back();
      for (int rank = 0; rank < ranks; ++rank) {
        inputs.back().push_back(makeData(dtype, count, 40, rank));
      }
      expected.push_back(tournament(inputs.back(), count, dtype));
    }
    group.run([&](LinkMember& member) {
      auto communicator = member.world(key);
      std::vector<Bytes> memory;
      std::vector<Piece> pieces;
      for (std::size_t i = 0; i < std::size(counts); ++i) {
        memory.push_back(inputs[i][static_cast<std::size_t>(member.rank())]);
        pieces.push_back({memory.back().data(), memory.back().data(), counts[i]});
      }
      const Status status =
          member.wait(communicator->allreduce(pieces, dtype, ReduceOp::kAdasum, {}));
      ASSERT_TRUE(status.ok()) << status.message();
      for (std::size_t i = 0; i < std::size(counts); ++i) {
        ASSERT_TRUE(memory[i] == expected[i]) << i << " " << name(dtype);
      }
    });
  }
}

}  // namespace
}  // namespace farandole::testing
