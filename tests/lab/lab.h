// Lab: several hosts on this machine for the length of a test (tools/lab up ... down), and the
// real commands that run on them. Every wait is bounded; nothing outlives the Lab.
//
//   Lab lab({.hosts = 2});
//   EXPECT_EQ(lab.run("h0", {"ssh", "h1", "hostname"}).out, "h1\n");
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "multiproc/launch/command.h"

namespace farandole::test {

// True where laboratories can be made. Begin a test with LAB_OR_SKIP().
bool canHaveLab();
#define LAB_OR_SKIP() \
  if (!::farandole::test::canHaveLab()) GTEST_SKIP() << "a laboratory of hosts needs root"

using Words = std::vector<std::string>;

// The same for a command that is tools/lab.
Command::Options ofTool(Command::Options options = Command::Options());

struct LabOptions {
  int hosts = 3;          // h0 (where the user sits), h1, ...
  Words more = {};        // further options of `tools/lab up`, e.g. {"--ipv6", "--nat", "h2"}
  std::string name = {};  // unique unless given
  bool expectUp = true;   // a laboratory that does not come up fails the test
};

// A command on a host. The destructor kills it, and what it left in its process group stays: ask
// Lab::processes.
class LabProcess {
 public:
  LabProcess(const Words& words, const Command::Options& options)
      : command_(words, ofTool(options)) {}

  // To the command itself, not to what carries it into the host.
  void signal(int number) const;
  // Its number on this machine (the host knows it under another one), or -1.
  pid_t pid() const;
  const std::string& out() const { return command_.out(); }
  const std::string& err() const { return command_.err(); }
  bool waitForOutput(const std::string& text, int count = 1) {
    return command_.waitForOutput(text, count);
  }
  Command& command() { return command_; }
  // Outcome::code is 128 + N after signal N.
  Outcome finish() { return command_.finish(); }

 private:
  Command command_;
};

class Lab {
 public:
  using Options = LabOptions;

  Lab() : Lab(Options()) {}
  explicit Lab(const Options& options);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  const std::string& name() const { return name_; }
  // What `tools/lab up` said.
  const Outcome& upOutcome() const { return up_; }

  // Collects output; after options.patience the command is killed and Outcome::timedOut is set.
  Outcome run(const std::string& host, const Words& words,
              const Command::Options& options = Command::Options()) const;
  Outcome run(const std::string& host, const Words& words, std::chrono::milliseconds limit) const;
  // From one host to another, with the system's ssh and what is in ~/.ssh there.
  Outcome ssh(const std::string& from, const Words& words) const;
  bool reaches(const std::string& from, const std::string& to) const;
  Outcome shell(const std::string& host, const std::string& script) const;
  std::unique_ptr<LabProcess> start(const std::string& host, const Words& words,
                                    const Command::Options& options = Command::Options()) const;

  // Any `tools/lab COMMAND words...` of this laboratory.
  Outcome tool(const std::string& command, const Words& words = {}) const;
  // As above; a test fails that cannot do these.
  void cut(const std::string& host) const { must("cut", {host}); }
  void heal(const std::string& host) const { must("heal", {host}); }
  void sshd(const std::string& host, bool on) const { must("sshd", {host, on ? "on" : "off"}); }
  // Each way; 0 switches it off.
  void delay(const std::string& host, double ms) const;
  std::string must(const std::string& command, const Words& words = {}) const;

  // "pid command line" of what runs on the host besides init and sshd.
  Words processes(const std::string& host) const;
  // Waits until processes() is empty; returns what is still there after the limit.
  Words processesAfter(const std::string& host, std::chrono::milliseconds limit) const;

  // Where a path of the host can be read and written from here.
  std::string outside(const std::string& host, const std::string& path) const;
  void writeFile(const std::string& host, const std::string& path, const std::string& text,
                 bool executable = false) const;
  std::string readFile(const std::string& host, const std::string& path) const;

 private:
  std::string name_;
  Outcome up_;
};

}  // namespace farandole::test
