// Gloo as a benchmark's contender: its own allreduce over TCP on the loopback interface.
// Started once per rank by the driver: peer_gloo RANK SIZE RENDEZVOUS_DIRECTORY.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "peer_wire.h"

namespace {

using ContextPtr = std::shared_ptr<gloo::rendezvous::Context>;

class Peer {
 public:
  Peer(int rank, int size, const std::string& directory)
      : rank_(rank),
        size_(size),
        context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(directory);
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

int serve(int rank, int size, const std::string& directory) {
  Peer peer(rank, size, directory);
  bench_wire wire;
  if (bench_connect(&wire, rank, size) != 0) return 2;
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr,
                 "this program is started by `farandole bench collective --against gloo`\n");
    return 2;
  }
  try {
    return serve(std::atoi(argv[1]), std::atoi(argv[2]), argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "peer_gloo: %s\n", e.what());
    return 1;
  }
}
