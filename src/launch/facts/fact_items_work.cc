// The job's own things on a host: its folder, its script, its Python, its keys.
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/facts/fact_items.h"
#include "process/bounded_command.h"

namespace farandole::launch::facts::fact_items {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
constexpr Duration kCommandTime = std::chrono::seconds(4);

// Writes, syncs and removes a small file; the milliseconds it took, or the errno.
json writeTest(const std::string& path) {
  const auto begin = Clock::now();
  std::string name = path + "/.farandole-doctor-XXXXXX";
  UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return {{"writable", false}, {"error", std::strerror(errno)}};
  const std::array<char, 65536> block{};
  const bool written =
      ::write(fd.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size()) &&
      ::fsync(fd.get()) == 0;
  const int error = errno;
  ::unlink(name.c_str());
  if (!written) return {{"writable", false}, {"error", std::strerror(error)}};
  const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
  return {{"writable", true}, {"write_ms", took.count()}};
}

json fileFacts(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return nullptr;
  if (S_ISLNK(info.st_mode) && ::stat(path.c_str(), &info) != 0) return nullptr;
  return {{"path", path.string()}, {"mode", octal(info.st_mode)}, {"uid", info.st_uid}};
}

bool looksLikePrivateKey(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) &&
         readSmall(path.string()).substr(0, 64).find("PRIVATE KEY-----") != std::string::npos;
}

}  // namespace

json folder(const std::string& path) {
  json result = {{"path", path}};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    result["exists"] = false;
    return result;
  }
  result["exists"] = true;
  result.update(writeTest(path));
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) == 0) result["free"] = space.f_bavail * space.f_frsize;
  return result;
}

json cacheFolder() {
  const std::string named = variable("XDG_CACHE_HOME");
  const fs::path wanted =
      (named.empty() ? fs::path(homeFolder()) / ".cache" : fs::path(named)) / "farandole";
  // It is made when it is needed; until then its nearest ancestor tells whether it can be.
  std::error_code error;
  fs::path there = wanted;
  while (!there.empty() && there != "/" && !fs::is_directory(there, error)) {
    there = there.parent_path();
  }
  json result = folder(there.string());
  result["path"] = wanted.string();
  return result;
}

json script(const std::string& path) {
  json result = {{"path", path}};
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    result["error"] = fd ? "not a file" : std::strerror(errno);
    return result;
  }
  const std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> hash(::EVP_MD_CTX_new(),
                                                                       ::EVP_MD_CTX_free);
  ::EVP_DigestInit_ex(hash.get(), ::EVP_sha256(), nullptr);
  std::array<char, 65536> block;
  ssize_t got = 0;
  while ((got = ::read(fd.get(), block.data(), block.size())) > 0) {
    ::EVP_DigestUpdate(hash.get(), block.data(), static_cast<std::size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  ::EVP_DigestFinal_ex(hash.get(), digest.data(), &size);
  result["sha256"] = hexOf(std::span(digest).first(size));
  return result;
}

json python(const std::string& searchPath) {
  json result = json::object();
  const char* kQuestion =
      "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";
  // Without site packages: the question is which Python, not how long its imports take.
  std::vector<std::string> words{"python3", "-S", "-c", kQuestion};
  if (!searchPath.empty()) words.insert(words.begin(), {"env", "PATH=" + searchPath});
  const process::CommandEnd end = process::runBounded(words, Deadline::after(kCommandTime));
  if (!end.succeeded()) return result;
  const auto line = end.out.find('\n');
  result["version"] = end.out.substr(0, line);
  if (line != std::string::npos)
    result["executable"] = std::string(trimmed(end.out.substr(line + 1)));
  return result;
}

json openMpi() {
  const process::CommandEnd end =
      process::runBounded({"mpirun", "--version"}, Deadline::after(kCommandTime));
  if (!end.succeeded()) return {{"version", ""}};
  const auto at = end.out.find("(Open MPI) ");
  if (at == std::string::npos) {
    return {{"version", ""},
            {"other", std::string(trimmed(end.out.substr(0, end.out.find('\n'))))}};
  }
  const std::string rest = end.out.substr(at + 11);
  return {{"version", rest.substr(0, rest.find_first_of(" \n"))}};
}

json locale() {
  const locale_t made = ::newlocale(LC_ALL_MASK, "", nullptr);
  const bool valid = made != nullptr;
  if (valid) ::freelocale(made);
  std::string name = variable("LC_ALL");
  if (name.empty()) name = variable("LC_CTYPE");
  if (name.empty()) name = variable("LANG");
  return {{"name", name.empty() ? "C" : name}, {"valid", valid}};
}

json sshFolder() {
  const fs::path path = fs::path(homeFolder()) / ".ssh";
  json result = {{"path", path.string()}, {"uid", ::geteuid()}};
  result["folder"] = fileFacts(path);
  result["home"] = fileFacts(path.parent_path());
  result["config"] = fileFacts(path / "config");
  result["authorized_keys"] = fileFacts(path / "authorized_keys");
  result["writable"] = ::access(path.c_str(), W_OK) == 0;
  result["keys"] = json::array();
  std::error_code error;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (++files > 200) break;
    if (looksLikePrivateKey(entry.path())) result["keys"].push_back(fileFacts(entry.path()));
  }
  return result;
}

}  // namespace farandole::launch::facts::fact_items
