// Frames, hellos, verdicts, addresses, cards, keys: what is read from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/frame.h"
#include "transport/frame_seal.h"
#include "transport/link_address.h"
#include "transport/link_key.h"
#include "transport/link_listener.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool decodes(const FrameHeader& header) {
  const Result<FrameHeader> again = decodeFrameHeader(encodeFrameHeader(header));
  EXPECT_TRUE(!again.ok() || again.value() == header);
  return again.ok();
}

TEST(LinkFrames, HeadersAreReadAsTheyWereWritten) {
  EXPECT_TRUE(decodes({FrameType::kData, 3, 100, ~0ULL, 1000, 900}));
  EXPECT_TRUE(decodes({FrameType::kData, 0, 0, 1, 0, 0}));
  EXPECT_TRUE(decodes({FrameType::kData, 0, kMaxFragment, 1, kMaxMessage, 0}));
  EXPECT_TRUE(decodes({FrameType::kControl, 1, kMaxControl, 0, 0, 0}));
  EXPECT_TRUE(decodes({FrameType::kOffer, 1, 0, 5, 6, 0}));
  EXPECT_TRUE(decodes({FrameType::kGoodbye, 1, 0, 0, 0, 0}));
}

TEST(LinkFrames, EveryLengthIsChecked) {
  EXPECT_FALSE(decodes({FrameType::kData, 0, kMaxFragment + 1, 1, kMaxMessage, 0}));
  EXPECT_FALSE(decodes({FrameType::kData, 0, 1, 1, kMaxMessage + 1, 0}));
  EXPECT_FALSE(decodes({FrameType::kData, 0, 10, 1, 10, 1}));
  EXPECT_FALSE(decodes({FrameType::kData, 0, 10, 1, 10, ~0ULL - 5}));
  EXPECT_FALSE(decodes({FrameType::kData, 0, 0, 1, 10, 0}));
  EXPECT_FALSE(decodes({FrameType::kControl, 0, kMaxControl + 1, 0, 0, 0}));
  EXPECT_TRUE(decodes({FrameType::kRecord, 1, kMaxControl, 0, 0, 0}));
  EXPECT_FALSE(decodes({FrameType::kRecord, 0, kMaxControl + 1, 0, 0, 0}));
  EXPECT_FALSE(decodes({FrameType::kRecord, 0, 1, 5, 0, 0}));
  EXPECT_FALSE(decodes({FrameType::kControl, 0, 1, 0, 1, 0}));
  EXPECT_FALSE(decodes({FrameType::kHeartbeat, 0, 1, 0, 0, 0}));
  EXPECT_FALSE(decodes({FrameType::kCredit, 0, 0, 1, 1, 0}));
  EXPECT_FALSE(decodes({FrameType::kPosted, 0, 0, 1, kMaxMessage + 1, 0}));
  EXPECT_FALSE(decodes({static_cast<FrameType>(0), 0, 0, 0, 0, 0}));
  EXPECT_FALSE(decodes({static_cast<FrameType>(9), 0, 0, 0, 0, 0}));
  FrameHeaderBytes other = encodeFrameHeader({});
  other[3] ^= 1;
  EXPECT_FALSE(decodeFrameHeader(other).ok());
}

TEST(LinkFrames, HelloAndVerdictAreReadAsTheyWereWritten) {
  const LinkHello hello{WireSecurity::kIntegrity, 1, 2, 3, 4, 5, 6, "alpha"};
  Result<LinkHello> hi = decodeLinkHello(encodeLinkHello(hello));
  ASSERT_TRUE(hi.ok());
  EXPECT_EQ(hi.value(), hello);
  const LinkVerdict verdict{Code::kMismatch, 7, "no"};
  Result<LinkVerdict> said = decodeLinkVerdict(encodeLinkVerdict(verdict));
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(said.value(), verdict);

  LinkHelloBytes bytes = encodeLinkHello(hello);
  bytes[4] = 9;
  EXPECT_THAT(decodeLinkHello(bytes).status().message(), HasSubstr("another version"));
  bytes = encodeLinkHello(hello);
  bytes[6] = 4;
  EXPECT_FALSE(decodeLinkHello(bytes).ok());
  bytes = encodeLinkHello(hello);
  bytes.back() = 1;
  EXPECT_FALSE(decodeLinkHello(bytes).ok());
  LinkVerdictBytes answer = encodeLinkVerdict(verdict);
  answer[7] = 0xff;
  EXPECT_FALSE(decodeLinkVerdict(answer).ok());
  // Long texts are cut, never refused.
  EXPECT_TRUE(
      decodeLinkVerdict(encodeLinkVerdict({Code::kMismatch, 0, std::string(9999, 'x')})).ok());
  EXPECT_TRUE(decodeLinkHello(encodeLinkHello({WireSecurity::kEncrypt, 0, 0, 0, 0, 0, 0,
                                               std::string(9999, 'x')}))
                  .ok());
}

TEST(LinkSeal, ATagFitsOnlyItsBytesAtItsPlace) {
  const std::array<std::uint8_t, 32> key{1, 2, 3};
  Result<FrameSeal> writer = FrameSeal::make(key);
  Result<FrameSeal> reader = FrameSeal::make(key);
  ASSERT_TRUE(writer.ok() && reader.ok());
  const std::array<std::uint8_t, 5> piece{1, 2, 3, 4, 5};
  const auto tag = [&] {
    EXPECT_TRUE(writer->add(piece).ok());
    return writer->finish().value();
  };
  const auto fits = [&](const FrameTag& it) {
    EXPECT_TRUE(reader->add(std::span(piece).first(2)).ok());
    EXPECT_TRUE(reader->add(std::span(piece).subspan(2)).ok());
    return reader->check(it);
  };
  const FrameTag first = tag();
  EXPECT_TRUE(fits(first));
  EXPECT_FALSE(fits(first));  // again, one place further
  const FrameTag second = tag();
  EXPECT_NE(first, second);
}

TEST(LinkAddresses, AreReadAndWritten) {
  for (const char* text : {"10.0.0.1:4711", "[2001:db8::1]:4711", "10.0.0.1", "2001:db8::1"}) {
    Result<LinkAddress> address = LinkAddress::parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->text(), text);
    sockaddr_storage storage{};
    address->toSockaddr(storage);
    EXPECT_EQ(LinkAddress::fromSockaddr(reinterpret_cast<sockaddr*>(&storage)).value(),
              address.value());
  }
  for (const char* text : {"", "alpha", "alpha:1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536",
                           "10.0.0.1:1x", "[::1", "[::1]x", "[::1]:", "[10.0.0.1]:1", "1.2.3"}) {
    const Result<LinkAddress> address = LinkAddress::parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.status().message(), HasSubstr("is not a numeric address such as"));
  }
}

TEST(LinkAddresses, CardsAreReadAsTheyWereWrittenAndCheckedByteByByte) {
  const LinkCard card = test::cardAt("alpha", {"10.0.0.1:4711", "[2001:db8::1]:1"});
  const std::string bytes = encodeLinkCard(card);
  Result<LinkCard> again = decodeLinkCard(bytes);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), card);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(decodeLinkCard(bytes.substr(0, cut)).ok()) << cut;
  }
  EXPECT_FALSE(decodeLinkCard(bytes + "x").ok());
  EXPECT_FALSE(decodeLinkCard(encodeLinkCard(test::cardAt("alpha", {"10.0.0.1"}))).ok());
  EXPECT_FALSE(decodeLinkCard(encodeLinkCard(test::cardAt("alpha", {"0.0.0.0:1"}))).ok());
}

InterfaceAddress interface(const std::string& name, const std::string& text, bool running = true) {
  return {name, LinkAddress::parse(text).value(), running};
}

std::vector<std::string> useful(const std::vector<InterfaceAddress>& found,
                                const std::vector<std::string>& only = {}) {
  std::vector<std::string> texts;
  for (const LinkAddress& address : usefulAddresses(found, only)) texts.push_back(address.text());
  return texts;
}

TEST(LinkAddresses, TheMostUsefulComeFirst) {
  const std::vector<InterfaceAddress> found{
      interface("lo", "127.0.0.1"),         interface("lo", "::1"),
      interface("docker0", "172.17.0.1"),   interface("eth0", "2001:db8::5"),
      interface("eth0", "fe80::1"),         interface("eth0", "10.0.0.5"),
      interface("eth1", "10.1.0.5", false), interface("eth2", "169.254.3.4"),
      interface("ib0", "192.168.7.5")};
  EXPECT_THAT(useful(found), ElementsAre("10.0.0.5", "192.168.7.5", "2001:db8::5", "172.17.0.1"));
  EXPECT_THAT(useful(found, {"ib0"}), ElementsAre("192.168.7.5"));
  EXPECT_THAT(useful(found, {"10.0.0.5"}), ElementsAre("10.0.0.5"));
  EXPECT_THAT(useful(found, {"lo"}), ElementsAre("127.0.0.1", "::1"));
  EXPECT_THAT(useful(found, {"eth9"}), IsEmpty());
  EXPECT_THAT(useful({found[0], found[1], found[4]}), ElementsAre("127.0.0.1", "::1"));
}

TEST(LinkAddresses, WhatIsAdvertisedCanBeSaid) {
  const auto told = [](const LinkPorts& ports, const std::vector<std::string>& advertise) {
    std::vector<std::string> texts;
    Result<std::vector<LinkAddress>> found = advertisedAddresses(ports, 4711, advertise, {});
    EXPECT_TRUE(found.ok()) << found.status().message();
    for (const LinkAddress& address : found.value()) texts.push_back(address.text());
    return texts;
  };
  EXPECT_THAT(told({"127.0.0.1", 0, 0}, {}), ElementsAre("127.0.0.1:4711"));
  EXPECT_THAT(told({"127.0.0.1", 0, 0}, {"203.0.113.5:20000", "203.0.113.6"}),
              ElementsAre("203.0.113.5:20000", "203.0.113.6:4711"));
  EXPECT_FALSE(advertisedAddresses({}, 4711, {"alpha"}, {}).ok());
  EXPECT_FALSE(advertisedAddresses({}, 4711, {}, {"no-such-interface"}).ok());
}

TEST(LinkKeys, BelongToJobAndRanks) {
  Result<LinkKey> key = LinkKey::make("a/b", test::kSecret);
  Result<LinkKey> other = LinkKey::make("a", test::kSecret);
  ASSERT_TRUE(key.ok() && other.ok());
  EXPECT_EQ(key->identity(1, 2), "a/b/1/2");
  EXPECT_EQ(key->whoIs("a/b/1/2", 2, 3), 1);
  for (const char* id : {"a/b/1/3", "a/b/2/2", "a/b/3/2", "a/b/01/2", "a/b/1/2/", "a/b/-1/2",
                         "a/c/1/2", "", "a/b/", "a/b/1", "a/b/+1/2", "a/b/99999999999/2"}) {
    EXPECT_FALSE(key->whoIs(id, 2, 3)) << id;
  }
  EXPECT_NE(key->preSharedKey(1, 2).value(), key->preSharedKey(2, 1).value());
  EXPECT_NE(key->preSharedKey(1, 2).value(), other->preSharedKey(1, 2).value());
  EXPECT_FALSE(LinkKey::make("a", "00").ok());
  EXPECT_EQ(parseWireSecurity("integrity").value(), WireSecurity::kIntegrity);
  EXPECT_THAT(parseWireSecurity("none").status().message(),
              HasSubstr("expected encrypt, integrity or handshake"));
}

}  // namespace
}  // namespace farandole::transport
