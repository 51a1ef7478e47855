#include "lab/lab.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "paths.h"

namespace farandole::test {
namespace {

using std::chrono::milliseconds;
constexpr const char* kPrefix = "farandole-lab-test.";

Words toolWords(const std::string& name, const std::string& command, const Words& words) {
  Words all{command, "--name", name};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// test.<pid>.<number>: the pid tells whether whoever made it can still end it.
std::string uniqueName() {
  static std::atomic<int> count = 0;
  return "test." + std::to_string(::getpid()) + "." + std::to_string(++count);
}

// Laboratories of tests that were killed.
void endLeftovers() {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(kPrefix)) continue;
    const int owner = std::atoi(file.c_str() + std::string(kPrefix).size());
    if (owner <= 0 || owner == ::getpid() || ::kill(owner, 0) == 0) continue;
    Command({"down", "--dir", entry.path().string()}, ofTool()).finish();
  }
}

}  // namespace

bool canHaveLab() { return ::geteuid() == 0; }

Command::Options ofTool(Command::Options options) {
  options.program = test::paths::kLabTool;
  return options;
}

pid_t LabProcess::pid() const {
  const std::string carrier = std::to_string(command_.pid());
  std::ifstream file("/proc/" + carrier + "/task/" + carrier + "/children");
  pid_t child = -1;
  file >> child;
  return file ? child : -1;
}

void LabProcess::signal(int number) const {
  const pid_t child = pid();
  ASSERT_GT(child, 0) << "the command has ended, or has not begun";
  ASSERT_EQ(::kill(child, number), 0);
}

Lab::Lab(const Options& options) : name_(options.name.empty() ? uniqueName() : options.name) {
  endLeftovers();
  Words words{"--hosts", std::to_string(options.hosts)};
  words.insert(words.end(), options.more.begin(), options.more.end());
  up_ = tool("up", words);
  if (options.expectUp) {
    EXPECT_EQ(up_.code, 0) << up_.err;
  }
}

Lab::~Lab() {
  // Whoever found the name taken did not make it.
  if (up_.code != 0) return;
  const Outcome down = tool("down");
  EXPECT_EQ(down.code, 0) << down.err;
}

Outcome Lab::tool(const std::string& command, const Words& words) const {
  return Command(toolWords(name_, command, words), ofTool()).finish();
}

std::string Lab::must(const std::string& command, const Words& words) const {
  const Outcome outcome = tool(command, words);
  EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
  return outcome.out;
}

void Lab::delay(const std::string& host, double ms) const {
  must("delay", {host, ms > 0 ? std::to_string(ms).substr(0, 5) : "off", test::paths::kLabDelay});
}

std::unique_ptr<LabProcess> Lab::start(const std::string& host, const Words& words,
                                       const Command::Options& options) const {
  Words all{host, "--"};
  all.insert(all.end(), words.begin(), words.end());
  return std::make_unique<LabProcess>(toolWords(name_, "exec", all), options);
}

Outcome Lab::run(const std::string& host, const Words& words,
                 const Command::Options& options) const {
  return start(host, words, options)->finish();
}

Outcome Lab::run(const std::string& host, const Words& words, milliseconds limit) const {
  Command::Options options;
  options.patience = limit;
  return run(host, words, options);
}

Outcome Lab::shell(const std::string& host, const std::string& script) const {
  return run(host, {"sh", "-c", script});
}

Outcome Lab::ssh(const std::string& from, const Words& words) const {
  Words all{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=2"};
  all.insert(all.end(), words.begin(), words.end());
  return run(from, all);
}

bool Lab::reaches(const std::string& from, const std::string& to) const {
  return run(from, {"ping", "-c1", "-W1", to}).code == 0;
}

Words Lab::processes(const std::string& host) const { return linesOf(must("ps", {host})); }

Words Lab::processesAfter(const std::string& host, milliseconds limit) const {
  Words left;
  waitUntil(limit, [&] { return (left = processes(host)).empty(); });
  return left;
}

std::string Lab::outside(const std::string& host, const std::string& path) const {
  std::string pid = must("pid", {host});
  if (pid.ends_with('\n')) pid.pop_back();
  return "/proc/" + pid + "/root" + path;
}

void Lab::writeFile(const std::string& host, const std::string& path, const std::string& text,
                    bool executable) const {
  const std::string place = outside(host, path);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(place).parent_path(), error);
  std::ofstream(place) << text;
  EXPECT_EQ(::chmod(place.c_str(), executable ? 0755 : 0644), 0) << host << ":" << path;
}

std::string Lab::readFile(const std::string& host, const std::string& path) const {
  std::ifstream file(outside(host, path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace farandole::test
