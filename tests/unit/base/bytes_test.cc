#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace farandole {
namespace {

using namespace std::string_literals;

// What other processes and machines rely on.
TEST(Bytes, StandLittleEndianAndTextsBehindTheirLength) {
  std::string out;
  appendInteger(out, std::uint8_t{0x01});
  appendInteger(out, std::uint16_t{0x0203});
  appendInteger(out, std::int32_t{-2});
  appendInteger(out, std::uint64_t{0x0807060504030201});
  appendText(out, "ab");
  EXPECT_EQ(out,
            "\x01\x03\x02\xfe\xff\xff\xff\x01\x02\x03\x04\x05\x06\x07\x08\x02\x00\x00\x00"
            "ab"s);
}

TEST(Bytes, AreReadAsTheyWereWritten) {
  std::string out;
  appendInteger(out, std::int32_t{-7});
  appendText(out, "tensor\0name"s);
  appendInteger(out, std::uint32_t{2});
  out += "xy";
  ByteReader reader(out);
  EXPECT_EQ(reader.integer<std::int32_t>(), -7);
  EXPECT_EQ(reader.text(100), "tensor\0name"s);
  EXPECT_EQ(reader.count(1), 2u);
  EXPECT_TRUE(reader.good());
  EXPECT_FALSE(reader.finished());
  EXPECT_EQ(reader.remainder(), "xy");
  EXPECT_TRUE(reader.finished());
}

TEST(ByteWriter, WritesTheSameFormIntoMemoryThatIsUsedAgain) {
  ByteWriter writer;
  writer.text(std::string(1000, 'x'));
  writer.clear();
  writer.integer(std::int32_t{-2});
  writer.real(1.5);
  writer.text("ab");
  writer.integers(std::array<std::int64_t, 2>{1, -1});
  writer.remainder(std::as_bytes(std::span("xy", 2)));
  const auto bytes = writer.bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
            "\xfe\xff\xff\xff\x00\x00\x00\x00\x00\x00\xf8\x3f\x02\x00\x00\x00"
            "ab\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"
            "xy"s);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.integer<std::int32_t>(), -2);
  EXPECT_EQ(reader.real(), 1.5);
  EXPECT_EQ(reader.text(2), "ab");
  EXPECT_EQ(reader.integers(2), (std::vector<std::int64_t>{1, -1}));
  EXPECT_EQ(reader.remainder(), "xy");
  EXPECT_TRUE(reader.finished());
}

TEST(ByteReader, RefusesListsThatAreTooLongForTheLimitOrTheMessage) {
  ByteWriter writer;
  writer.integers(std::array<std::int64_t, 2>{1, 2});
  ByteReader limited(writer.bytes());
  EXPECT_TRUE(limited.integers(1).empty());
  EXPECT_FALSE(limited.good());
  ByteReader cut(writer.bytes().first(19));
  EXPECT_TRUE(cut.integers(2).empty());
  EXPECT_FALSE(cut.good());
}

TEST(ByteReader, YieldsNothingAfterWhatDoesNotFit) {
  const std::string three = "abc";
  ByteReader reader(three);
  EXPECT_EQ(reader.integer<std::uint32_t>(), 0u);
  EXPECT_FALSE(reader.good());
  // Although a byte would have been there.
  EXPECT_EQ(reader.integer<std::uint8_t>(), 0u);
  EXPECT_FALSE(reader.finished());
}

TEST(ByteReader, RefusesTextsThatAreTooLongForTheLimitOrTheMessage) {
  std::string out;
  appendText(out, "abcd");
  EXPECT_EQ(ByteReader(out).text(4), "abcd");
  ByteReader limited(out);
  EXPECT_EQ(limited.text(3), "");
  EXPECT_FALSE(limited.good());
  ByteReader cut(std::string_view(out).substr(0, out.size() - 1));
  EXPECT_EQ(cut.text(4), "");
  EXPECT_FALSE(cut.good());
}

TEST(ByteReader, RefusesCountsOfMoreThanCanFollow) {
  std::string out;
  appendInteger(out, std::uint32_t{3});
  out += std::string(8, '\0');
  EXPECT_EQ(ByteReader(out).count(2), 3u);
  ByteReader reader(out);
  EXPECT_EQ(reader.count(4), 0u);
  EXPECT_FALSE(reader.good());
}

}  // namespace
}  // namespace farandole
