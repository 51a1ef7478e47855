// The messages of ordered operations, and what members say that disagree about one.
#include "control/ordered_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/agreement.h"

namespace farandole::control {
namespace ordered_record_test {

using ::testing::StartsWith;

Meta someMeta() {
  Meta meta;
  meta.kind = Kind::kReduce;
  meta.dtype = DType::kBfloat16;
  meta.op = ReduceOp::kMax;
  meta.root = 3;
  meta.prescale = 0.5;
  meta.postscale = -2;
  meta.shape = {4, 0, 7};
  return meta;
}

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(OrderedRecord, SurvivesItsByteForm) {
  const auto head = encodeOrderedHead("loss", someMeta());
  for (const std::string payload : {"", "d", "some data"}) {
    for (const std::size_t room : {0, 4, 9}) {
      const std::string message =
          encodeOrdered({false, 0x123456789abcdef0, head, bytesOf(payload)}, room);
      EXPECT_EQ(message.substr(0, room), std::string(room, '\0'));
      const auto record = decodeOrdered(bytesOf(message).subspan(room));
      ASSERT_TRUE(record);
      EXPECT_FALSE(record->leaves);
      EXPECT_EQ(record->number, 0x123456789abcdef0U);
      EXPECT_EQ(textOf(record->head), textOf(head));
      EXPECT_EQ(textOf(record->payload), payload);
    }
  }
  const std::string leaves = encodeOrdered({true, 0, {}, {}}, 4);
  const auto record = decodeOrdered(bytesOf(leaves).subspan(4));
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->leaves);
  EXPECT_TRUE(record->head.empty() && record->payload.empty());
  for (const std::size_t bytes : {std::size_t{0}, head.size()}) {
    const std::string byName = encodeOrdered({false, 7, std::span(head).first(bytes), {}, true}, 0);
    const auto gone = decodeOrdered(bytesOf(byName));
    ASSERT_TRUE(gone);
    EXPECT_TRUE(gone->byName && !gone->leaves);
    EXPECT_EQ(gone->number, 7U);
    EXPECT_EQ(gone->head.size(), bytes);
    EXPECT_FALSE(decodeOrdered(bytesOf(byName + "d")));
  }
}

TEST(OrderedRecord, IsRefusedWhereItsHeadIsNotWhole) {
  const auto head = encodeOrderedHead("loss", someMeta());
  const std::string message = encodeOrdered({false, 1, head, {}}, 0);
  for (std::size_t size = 0; size < message.size(); ++size) {
    // A block of its own, so that a sanitizer sees a read beyond it.
    const std::vector<char> cut(message.begin(),
                                message.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(decodeOrdered(std::as_bytes(std::span(cut)))) << size << " bytes";
  }
  const std::string leaves = encodeOrdered({true, 0, {}, {}}, 0);
  for (std::size_t size = 0; size < leaves.size(); ++size) {
    EXPECT_FALSE(decodeOrdered(bytesOf(leaves).first(size))) << size << " bytes";
  }
  EXPECT_FALSE(decodeOrdered(bytesOf(leaves + "x")));
  // No head is as long as that.
  const std::vector<std::byte> tooLong(std::size_t{64} << 10);
  EXPECT_FALSE(decodeOrdered(bytesOf(encodeOrdered({false, 1, tooLong, {}}, 0))));
  EXPECT_FALSE(decodeOrdered(bytesOf("\3" + message.substr(1))));
}

TEST(OrderedHead, SurvivesItsByteFormAndIsRefusedIfItIsNotWhole) {
  for (const std::string name : {"", "loss", "grad/ü"}) {
    const auto bytes = encodeOrderedHead(name, someMeta());
    const auto head = decodeOrderedHead(bytes, 4);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->name, name);
    EXPECT_TRUE(agree(head->meta, someMeta()));
    EXPECT_EQ(encodeOrderedHead(head->name, head->meta), bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::vector<std::byte> cut(bytes.begin(),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(decodeOrderedHead(cut, 4)) << size << " bytes";
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decodeOrderedHead(longer, 4));
  }
  EXPECT_TRUE(decodeOrderedHead(encodeOrderedHead(std::string(kMaxNameBytes, 'n'), someMeta()), 4));
  EXPECT_FALSE(
      decodeOrderedHead(encodeOrderedHead(std::string(kMaxNameBytes + 1, 'n'), someMeta()), 4));
}

class Agreement : public ::testing::Test {
 protected:
  // Member i has shape {shapes[i]}.
  std::optional<Disagreement> of(const std::vector<std::int64_t>& shapes) {
    metas_.assign(shapes.size(), Meta());
    std::vector<MemberMeta> metas;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      metas_[i].shape = {shapes[i]};
      metas.push_back({static_cast<int>(i), &metas_[i]});
      names.push_back("rank " + std::to_string(i));
    }
    return disagreementAbout("loss", metas, names);
  }

 private:
  std::vector<Meta> metas_;
};

TEST_F(Agreement, IsNoDissent) {
  EXPECT_FALSE(of({}));
  EXPECT_FALSE(of({3}));
  EXPECT_FALSE(of({3, 3, 3}));
}

TEST_F(Agreement, LacksTheSmallerSide) {
  const auto found = of({3, 4, 4});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->culprit, 0);
  EXPECT_EQ(found->text,
            "ranks disagree about 'loss'; shape: rank 1, rank 2 has [4], rank 0 has [3]");
}

TEST_F(Agreement, LacksTheLaterOfEqualSides) {
  const auto found = of({3, 4});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->culprit, 1);
  EXPECT_EQ(found->text, "ranks disagree about 'loss'; shape: rank 0 has [3], rank 1 has [4]");
}

TEST_F(Agreement, NamesEverySideAndAFewOfManyMembers) {
  std::vector<std::int64_t> shapes(12, 4);
  shapes[10] = 5;
  shapes[11] = 6;
  const auto found = of(shapes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->culprit, 10);
  const std::string many =
      "rank 0, rank 1, rank 2, rank 3, rank 4, rank 5, rank 6, rank 7 and 2 more has [4], ";
  EXPECT_EQ(found->text, "ranks disagree about 'loss'; shape: " + many +
                             "rank 10 has [5]; shape: " + many + "rank 11 has [6]");
}

TEST_F(Agreement, HasATextOfBoundedLength) {
  std::vector<std::int64_t> shapes;
  for (std::int64_t i = 0; i < 1000; ++i) shapes.push_back(i + 1);
  const auto found = of(shapes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->culprit, 1);
  EXPECT_LE(found->text.size(), 16384U);
  EXPECT_THAT(found->text, StartsWith("ranks disagree about 'loss'; shape: rank 0 has [1]"));
}

}  // namespace ordered_record_test
}  // namespace farandole::control
