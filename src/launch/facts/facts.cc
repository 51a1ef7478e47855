#include "launch/facts/facts.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/within.h"
#include "launch/facts/fact_access.h"
#include "launch/facts/fact_items.h"

#ifndef FARANDOLE_VERSION
#define FARANDOLE_VERSION "unknown"
#endif

namespace farandole::launch::facts {
namespace {

using nlohmann::json;
constexpr Duration kItemTime = std::chrono::seconds(5);
constexpr std::size_t kLongestPath = 4096;

std::string currentFolder() {
  std::string buffer(kLongestPath, '\0');
  return ::getcwd(buffer.data(), buffer.size()) != nullptr ? std::string(buffer.c_str()) : "";
}

// All at once, each with the same time: the whole takes as long as one.
class Items {
 public:
  void add(std::string pointer, std::function<json()> work) {
    running_.emplace_back(std::move(pointer), Background<json>([work = std::move(work)] {
                            try {
                              return work();
                            } catch (const std::exception& error) {  // of std::filesystem
                              return json{{"error", error.what()}};
                            }
                          }));
  }
  void collect(json& into) {
    const Deadline deadline = Deadline::after(kItemTime);
    for (auto& [pointer, item] : running_) {
      auto value = item.wait(deadline);
      into[json::json_pointer(pointer)] = value ? std::move(*value) : json{{"timed_out", true}};
    }
  }

 private:
  std::vector<std::pair<std::string, Background<json>>> running_;
};

}  // namespace

double unixTime() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

json collectFacts(const FactsRequest& request) {
  const std::string folder = request.folder.empty() ? currentFolder() : request.folder;
  Items items;
  items.add("/machine", fact_items::machine);
  items.add("/interfaces", fact_items::interfaces);
  items.add("/container", fact_items::container);
  items.add("/limits", fact_items::limits);
  items.add("/memory", fact_items::memory);
  items.add("/cpus", fact_items::cpus);
  items.add("/ssh", fact_items::sshFolder);
  items.add("/devices", fact_items::devices);
  items.add("/surroundings", fact_items::surroundings);
  items.add("/locale", fact_items::locale);
  items.add("/python", [path = request.searchPath] { return fact_items::python(path); });
  items.add("/open_mpi", fact_items::openMpi);
  items.add("/folder", [folder] { return fact_items::folder(folder); });
  items.add("/cache", fact_items::cacheFolder);
  if (!request.script.empty()) {
    const std::string script =
        request.script.starts_with('/') ? request.script : folder + "/" + request.script;
    items.add("/script", [script] { return fact_items::script(script); });
  }
  items.add("/own_name", [] {
    char name[256] = {};
    ::gethostname(name, sizeof(name) - 1);
    return fact_items::resolved(name);
  });
  // One after the other: a name server that is asked hundreds of questions at once drops some.
  items.add("/names", [names = request.names] {
    json answers = json::object();
    const Deadline enough = Deadline::after(kItemTime - std::chrono::milliseconds(500));
    for (const std::string& name : names) {
      answers[name] = enough.passed() ? json{{"timed_out", true}} : fact_items::resolved(name);
    }
    return answers;
  });
  const char* connection = std::getenv("SSH_CONNECTION");
  const std::string_view words = connection == nullptr ? "" : connection;
  // ssh_client: where the launcher is, as this host sees it.
  json facts = {{"version", FARANDOLE_VERSION},
                {"ssh_client", std::string(words.substr(0, words.find(' ')))}};
  items.collect(facts);
  facts["time"] = unixTime();  // last, so that the reader may compare it with the arrival
  return facts;
}

std::vector<std::string> ownAddresses() {
  std::vector<std::string> addresses = linkAddresses({{"interfaces", fact_items::interfaces()}});
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

}  // namespace farandole::launch::facts
