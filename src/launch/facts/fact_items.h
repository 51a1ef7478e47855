// The parts of collectFacts; each may be slow or hang, and is called on a thread of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace farandole::launch::facts::fact_items {

nlohmann::json machine();       // names, boot, namespaces, user, kernel
nlohmann::json interfaces();    // with addresses, flags, MTU and kind
nlohmann::json container();     // whether, which, and whether it has a network of its own
nlohmann::json limits();        // memlock, open files, /dev/shm, seccomp
nlohmann::json memory();        // total, available, cgroup's limit
nlohmann::json cpus();          // allowed, cores, NUMA nodes, quota, cpuset
nlohmann::json sshFolder();     // ~/.ssh: owner, modes, keys
nlohmann::json devices();       // GPUs, by their device files
nlohmann::json surroundings();  // job systems and sidecars seen in the environment
nlohmann::json locale();
nlohmann::json python(const std::string& searchPath);  // the one that ranks find
nlohmann::json openMpi();
nlohmann::json folder(const std::string& path);  // exists, write test, free space
nlohmann::json cacheFolder();
nlohmann::json script(const std::string& path);  // SHA-256
nlohmann::json resolved(const std::string& name);

// Helpers the items share.
std::string variable(const char* name);  // of the environment; "" if unset
std::string octal(unsigned mode);
std::string homeFolder();  // of passwd, as ssh uses it; $HOME if there is no entry

}  // namespace farandole::launch::facts::fact_items
