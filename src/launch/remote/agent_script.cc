#include "launch/remote/agent_script.h"

#include "base/text.h"
#include "launch/remote/agent_wire.h"
#include "launch/remote/templates.h"
#include "launch/ssh/ssh_command.h"

namespace farandole::launch::remote {
namespace {

// A path that may stand in double quotes of the script. Another is none we would install to.
bool plainPath(const std::string& path) {
  return path.find_first_of("'\"$`\\!\n") == std::string::npos;
}

}  // namespace

std::string agentScript(const Tree& tree, PushMode push, std::size_t archiveBytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const std::string own = plainPath(tree.command) ? tree.command : "";
  const auto part = [&](std::string_view text) {
    return " " + fillTemplate(joinLines(text), {{"ID", tree.id},
                                                {"OWN", own},
                                                {"MISSING", std::string(kMissing)},
                                                {"UNSAFE", std::string(kUnsafe)},
                                                {"FAILED", std::string(kPushFailed)},
                                                {"NEED", std::string(kNeed)},
                                                {"DAMAGED", std::string(kDamaged)},
                                                {"PIECES", std::to_string(archiveBytes / kPiece)},
                                                {"PIECE", std::to_string(kPiece)},
                                                {"REST", std::to_string(archiveBytes % kPiece)}});
  };
  std::string script = launch::ssh::trustedPathFunction() + part(templates::kAgentInCache);
  if (push != PushMode::kAlways) script += part(templates::kAgentInstalled);
  return script +
         part(push == PushMode::kNever ? templates::kAgentMissing : templates::kAgentPushed);
}

}  // namespace farandole::launch::remote
