// A rank that uses the bootstrap as the library does, for ranks on different machines.
//   relay_actor meet        puts a value, meets all others, reads everybody's value
//   relay_actor wait RANK   meets all; then that rank sleeps, and the others wait for it
//   relay_actor many N      N values each way between neighbours, N fences
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bootstrap/agent_client.h"

namespace {

using farandole::Deadline;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Deadline soon() { return Deadline::after(std::chrono::seconds(30)); }

int fail(const farandole::Status& status) {
  std::printf("failed: %s\n", status.message().c_str());
  std::fflush(stdout);
  return 9;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  const int rank = std::atoi(variable("FARANDOLE_RANK").c_str());
  const int size = std::atoi(variable("FARANDOLE_SIZE").c_str());
  auto client = farandole::bootstrap::AgentClient::connect(
      variable("FARANDOLE_AGENT"), variable("FARANDOLE_JOB"), variable("FARANDOLE_SECRET"), rank,
      size, soon());
  if (!client.ok()) return fail(client.status());
  auto& bootstrap = **client;
  const auto name = [](int of, int round) {
    return "value/" + std::to_string(of) + "/" + std::to_string(round);
  };
  // Larger than a pipe takes at once, and different for each rank.
  const auto value = [](int of) {
    return std::string(100000, static_cast<char>('a' + of)) + std::to_string(of);
  };
  if (const auto put = bootstrap.put(name(rank, 0), value(rank), soon()); !put.ok()) {
    return fail(put);
  }
  if (const auto met = bootstrap.fence("init", size, soon()); !met.ok()) return fail(met);
  bootstrap.report("initialised size=" + std::to_string(size));
  for (int other = 0; other < size; ++other) {
    auto got = bootstrap.get(name(other, 0), soon());
    if (!got.ok()) return fail(got.status());
    if (*got != value(other)) return fail(farandole::Status::internal("a wrong value"));
  }
  for (int round = 1; part == "many" && round <= number; ++round) {
    const std::string text = std::to_string(rank * 1000 + round);
    if (const auto put = bootstrap.put(name(rank, round), text, soon()); !put.ok())
      return fail(put);
    const int other = (rank + 1) % size;
    auto got = bootstrap.get(name(other, round), soon());
    if (!got.ok()) return fail(got.status());
    if (*got != std::to_string(other * 1000 + round)) return 8;
    const auto met = bootstrap.fence("round" + std::to_string(round), size, soon());
    if (!met.ok()) return fail(met);
  }
  std::printf("met pid %d\n", ::getpid());
  std::fflush(stdout);
  if (part == "wait") {
    if (rank == number) {
      ::sleep(60);
      return 0;
    }
    // The launcher asks us to end at the same moment; what the bootstrap says is the question here.
    ::signal(SIGTERM, SIG_IGN);
    bootstrap.report("waiting for the gradient of layer " + std::to_string(rank));
    const auto begin = farandole::Clock::now();
    const auto met = bootstrap.fence("never", size, soon());
    const std::chrono::duration<double> waited = farandole::Clock::now() - begin;
    std::printf("waited %.1f s\n", waited.count());
    return met.ok() ? 0 : fail(met);
  }
  bootstrap.report("shut down");
  return 0;
}
