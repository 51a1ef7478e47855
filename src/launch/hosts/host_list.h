// HostList: gathers hosts in the order they come in, each once. One user, name and port make one
// host.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "launch/hosts/host_spec.h"

namespace farandole::launch::hosts {

class HostList {
 public:
  struct Clash {
    HostSpec host;  // with the slots of both mentions together
    int firstLine;
  };

  // A host that is repeated without slots, having had none before, gets one slot for each mention,
  // as with Open MPI. If slots were given, it is not known what two mentions mean: nothing is
  // added and the clash returned. `line` is only remembered.
  std::optional<Clash> add(HostSpec host, int line = 0);

  // Adds to a host's slots, however often it comes: for lists with one line per slot.
  void addSlots(HostSpec host, int slots);

  // Ok while there are not too many hosts, nor too many slots on one.
  Status check() const;

  std::vector<HostSpec> take() { return std::move(hosts_); }

 private:
  struct Entry {
    std::size_t index;
    int line;
    bool counted;  // slots are the number of mentions
  };

  std::vector<HostSpec> hosts_;
  std::unordered_map<std::string, Entry> entries_;  // by user, name and port
  bool tooManySlots_ = false;
};

}  // namespace farandole::launch::hosts
