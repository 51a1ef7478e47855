#include "init/cluster_spec.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace farandole::init {
namespace {

constexpr int kMostSlots = 4096;
constexpr std::size_t kMostWorkers = 1024;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

bool isAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool onlyOf(std::string_view text, std::string_view besidesAlnum) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return isAlnum(c) || besidesAlnum.find(c) != std::string_view::npos;
  });
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Result<int> parseSlots(std::string_view of, std::string_view text) {
  const auto value = number(text);
  if (value && *value >= 1 && *value <= kMostSlots) return *value;
  return Status::invalid("the number of ranks of " + quoted(of) + " must be 1 to " +
                         std::to_string(kMostSlots) + ", not " + quoted(text) +
                         "; a worker is written NAME[:RANKS][@ADDRESS[:PORT]]");
}

Status checkAddress(std::string_view worker, std::string_view text) {
  const std::string what = "address of worker " + quoted(worker);
  if (text.find(':') == std::string_view::npos) return checkHost(what, text);
  if (text.size() <= 45 && text.find_first_not_of("0123456789abcdefABCDEF:.") == text.npos) {
    return {};
  }
  return Status::invalid("the " + what + " is no IPv6 address: " + quoted(text));
}

// "ADDRESS[:PORT]", an IPv6 address in brackets.
Status parseAddress(std::string_view text, Worker& worker) {
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) {
      return Status::invalid("worker " + quoted(worker.name) + ": ']' is missing in " +
                             quoted(text));
    }
    port = text.substr(close + 1);
    text = text.substr(1, close - 1);
    if (!port.empty() && port[0] != ':') {
      return Status::invalid("worker " + quoted(worker.name) + ": " + quoted(port) +
                             " after ']' should be :PORT");
    }
    if (!port.empty())
      port.remove_prefix(1);
    else
      port = {};
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos) {
      return Status::invalid("worker " + quoted(worker.name) + ": an IPv6 address stands in [ ]: " +
                             worker.name + "@[" + std::string(text) + "]");
    }
    port = text.substr(colon + 1);
    text = text.substr(0, colon);
    if (port.empty()) {
      return Status::invalid("worker " + quoted(worker.name) + ": no port after ':'");
    }
  }
  FARANDOLE_RETURN_IF_ERROR(checkAddress(worker.name, text));
  worker.address = text;
  if (port.empty()) return {};
  auto value = parsePort("the port of worker " + quoted(worker.name), port);
  if (!value.ok()) return value.status();
  worker.port = *value;
  return {};
}

Result<Worker> parseWorker(std::string_view text, int defaultPort) {
  Worker worker;
  worker.port = defaultPort;
  const auto at = text.find('@');
  std::string_view name = text.substr(0, at);
  std::string_view slots;
  const auto colon = name.find(':');
  if (colon != std::string_view::npos) {
    slots = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  FARANDOLE_RETURN_IF_ERROR(checkHost("name of a worker", name));
  worker.name = name;
  worker.address = name;
  if (lower(worker.name) == "launcher" || lower(worker.name) == "localhost") {
    return Status::invalid("a worker cannot be called " + quoted(name) + "; write for example w1@" +
                           std::string(name));
  }
  if (colon != std::string_view::npos) {
    auto value = parseSlots(name, slots);
    if (!value.ok()) return value.status();
    worker.slots = *value;
  }
  if (at != std::string_view::npos) {
    FARANDOLE_RETURN_IF_ERROR(parseAddress(text.substr(at + 1), worker));
  }
  return worker;
}

}  // namespace

Result<std::vector<Worker>> parseWorkers(std::string_view text, int defaultPort) {
  std::vector<Worker> workers;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    if (one.empty()) {
      return Status::invalid("--workers has an empty name; type for example: --workers a:2,b:2");
    }
    auto worker = parseWorker(one, defaultPort);
    if (!worker.ok()) return worker.status();
    for (const Worker& other : workers) {
      if (lower(other.name) == lower(worker->name)) {
        return Status::invalid("two workers are called " + quoted(worker->name) +
                               "; for more ranks on one machine write " + worker->name + ":2");
      }
      if (lower(other.address) == lower(worker->address) && other.port == worker->port) {
        return Status::invalid("workers " + quoted(other.name) + " and " + quoted(worker->name) +
                               " are both at " + worker->address + " port " +
                               std::to_string(worker->port) + "; give one of them another port");
      }
    }
    workers.push_back(std::move(*worker));
    if (workers.size() > kMostWorkers) {
      return Status::invalid("at most " + std::to_string(kMostWorkers) + " workers can be set up");
    }
    if (comma == std::string_view::npos) return workers;
    text.remove_prefix(comma + 1);
  }
}

Status parseLauncher(std::string_view text, ClusterSpec& spec) {
  const auto colon = text.find(':');
  FARANDOLE_RETURN_IF_ERROR(checkHost("launcher's host name", text.substr(0, colon)));
  spec.launcher = text.substr(0, colon);
  if (colon == std::string_view::npos) return {};
  auto slots = parseSlots(spec.launcher, text.substr(colon + 1));
  if (!slots.ok()) return slots.status();
  spec.launcherSlots = *slots;
  return {};
}

Status checkHost(std::string_view what, std::string_view text) {
  std::string wrong;
  if (text.empty()) {
    wrong = "is empty";
  } else if (text[0] == '-') {
    wrong = "begins with '-', ssh would take it for an option: " + quoted(text);
  } else if (!isAlnum(text[0]) || !onlyOf(text, "._-")) {
    wrong = "has other signs than letters, digits, '.', '_' and '-': " + quoted(text);
  } else if (text.size() > 253) {
    wrong = "has " + std::to_string(text.size()) + " letters, at most 253 are possible";
  }
  return wrong.empty() ? Status() : Status::invalid("the " + std::string(what) + " " + wrong);
}

Status checkUser(std::string_view text) {
  if (!text.empty() && text.size() <= 32 && (isAlnum(text[0]) || text[0] == '_') &&
      onlyOf(text, "._-")) {
    return {};
  }
  return Status::invalid("--user must be a user's name such as dev, not " + quoted(text));
}

Status checkImage(std::string_view text) {
  if (!text.empty() && text.size() <= 512 && isAlnum(text[0]) && onlyOf(text, "._-/:@")) return {};
  return Status::invalid("--image must be an image's name such as me/train:1.0, not " +
                         quoted(text));
}

Status checkInterface(std::string_view text) {
  if (!text.empty() && text.size() <= 15 && isAlnum(text[0]) && onlyOf(text, "._-@")) return {};
  return Status::invalid("--iface must be a network interface such as eth0, not " + quoted(text));
}

Status checkShmSize(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && std::string_view("bkmg").find(digits.back()) != std::string_view::npos) {
    digits.remove_suffix(1);
  }
  const auto value = number(digits);
  if (value && *value > 0) return {};
  return Status::invalid("--shm-size must be a size such as 8g or 512m, not " + quoted(text));
}

Status checkPath(std::string_view what, std::string_view text) {
  if (text.empty() || text[0] != '/') {
    return Status::invalid(std::string(what) + " must be an absolute path, not " + quoted(text));
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= ' ' && c != 127 &&
        std::string_view("\"'\\$`,:").find(c) == std::string_view::npos) {
      continue;
    }
    return Status::invalid(std::string(what) + " " + quoted(text) +
                           " has a sign that ssh or the container runtime cannot carry in a path "
                           "(quotes, \\, $, comma, colon, control signs); use another folder");
  }
  return {};
}

Result<int> parsePort(std::string_view what, std::string_view text) {
  const auto value = number(text);
  if (value && *value >= 1 && *value <= 65535) return *value;
  return Status::invalid(std::string(what) + " must be a number from 1 to 65535, not " +
                         quoted(text));
}

std::string defaultSshFolder(const std::string& user) {
  return user == "root" ? "/root/.ssh" : "/home/" + user + "/.ssh";
}

std::string knownHostsName(const std::string& host, int port) {
  return port == 22 ? host : "[" + host + "]:" + std::to_string(port);
}

}  // namespace farandole::init
