// Gloo as a benchmark's contender: its own allreduce over TCP. On one machine on the loopback
// interface, started once per rank by the driver: peer_gloo RANK SIZE. On several, started by
// `farandole run`, on the address from which the driver is reached.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "peer_wire.h"

namespace {

using ContextPtr = std::shared_ptr<gloo::rendezvous::Context>;

// Where ranks find each other: every rank writes one value after the other, under keys that end in
// its number, and the driver hands all ranks' values to everybody.
class DriverStore : public gloo::rendezvous::Store {
 public:
  DriverStore(bench_wire* wire, int rank) : wire_(wire), rank_(rank) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const std::string mine = std::to_string(rank_);
    if (key.size() < mine.size() || key.substr(key.size() - mine.size()) != mine) {
      throw std::runtime_error("unexpected key " + key);
    }
    const std::string stem = key.substr(0, key.size() - mine.size());
    std::string offer = "offer ";
    for (const char c : data) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(c));
      offer += hex;
    }
    char line[BENCH_LINE_BYTES];
    if (bench_say(wire_, offer.c_str()) != 0 || !bench_hear(wire_, line)) {
      throw std::runtime_error("the driver has gone");
    }
    std::istringstream in(line);
    std::string word;
    in >> word;
    for (int rank = 0; in >> word; ++rank) {
      std::vector<char>& value = values_[stem + std::to_string(rank)];
      for (std::size_t i = 0; i + 1 < word.size(); i += 2) {
        value.push_back(static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16)));
      }
    }
  }

  std::vector<char> get(const std::string& key) override { return values_.at(key); }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

 private:
  bench_wire* wire_;
  int rank_;
  std::map<std::string, std::vector<char>> values_;
};

// The address from which the driver is reached; that of the loopback if it is reached by a unix
// socket.
std::string ownAddress(const bench_wire& wire) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  char text[80] = "";
  if (getsockname(wire.fd, reinterpret_cast<sockaddr*>(&own), &length) != 0 ||
      own.ss_family == AF_UNIX ||
      getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "127.0.0.1";
  }
  return text;
}

class Peer {
 public:
  Peer(int rank, int size, bench_wire* wire)
      : rank_(rank),
        size_(size),
        context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = ownAddress(*wire);
    DriverStore store(wire, rank);
    context_->setTimeout(std::chrono::seconds(60));
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context_->connectFullMesh(store, device);
  }

  std::string run(const bench_peer_job& job) {
    if (std::string(job.work) != "allreduce" || std::string(job.dtype) != "float32") {
      return "error this peer does float32 allreduce";
    }
    data_.resize(std::max<std::size_t>(1, job.bytes / sizeof(float)));
    if (job.check) {
      bench_fill(data_.data(), data_.size(), rank_);
      allreduce();
      const long long wrong = bench_verify(data_.data(), data_.size(), size_);
      if (wrong >= 0) return "error wrong result at element " + std::to_string(wrong);
    }
    std::fill(data_.begin(), data_.end(), 0.0f);
    for (int i = 0; i < job.warmup; ++i) allreduce();
    gloo::BarrierOptions barrier(context_);
    gloo::barrier(barrier);
    const double begin = bench_now();
    for (int i = 0; i < job.iterations; ++i) allreduce();
    char text[64];
    std::snprintf(text, sizeof text, "done %.9e", (bench_now() - begin) / job.iterations);
    return text;
  }

 private:
  void allreduce() {
    gloo::AllreduceOptions options(context_);
    options.setOutput(data_.data(), data_.size());
    options.setReduceFunction([](void* to, const void* a, const void* b, std::size_t n) {
      gloo::sum<float>(to, a, b, n);
    });
    gloo::allreduce(options);
  }

  int rank_;
  int size_;
  ContextPtr context_;
  std::vector<float> data_;
};

int serve(int rank, int size) {
  bench_wire wire;
  if (bench_connect(&wire, rank, size) != 0) return 2;
  Peer peer(rank, size, &wire);
  bench_pin(rank);
  bench_say(&wire, "ready");
  char line[BENCH_LINE_BYTES];
  while (bench_hear(&wire, line)) {
    bench_peer_job job;
    const std::string answer = bench_parse(line, &job) ? peer.run(job) : "error unknown command";
    if (bench_say(&wire, answer.c_str()) != 0) break;
  }
  return 0;
}

int number(const char* text) { return text == nullptr ? -1 : std::atoi(text); }

}  // namespace

int main(int argc, char** argv) {
  const int rank = number(argc == 3 ? argv[1] : std::getenv("RANK"));
  const int size = number(argc == 3 ? argv[2] : std::getenv("WORLD_SIZE"));
  if (rank < 0 || size < 1 || rank >= size) {
    std::fprintf(stderr,
                 "this program is started by `farandole bench collective --against gloo`\n");
    return 2;
  }
  try {
    return serve(rank, size);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "peer_gloo: %s\n", e.what());
    return 1;
  }
}
