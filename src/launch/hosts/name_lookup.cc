#include "launch/hosts/name_lookup.h"

#include <netdb.h>

#include <cstring>
#include <memory>

#include "base/within.h"

namespace farandole::launch::hosts {
namespace {

NameAnswer ask(const std::string& name, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  NameAnswer answer;
  answer.error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (answer.error != 0) return answer;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    NameAddress address;
    address.size = entry->ai_addrlen;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    char text[NI_MAXHOST] = {};
    ::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST);
    address.text = text;
    answer.addresses.push_back(std::move(address));
  }
  return answer;
}

}  // namespace

std::optional<NameAnswer> lookUpName(const std::string& name, int port, Deadline deadline) {
  if (NameAnswer numbers = ask(name, port, AI_NUMERICHOST); numbers.error == 0) return numbers;
  Background<NameAnswer> resolver([name, port] { return ask(name, port, 0); });
  return resolver.wait(deadline);
}

std::string numericAddress(const std::string& name) {
  if (name.empty()) return "";
  const auto found = lookUpName(name, 0, Deadline::after(kNameTime));
  return found && !found->addresses.empty() ? found->addresses.front().text : "";
}

}  // namespace farandole::launch::hosts
