// Who the host is, and whether it is a container.
#include <net/if.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "launch/facts/fact_items.h"

namespace farandole::launch::facts::fact_items {

using nlohmann::json;
namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string octal(unsigned mode) {
  char text[16];
  std::snprintf(text, sizeof(text), "%04o", mode & 07777U);
  return text;
}

namespace {

struct User {
  bool known = false;
  std::string name;
  std::string home;
};

User userOf(uid_t uid) {
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return {};
  return {true, found->pw_name, found->pw_dir};
}

std::uint64_t namespaceOf(const char* kind) {
  struct stat info {};
  const std::string path = std::string("/proc/self/ns/") + kind;
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::string containerKind(std::string& evidence) {
  const struct {
    bool holds;
    const char* kind;
    const char* evidence;
  } kSigns[] = {
      {!variable("KUBERNETES_SERVICE_HOST").empty(), "kubernetes", "KUBERNETES_SERVICE_HOST"},
      {fs::exists("/.dockerenv"), "docker", "/.dockerenv"},
      {fs::exists("/run/.containerenv"), "podman", "/run/.containerenv"},
  };
  for (const auto& sign : kSigns) {
    if (!sign.holds) continue;
    evidence = sign.evidence;
    return sign.kind;
  }
  const std::string groups = readSmall("/proc/1/cgroup");
  for (const char* word : {"kubepods", "docker", "containerd", "libpod", "lxc"}) {
    if (groups.find(word) == std::string::npos) continue;
    evidence = std::string("/proc/1/cgroup: ") + word;
    return word == std::string("kubepods") ? "kubernetes" : word;
  }
  return "none";
}

// The machine's own cards, or bridges that only the machine's own network has.
bool seesHostNetwork() {
  // Not a listing of /sys, which may be another network namespace's.
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> list(
      ::if_nameindex(), ::if_freenameindex);
  for (const struct if_nameindex* one = list.get(); one != nullptr && one->if_name != nullptr;
       ++one) {
    const std::string name = one->if_name;
    const fs::path folder = fs::path("/sys/class/net") / name;
    if (fs::exists(folder / "device") || fs::exists(folder / "bridge")) return true;
    if (name.starts_with("docker") || name.starts_with("veth")) return true;
  }
  return false;
}

}  // namespace

std::string homeFolder() {
  const User user = userOf(::geteuid());
  return user.known ? user.home : variable("HOME");
}

json machine() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  utsname kernel{};
  ::uname(&kernel);
  const User user = userOf(::geteuid());
  return {{"hostname", name},
          {"boot_id", std::string(trimmed(readSmall("/proc/sys/kernel/random/boot_id")))},
          {"net_ns", namespaceOf("net")},
          {"pid_ns", namespaceOf("pid")},
          {"ipc_ns", namespaceOf("ipc")},
          {"kernel", kernel.release},
          {"arch", kernel.machine},
          {"uid", ::geteuid()},
          {"user", user.name},
          {"in_passwd", user.known}};
}

json container() {
  std::string evidence;
  const std::string kind = containerKind(evidence);
  std::string network = "host";
  if (kind != "none" && !seesHostNetwork()) network = "own";
  return {{"kind", kind}, {"evidence", evidence}, {"network", network}};
}

}  // namespace farandole::launch::facts::fact_items
