#include "launch/remote/agent_command.h"

#include <cstdio>
#include <filesystem>

#include "base/fd.h"
#include "launch/remote/agent.h"
#include "launch/remote/pushed_tree.h"
#include "launch/remote/tree.h"
#include "process/command_lookup.h"

namespace farandole::launch::remote {

int agentMain(const std::vector<std::string>& words) {
  const std::string root = std::filesystem::path(process::ownProgram()).parent_path().parent_path();
  if (words.size() == 2 && words[1] == "--id") {
    std::puts(treeId().c_str());
    return 0;
  }
  if (words.size() == 3 && (words[1] == "--check" || words[1] == "--adopt")) {
    const Status status =
        words[1] == "--check" ? checkPushedTree(root, words[2]) : adoptPushedTree(root, words[2]);
    if (!status.ok()) std::puts(status.message().c_str());
    return status.ok() ? 0 : 1;
  }
  if (words.size() > 1) {
    std::fputs("farandole agent: takes no arguments: the launcher starts it\n", stderr);
    return 2;
  }
  const UniqueFd held = holdPushedTree(root);
  return Agent().run();
}

}  // namespace farandole::launch::remote
