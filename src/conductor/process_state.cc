#include "conductor/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/fd.h"

namespace farandole {

char processState(pid_t pid) {
  const UniqueFd file(
      ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return '?';
  char text[512];
  const auto got = ::read(file.get(), text, sizeof text);
  if (got <= 0) return '?';
  // "pid (name) S …": the name may contain anything, so look for its last parenthesis.
  const std::string_view view(text, static_cast<std::size_t>(got));
  const auto end = view.rfind(')');
  return end == std::string_view::npos || end + 2 >= view.size() ? '?' : view[end + 2];
}

}  // namespace farandole
