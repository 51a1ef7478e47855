#include "launch/listening.h"

#include <cstdio>
#include <fstream>
#include <string>

namespace farandole {

bool isListening(int port) {
  constexpr int kListen = 0x0a;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the heading
    while (std::getline(file, line)) {
      // "  0: 0100007F:7148 00000000:0000 0A …": number, own address, other address, state.
      unsigned own = 0;
      unsigned state = 0;
      if (std::sscanf(line.c_str(), " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &own, &state) ==
              2 &&
          own == static_cast<unsigned>(port) && state == kListen) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace farandole
