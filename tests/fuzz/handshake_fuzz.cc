// Fuzzes what is said on the bootstrap's sockets before a connection is trusted, and the packets of
// a meeting. The first byte chooses:
//   0 strangers' bytes to a listener    1 strangers' bytes to a visitor
//   2 both sides know the secret, the claim and the verdict are anything
//   3 a presentation                    4 a part of the table: number of descriptors, bytes
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "bootstrap/meeting_messages.h"
#include "crypto/handshake.h"
#include "fuzz.h"

namespace farandole::fuzz {
namespace {

using crypto::JobKey;
using crypto::ListenerHandshake;
using crypto::Purpose;

struct Pair {
  explicit Pair(int type) {
    int fds[2];
    require(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) == 0);
    near.reset(fds[0]);
    far.reset(fds[1]);
  }
  UniqueFd near;
  UniqueFd far;
};

const JobKey& key() {
  static const JobKey kKey = JobKey::make("job", "000102030405060708090a0b0c0d0e0f").value();
  return kKey;
}

Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

void sendAll(int fd, std::string_view bytes) {
  bytes = bytes.substr(0, 65536);
  require(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
}

// Nobody guesses the MAC.
bool strangerToListener(std::string_view input) {
  Pair pair(SOCK_STREAM);
  ListenerHandshake listener(key(), Purpose::kAgent);
  require(listener.greet(pair.near.get()).ok());
  if (!input.empty()) sendAll(pair.far.get(), input);
  ::shutdown(pair.far.get(), SHUT_WR);
  for (int i = 0; i < 4; ++i) {
    const Result<bool> known = listener.listen(pair.near.get());
    require(!known.ok() || !known.value());
    if (!known.ok()) return true;
  }
  std::abort();
}

bool strangerToVisitor(std::string_view input) {
  Pair pair(SOCK_STREAM);
  if (!input.empty()) sendAll(pair.far.get(), input);
  ::shutdown(pair.far.get(), SHUT_WR);
  const auto text = crypto::visit(pair.near.get(), key(), Purpose::kAgent, {0, 2, 1}, soon());
  require(!text.ok());
  requireOneLine(text.status().message());
  return true;
}

bool friends(std::string_view input) {
  std::array<std::uint8_t, 18> fields{};
  std::memcpy(fields.data(), input.data(), std::min(input.size(), fields.size()));
  const std::string said(input.substr(std::min(input.size(), fields.size())));
  crypto::Claim claim;
  std::uint16_t code = 0;
  std::memcpy(&claim.rank, fields.data(), 4);
  std::memcpy(&claim.size, fields.data() + 4, 4);
  std::memcpy(&claim.epoch, fields.data() + 8, 8);
  std::memcpy(&code, fields.data() + 16, 2);

  Pair pair(SOCK_STREAM);
  ListenerHandshake listener(key(), Purpose::kMeeting);
  require(listener.greet(pair.near.get()).ok());
  Result<std::string> heard = Status::internal("nothing");
  std::thread visitor(
      [&] { heard = crypto::visit(pair.far.get(), key(), Purpose::kMeeting, claim, soon()); });
  Result<bool> known = false;
  while (known.ok() && !known.value()) {
    pollfd waiting{pair.near.get(), POLLIN, 0};
    ::poll(&waiting, 1, 1000);
    known = listener.listen(pair.near.get());
  }
  require(known.ok());
  require(listener.claim().rank == claim.rank && listener.claim().size == claim.size &&
          listener.claim().epoch == claim.epoch);
  require(listener.conclude(pair.near.get(), static_cast<Code>(code), said).ok());
  visitor.join();
  const std::string cut = said.substr(0, crypto::kVerdictText);
  if (code == 0) {
    require(heard.ok() && *heard == cut);
  } else {
    require(!heard.ok());
    if (code <= static_cast<std::uint16_t>(Code::kInternal)) {
      require(heard.status().code() == static_cast<Code>(code) && heard.status().message() == cut);
    }
  }
  return true;
}

// The first byte of input: how many descriptors come with the rest.
bool packet(std::string_view input, bool part) {
  if (input.size() < 2) return false;
  const std::size_t count = std::min<std::size_t>(static_cast<unsigned char>(input.front()), 250);
  input.remove_prefix(1);
  Pair pair(SOCK_SEQPACKET);
  std::string bytes(input.substr(0, 4096));
  std::vector<int> fds(count, pair.far.get());
  alignas(cmsghdr) std::array<char, CMSG_SPACE(250 * sizeof(int))> control{};
  iovec vector{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
  }
  require(::sendmsg(pair.far.get(), &message, MSG_NOSIGNAL) > 0);
  if (!part) return bootstrap::meeting::receivePresentation(pair.near.get(), 1).ok();
  auto received = bootstrap::meeting::receivePart(pair.near.get());
  if (!received.ok()) return false;
  require(received->members.size() * 2 == count && received->first <= received->total &&
          received->members.size() <= received->total - received->first);
  return true;
}

// What was really sent, as an input of packet().
std::string taken(int fd, int descriptors) {
  std::array<char, 256> bytes{};
  const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);  // drops the descriptors
  require(got > 0);
  return choose(descriptors, {bytes.data(), static_cast<std::size_t>(got)});
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  Pair stream(SOCK_STREAM);
  require(ListenerHandshake(key(), Purpose::kAgent).greet(stream.near.get()).ok());
  crypto::Greeting greeting;
  require(::recv(stream.far.get(), greeting.data(), greeting.size(), MSG_WAITALL) ==
          static_cast<ssize_t>(greeting.size()));
  const std::string prologue(reinterpret_cast<const char*>(greeting.data()), 8);
  const std::string zeros(crypto::kHelloBytes - 8, '\0');
  all.push_back(choose(0, prologue + zeros));
  all.push_back(
      choose(1, prologue + std::string(crypto::kNonceBytes + crypto::kVerdictBytes, '\0')));
  all.push_back(choose(2, std::string(18, '\0') + "welcome"));
  all.push_back(choose(2, std::string(16, '\1') + std::string("\4\0", 2) + "no"));

  Pair packets(SOCK_SEQPACKET);
  const int fd = packets.near.get();
  require(bootstrap::meeting::sendPresentation(fd, 1, fd, fd, soon()).ok());
  all.push_back(choose(3, taken(packets.far.get(), 2)));
  std::vector<bootstrap::meeting::Member> table;
  for (int i = 0; i < 3; ++i) table.push_back({UniqueFd(::dup(fd)), UniqueFd(::dup(fd))});
  require(bootstrap::meeting::sendPart(fd, table, 1, 2, soon()).ok());
  all.push_back(choose(4, taken(packets.far.get(), 4)));
  return all;
}

bool run(std::string_view input) {
  if (input.empty()) return false;
  const char what = input.front();
  input.remove_prefix(1);
  switch (what) {
    case 0: return strangerToListener(input);
    case 1: return strangerToVisitor(input);
    case 2: return friends(input);
    default: return packet(input, what == 4);
  }
}

}  // namespace farandole::fuzz
