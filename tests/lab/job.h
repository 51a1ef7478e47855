// Jobs of `farandole run` in a laboratory, started on h0.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "lab/lab.h"
#include "paths.h"

namespace farandole::test {

inline Words jobWords(const Words& options, const Words& command) {
  Words words{test::paths::kCommand, "run"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

inline Words shellWords(const Words& options, const std::string& script) {
  return jobWords(options, {"sh", "-c", script});
}

inline Outcome runJob(const Lab& lab, const Words& options, const std::string& script,
                      const Command::Options& how = {}) {
  return lab.run("h0", shellWords(options, script), how);
}

inline std::unique_ptr<LabProcess> startJob(const Lab& lab, const Words& options,
                                            const std::string& script,
                                            const Command::Options& how = {}) {
  return lab.start("h0", shellWords(options, script), how);
}

inline Command::Options withVariables(Words variables) {
  Command::Options options;
  options.env = std::move(variables);
  return options;
}

// In an order that does not depend on which rank was faster.
inline Words sortedLines(const std::string& text) {
  Words lines = linesOf(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Nothing of a job is left on any of the hosts h0 … hN-1.
inline void expectNothingLeft(const Lab& lab, int hosts,
                              std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  for (int i = 0; i < hosts; ++i) {
    const std::string host = "h" + std::to_string(i);
    EXPECT_THAT(lab.processesAfter(host, limit), testing::IsEmpty()) << "on " << host;
  }
}

// One line that says what is wrong; code is not 0; it came in time; nothing is left.
inline void expectRefused(const Lab& lab, int hosts, const Outcome& outcome,
                          const std::string& part) {
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_GT(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::HasSubstr(part));
  EXPECT_THAT(outcome.err, testing::StartsWith("farandole run: "));
  EXPECT_EQ(countOf(outcome.err, "\n"), 1) << outcome.err;
  expectNothingLeft(lab, hosts);
}

// A rank with a child in a session of its own, an orphan, and one without its variables; none of
// them ends by itself.
inline constexpr const char* kFamily =
    "setsid sleep 301 & (setsid sh -c 'sleep 302 & sleep 303' &) ; (env -i setsid sleep 305 &) ; "
    "echo ready $RANK; exec sleep 304";

// A long job, once all its ranks are there.
inline std::unique_ptr<LabProcess> longJob(const Lab& lab, const Words& more, int ranks,
                                           const std::string& script = kFamily) {
  Words options{"-q"};
  options.insert(options.end(), more.begin(), more.end());
  auto job = startJob(lab, options, script);
  EXPECT_TRUE(job->waitForOutput("ready", ranks)) << job->err();
  return job;
}

// The number, on its host, of the first process there whose command line begins so.
inline std::string pidOn(const Lab& lab, const std::string& host, const std::string& part) {
  for (const std::string& line : lab.processes(host)) {
    const auto space = line.find(' ');
    if (line.compare(space + 1, part.size(), part) == 0) return line.substr(0, space);
  }
  ADD_FAILURE() << "no " << part << " on " << host;
  return "0";
}

inline std::string agentOn(const Lab& lab, const std::string& host) {
  return pidOn(lab, host, std::string(test::paths::kCommand) + " agent");
}

}  // namespace farandole::test
