#include "launch/doctor/doctor_hosts.h"

#include <unistd.h>

// The only place that knows where host lists are parsed.
#if __has_include("launch/hosts/host_file.h")
#include "launch/hosts/host_file.h"
#include "launch/hosts/host_spec.h"
#else
#include <cstdlib>
#include <fstream>
#include <sstream>
#endif

namespace farandole {
namespace {

#if !__has_include("launch/hosts/host_file.h")
struct HostSpec {
  std::string name;
  std::string user;
  int port = 0;
  int slots = 0;
};

// NAME[:SLOTS], separated by commas or white space.
Result<std::vector<HostSpec>> parseHosts(std::string list) {
  for (char& c : list) c = c == ',' ? ' ' : c;
  std::istringstream words(list);
  std::vector<HostSpec> hosts;
  for (std::string word; words >> word;) {
    const auto colon = word.find(':');
    HostSpec host;
    host.name = word.substr(0, colon);
    if (colon != std::string::npos) host.slots = std::atoi(word.c_str() + colon + 1);
    if (const auto at = host.name.find('@'); at != std::string::npos) {
      host.user = host.name.substr(0, at);
      host.name.erase(0, at + 1);
    }
    hosts.push_back(host);
  }
  if (hosts.empty()) return Status::invalid("-H names no host");
  return hosts;
}

Result<std::vector<HostSpec>> readHostFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Status::invalid(path + ": cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  return parseHosts(text.str());
}
#endif

}  // namespace

bool meansThisMachine(const std::string& name, int port) {
  if (port != 0) return false;
  char own[256] = {};
  ::gethostname(own, sizeof(own) - 1);
  return name == "localhost" || name == "::1" || name.starts_with("127.") || name == own;
}

Result<std::vector<DoctorHost>> doctorHosts(const std::string& list, const std::string& file) {
  if (list.empty() && file.empty()) return std::vector<DoctorHost>{{"localhost", "", 0, 0, true}};
  if (!list.empty() && !file.empty()) {
    return Status::invalid("-H and --hostfile are both given: leave one out");
  }
  auto specs = list.empty() ? readHostFile(file) : parseHosts(list);
  if (!specs.ok()) return specs.status();
  std::vector<DoctorHost> hosts;
  for (const auto& spec : *specs) {
    hosts.push_back(
        {spec.name, spec.user, spec.port, spec.slots, meansThisMachine(spec.name, spec.port)});
  }
  return hosts;
}

}  // namespace farandole
