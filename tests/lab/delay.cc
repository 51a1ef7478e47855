// lab_delay A B MICROSECONDS: carries Ethernet frames between the interfaces A and B, each way so
// much later. For kernels without netem; tools/lab delay puts it between a host and the switch.
//
// Frames keep their offload header, so that large segments stay large and unfinished checksums are
// finished by whoever would have done it anyway.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace farandole::test {
namespace {

using Clock = std::chrono::steady_clock;
// struct virtio_net_hdr, whose header file is not C++.
constexpr std::size_t kOffloadHeader = 10;
constexpr std::size_t kLargestFrame = kOffloadHeader + 65536 + 256;
// As a switch would: what does not fit is lost.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

// One direction.
struct Way {
  int from;
  int to;
  std::deque<Frame> frames = {};
  std::size_t bytes = 0;
};

UniqueFd openInterface(const char* name) {
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  const int room = 32 << 20;
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(name));
  // Without PACKET_IGNORE_OUTGOING everything sent would come back.
  if (!fd || address.sll_ifindex == 0 ||
      ::setsockopt(fd.get(), SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)) != 0 ||
      ::setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    std::fprintf(stderr, "lab_delay: %s: %s\n", name, std::strerror(errno));
    return UniqueFd();
  }
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
  return fd;
}

void take(Way& way, Clock::duration delay) {
  static std::vector<char> buffer(kLargestFrame);
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = ::recv(way.from, buffer.data(), buffer.size(), MSG_TRUNC);
    if (n <= 0) return;
    const auto size = static_cast<std::size_t>(n);
    if (size > buffer.size() || way.bytes + size > kMostBytes) continue;
    way.bytes += size;
    way.frames.push_back({Clock::now() + delay, {buffer.begin(), buffer.begin() + n}});
  }
}

void give(Way& way) {
  const auto now = Clock::now();
  while (!way.frames.empty() && way.frames.front().due <= now) {
    const auto& bytes = way.frames.front().bytes;
    // A link that is down or full loses frames.
    (void)!::send(way.to, bytes.data(), bytes.size(), 0);
    way.bytes -= bytes.size();
    way.frames.pop_front();
  }
}

[[noreturn]] void carry(Way& there, Way& back, Clock::duration delay) {
  pollfd items[] = {{there.from, POLLIN, 0}, {back.from, POLLIN, 0}};
  while (true) {
    auto next = Clock::time_point::max();
    for (const Way* way : {&there, &back}) {
      if (!way->frames.empty()) next = std::min(next, way->frames.front().due);
    }
    timespec wait{};
    if (next != Clock::time_point::max()) {
      const auto left = std::max(Clock::duration::zero(), next - Clock::now());
      const auto ns = std::chrono::nanoseconds(left).count();
      wait = {ns / 1'000'000'000, ns % 1'000'000'000};
    }
    ::ppoll(items, 2, next == Clock::time_point::max() ? nullptr : &wait, nullptr);
    take(there, delay);
    take(back, delay);
    give(there);
    give(back);
  }
}

int run(int count, char** words) {
  long long delay = -1;
  if (count == 4) {
    const std::string_view text = words[3];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), delay);
    if (error != std::errc() || end != text.data() + text.size()) delay = -1;
  }
  if (delay < 0 || delay > 10'000'000) {
    std::fputs("usage: lab_delay INTERFACE INTERFACE MICROSECONDS\n", stderr);
    return 2;
  }
  const UniqueFd a = openInterface(words[1]);
  const UniqueFd b = openInterface(words[2]);
  if (!a || !b) return 1;
  ::prctl(PR_SET_TIMERSLACK, 1);
  std::puts("ready");
  std::fflush(stdout);
  Way there{a.get(), b.get()};
  Way back{b.get(), a.get()};
  carry(there, back, std::chrono::microseconds(delay));
}

}  // namespace
}  // namespace farandole::test

int main(int argc, char** argv) { return farandole::test::run(argc, argv); }
