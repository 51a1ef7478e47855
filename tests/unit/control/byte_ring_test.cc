#include "control/byte_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace farandole::control {
namespace {

struct Ring {
  static constexpr std::size_t kCapacity = 1024;
  alignas(64) std::byte data[kCapacity] = {};
  std::atomic<std::uint64_t> head{0};
  RingWriter writer{data, kCapacity, &head, 7};
  RingReader reader{data, kCapacity, &head, 7};
};

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> record(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    record[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
  }
  return record;
}

TEST(ByteRing, KeepsRecordsInOrderAcrossManyWraps) {
  Ring ring;
  std::mt19937 random(1);
  std::vector<std::byte> got;
  for (int i = 0; i < 5000; ++i) {
    const auto record = pattern(random() % (ring.writer.largestRecord() + 1), i);
    ASSERT_TRUE(ring.writer.write(record, ring.reader.position())) << i;
    ASSERT_EQ(ring.reader.read(got), RingRead::kRecord);
    ASSERT_EQ(got, record);
    ASSERT_EQ(ring.reader.read(got), RingRead::kEmpty);
  }
}

TEST(ByteRing, RefusesWhatTheSlowestReaderHasNotMadeRoomFor) {
  Ring ring;
  const auto record = pattern(200, 0);
  int written = 0;
  while (ring.writer.write(record, 0)) ++written;
  EXPECT_EQ(written, 4);  // (8 + 200) bytes each: a fifth would cross the end
  std::vector<std::byte> got;
  for (int i = 0; i < written; ++i) ASSERT_EQ(ring.reader.read(got), RingRead::kRecord);
  EXPECT_TRUE(ring.writer.write(record, ring.reader.position()));
  EXPECT_EQ(ring.reader.read(got), RingRead::kRecord);
}

TEST(ByteRing, RefusesAnotherEpoch) {
  Ring ring;
  RingWriter old(ring.data, Ring::kCapacity, &ring.head, 6);
  ASSERT_TRUE(old.write(pattern(10, 0), 0));
  std::vector<std::byte> got;
  EXPECT_EQ(ring.reader.read(got), RingRead::kCorrupt);
}

// Whatever bytes and positions another process leaves there, reading stays inside the ring.
TEST(ByteRing, SurvivesGarbage) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    Ring ring;
    for (auto& byte : ring.data) byte = static_cast<std::byte>(random());
    // Half the time a plausible epoch, so that the length is looked at.
    if (i % 2 == 0) {
      const std::uint32_t epoch = 7;
      std::memcpy(ring.data + 4, &epoch, sizeof epoch);
    }
    ring.head = i % 3 == 0 ? random() : random() % (2 * Ring::kCapacity);
    std::vector<std::byte> got;
    for (int reads = 0; reads < 8; ++reads) {
      if (ring.reader.read(got) != RingRead::kRecord) break;
      ASSERT_LE(got.size(), Ring::kCapacity);
    }
  }
}

}  // namespace
}  // namespace farandole::control
