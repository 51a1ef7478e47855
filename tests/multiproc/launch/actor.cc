// A rank that plays a part of the library's: it talks to the agent, and nothing more.
//   actor init          joins and reports "initialised"
//   actor join          enters init and waits there for all others
//   actor wait TEXT     initialises, reports TEXT and waits to be ended
//   actor size N        enters init in the belief that the job has N ranks
//   actor forget        overwrites its environment and waits to be ended
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bootstrap/agent_client.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// As programs do that show their state in the list of processes.
int forgetEnvironment() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::memset(*entry, 0, std::strlen(*entry));
  }
  ::setsid();
  std::printf("pid %d\n", static_cast<int>(::getpid()));
  std::fflush(stdout);
  ::sleep(60);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using farandole::Deadline;
  const std::string part = argc > 1 ? argv[1] : "";
  const std::string text = argc > 2 ? argv[2] : "";
  if (part == "forget") return forgetEnvironment();
  const int rank = std::atoi(variable("FARANDOLE_RANK").c_str());
  const int given = std::atoi(variable("FARANDOLE_SIZE").c_str());
  const int size = part == "size" ? std::atoi(text.c_str()) : given;
  auto client = farandole::bootstrap::AgentClient::connect(
      variable("FARANDOLE_AGENT"), variable("FARANDOLE_JOB"), variable("FARANDOLE_SECRET"), rank,
      size, Deadline::after(std::chrono::seconds(30)));
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().message().c_str());
    return 1;
  }
  const auto fence = (*client)->fence("init", size, Deadline::after(std::chrono::seconds(30)));
  if (!fence.ok()) {
    std::fprintf(stderr, "%s\n", fence.message().c_str());
    return 1;
  }
  (*client)->report("initialised size=" + std::to_string(size));
  if (part == "wait") {
    (*client)->report(text);
    // Answered behind the report: once this rank says that it waits, the agent knows what for.
    const auto heard = (*client)->put("heard of " + std::to_string(rank), "",
                                      Deadline::after(std::chrono::seconds(30)));
    if (!heard.ok()) {
      std::fprintf(stderr, "%s\n", heard.message().c_str());
      return 1;
    }
    std::printf("waiting\n");
    std::fflush(stdout);
    ::sleep(60);
  }
  (*client)->report("shut down");
  return 0;
}
