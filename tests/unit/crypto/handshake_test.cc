#include "crypto/handshake.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "base/fd.h"
#include "base/posix.h"

namespace farandole::crypto {
namespace handshake_test {

constexpr char kSecret[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
constexpr char kOtherSecret[] = "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
constexpr char kJob[] = "job-1";

JobKey key(std::string_view job, std::string_view secret) {
  Result<JobKey> made = JobKey::make(job, secret);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

struct Pair {
  UniqueFd listener;
  UniqueFd visitor;
};

Pair makePair() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The listener's whole side, as a poll loop would do it.
Status listen(ListenerHandshake& handshake, UniqueFd fd, Code code = Code::kOk,
              std::string_view text = "alpha") {
  FARANDOLE_RETURN_IF_ERROR(handshake.greet(fd.get()));
  for (;;) {
    if (!waitReady(fd.get(), POLLIN, soon())) return Status::timeout("no hello");
    Result<bool> complete = handshake.listen(fd.get());
    if (!complete.ok()) return complete.status();
    if (complete.value()) break;
  }
  return handshake.conclude(fd.get(), code, text);
}

TEST(JobKeyTest, BadSecretsAreRefused) {
  EXPECT_TRUE(JobKey::make(kJob, kSecret).ok());
  EXPECT_TRUE(JobKey::make(kJob, std::string(32, 'A')).ok());
  EXPECT_FALSE(JobKey::make(kJob, "").ok());
  EXPECT_FALSE(JobKey::make(kJob, std::string(30, 'a')).ok()) << "too short";
  EXPECT_FALSE(JobKey::make(kJob, std::string(33, 'a')).ok()) << "odd";
  EXPECT_FALSE(JobKey::make(kJob, std::string(32, 'g')).ok()) << "not hexadecimal";
  EXPECT_FALSE(JobKey::make("", kSecret).ok());
  EXPECT_FALSE(JobKey::make(std::string(257, 'j'), kSecret).ok());
  const Status bad = JobKey::make(kJob, std::string(32, 'g')).status();
  EXPECT_EQ(bad.message().find("gg"), std::string::npos) << "the secret is not repeated";
}

TEST(JobKeyTest, MacsDependOnEverything) {
  const std::uint8_t transcript[] = {1, 2, 3};
  const auto mac = [&](std::string_view job, std::string_view secret, std::string_view role,
                       std::size_t bytes) {
    return key(job, secret).authenticate(role, std::span(transcript).first(bytes)).value();
  };
  const Mac base = mac(kJob, kSecret, "role", 3);
  EXPECT_EQ(base, mac(kJob, kSecret, "role", 3));
  EXPECT_NE(base, mac(kJob, kSecret, "rol", 3));
  EXPECT_NE(base, mac("job-2", kSecret, "role", 3));
  EXPECT_NE(base, mac(kJob, kOtherSecret, "role", 3));
  EXPECT_NE(base, mac(kJob, kSecret, "role", 2));
}

struct Outcome {
  Status listener;
  Result<std::string> visitor{Status()};
  Claim claim;
};

Outcome shake(const JobKey& listening, Purpose door, const JobKey& visiting, Purpose aim,
              Claim claim, Code code = Code::kOk, std::string_view text = "alpha") {
  Pair pair = makePair();
  Outcome outcome;
  ListenerHandshake handshake(listening, door);
  std::thread visitor([&, fd = std::move(pair.visitor)]() mutable {
    outcome.visitor = visit(fd.get(), visiting, aim, claim, soon());
    fd.reset();
  });
  outcome.listener = listen(handshake, std::move(pair.listener), code, text);
  visitor.join();
  outcome.claim = handshake.claim();
  return outcome;
}

TEST(Handshake, BothSidesAgree) {
  const JobKey same = key(kJob, kSecret);
  const Outcome outcome = shake(same, Purpose::kAgent, same, Purpose::kAgent, {3, 4, 1ull << 40});
  EXPECT_TRUE(outcome.listener.ok()) << outcome.listener.message();
  ASSERT_TRUE(outcome.visitor.ok()) << outcome.visitor.status().message();
  EXPECT_EQ(outcome.visitor.value(), "alpha");
  EXPECT_EQ(outcome.claim.rank, 3);
  EXPECT_EQ(outcome.claim.size, 4);
  EXPECT_EQ(outcome.claim.epoch, 1ull << 40);
}

TEST(Handshake, ARefusalCarriesItsReason) {
  const JobKey same = key(kJob, kSecret);
  const std::string reason = "epoch 2" + std::string(1000, 'x');
  const Outcome outcome =
      shake(same, Purpose::kAgent, same, Purpose::kAgent, {0, 1, 0}, Code::kMismatch, reason);
  ASSERT_FALSE(outcome.visitor.ok());
  EXPECT_EQ(outcome.visitor.status().code(), Code::kMismatch);
  EXPECT_EQ(outcome.visitor.status().message(), reason.substr(0, kVerdictText));
}

TEST(Handshake, OtherSecretsAndJobsAreStrangers) {
  const JobKey ours = key(kJob, kSecret);
  for (const JobKey& theirs : {key(kJob, kOtherSecret), key("job-2", kSecret)}) {
    const Outcome outcome = shake(ours, Purpose::kAgent, theirs, Purpose::kAgent, {0, 1, 0});
    EXPECT_FALSE(outcome.listener.ok());
    ASSERT_FALSE(outcome.visitor.ok());
    EXPECT_EQ(outcome.visitor.status().code(), Code::kUnavailable) << "hung up without a word";
  }
}

TEST(Handshake, APurposeIsNotAnother) {
  const JobKey same = key(kJob, kSecret);
  const Outcome outcome = shake(same, Purpose::kMeeting, same, Purpose::kAgent, {0, 1, 0});
  EXPECT_FALSE(outcome.listener.ok());
  EXPECT_FALSE(outcome.visitor.ok());
}

// A man in the middle who flips one bit of what passes; true if the listener let the visitor in
// and the visitor believed it.
bool passesWithFlip(std::size_t message, std::size_t at) {
  const JobKey same = key(kJob, kSecret);
  Pair left = makePair();
  Pair right = makePair();
  ListenerHandshake handshake(same, Purpose::kAgent);
  Status listened;
  Result<std::string> visited{Status()};
  std::thread listener([&] { listened = listen(handshake, std::move(left.listener)); });
  std::thread visitor([&, fd = std::move(right.visitor)] {
    visited = visit(fd.get(), same, Purpose::kAgent, {1, 2, 3}, soon());
  });
  const int from[] = {left.visitor.get(), right.listener.get(), left.visitor.get()};
  const int to[] = {right.listener.get(), left.visitor.get(), right.listener.get()};
  const std::size_t bytes[] = {kGreetingBytes, kHelloBytes, kVerdictBytes};
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<std::uint8_t> data(bytes[i]);
    if (!receiveExactly(from[i], data, soon()).ok()) break;
    if (i == message) data[at] ^= 1;
    if (!sendExactly(to[i], data, soon()).ok()) break;
  }
  left.visitor.reset();
  right.listener.reset();
  listener.join();
  visitor.join();
  return listened.ok() && visited.ok();
}

TEST(Handshake, NoFlippedBitPasses) {
  EXPECT_TRUE(passesWithFlip(3, 0)) << "nothing flipped";
  for (std::size_t at = 0; at < kGreetingBytes; ++at) EXPECT_FALSE(passesWithFlip(0, at)) << at;
  for (std::size_t at = 0; at < kHelloBytes; ++at) EXPECT_FALSE(passesWithFlip(1, at)) << at;
  for (std::size_t at = 0; at < kVerdictBytes; at += 7) EXPECT_FALSE(passesWithFlip(2, at)) << at;
}

TEST(Handshake, ARecordedHelloIsWorthNothing) {
  const JobKey same = key(kJob, kSecret);
  Pair first = makePair();
  ListenerHandshake once(same, Purpose::kAgent);
  ASSERT_TRUE(once.greet(first.listener.get()).ok());
  std::thread visitor([&] {
    const Result<std::string> visited =
        visit(first.visitor.get(), same, Purpose::kAgent, {0, 1, 0}, soon());
    EXPECT_FALSE(visited.ok());
  });
  Hello recorded{};
  ASSERT_TRUE(receiveExactly(first.listener.get(), recorded, soon()).ok());
  first.listener.reset();
  visitor.join();

  Pair second = makePair();
  ListenerHandshake again(same, Purpose::kAgent);
  ASSERT_TRUE(again.greet(second.listener.get()).ok());
  ASSERT_TRUE(sendExactly(second.visitor.get(), recorded, soon()).ok());
  EXPECT_FALSE(again.listen(second.listener.get()).ok());
}

TEST(Handshake, AListenerWithoutTheSecretIsFoundOut) {
  const JobKey ours = key(kJob, kSecret);
  Pair pair = makePair();
  std::thread impostor([fd = pair.listener.get()] {
    ListenerHandshake theirs(key(kJob, kOtherSecret), Purpose::kAgent);
    EXPECT_TRUE(theirs.greet(fd).ok());
    Hello hello{};
    EXPECT_TRUE(receiveExactly(fd, hello, soon()).ok());
    EXPECT_TRUE(theirs.conclude(fd, Code::kOk, "come in").ok());
  });
  const Result<std::string> visited =
      visit(pair.visitor.get(), ours, Purpose::kAgent, {0, 1, 0}, soon());
  impostor.join();
  ASSERT_FALSE(visited.ok());
  EXPECT_EQ(visited.status().code(), Code::kMismatch);
}

TEST(Handshake, ASilentListenerIsLeftAtTheDeadline) {
  Pair pair = makePair();
  const Result<std::string> visited =
      visit(pair.visitor.get(), key(kJob, kSecret), Purpose::kAgent, {0, 1, 0},
            Deadline::after(std::chrono::milliseconds(50)));
  ASSERT_FALSE(visited.ok());
  EXPECT_EQ(visited.status().code(), Code::kTimeout);
}

}  // namespace handshake_test
}  // namespace farandole::crypto
