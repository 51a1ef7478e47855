// Whole visits: this machine, a real ssh server, and hosts that do not answer.
#include "doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "doctor/diagnosis.h"
#include "doctor/doctor_command.h"
#include "doctor/report.h"
#include "unit/launch/ssh/test_sshd.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing_ssh::TestSshd;

const Finding* find(const Findings& findings, const std::string& check, Severity severity) {
  for (const Finding& finding : findings) {
    if (finding.check == check && finding.severity == severity) return &finding;
  }
  return nullptr;
}

DoctorSettings localOnly() {
  DoctorSettings settings;
  settings.hosts = {{"localhost", "", 0, 0, true}};
  return settings;
}

TEST(Doctor, ThisMachineAlone) {
  const Diagnosis diagnosis = diagnose(localOnly());
  EXPECT_NE(find(diagnosis.findings, "links", Severity::kOk), nullptr);
  EXPECT_NE(find(diagnosis.findings, "cpu", Severity::kOk), nullptr);
  ASSERT_EQ(diagnosis.hosts.size(), 1U);
  EXPECT_TRUE(diagnosis.hosts[0]["facts"].contains("machine"));
  ASSERT_EQ(diagnosis.links.size(), 1U);
  EXPECT_EQ(exitCodeOf(diagnosis.findings, false), 0);
}

class DoctorOverSsh : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<TestSshd>();
    started_ = server_->start();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!started_) GTEST_SKIP() << "no OpenSSH server on this machine";
    server_->trustHost();
  }
  static DoctorSettings settings() {
    DoctorSettings settings;
    settings.hosts = {{"127.0.0.1", "", server_->port(), 1, false}};
    settings.ssh = server_->options();
    return settings;
  }
  static std::unique_ptr<TestSshd> server_;
  static bool started_;
};
std::unique_ptr<TestSshd> DoctorOverSsh::server_;
bool DoctorOverSsh::started_ = false;

TEST_F(DoctorOverSsh, ReachesAHost) {
  const Diagnosis diagnosis = diagnose(settings());
  EXPECT_NE(find(diagnosis.findings, "tcp", Severity::kOk), nullptr);
  EXPECT_NE(find(diagnosis.findings, "ssh", Severity::kOk), nullptr);
  EXPECT_EQ(exitCodeOf(diagnosis.findings, true), 0) << reportTable(diagnosis, false);
}

TEST_F(DoctorOverSsh, NamesTheCauseAndTheRemedy) {
  server_->trustNobody();
  const Diagnosis diagnosis = diagnose(settings());
  const Finding* finding = find(diagnosis.findings, "ssh", Severity::kError);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->fix, HasSubstr("ssh-keyscan"));
  EXPECT_EQ(exitCodeOf(diagnosis.findings, false), 2);
}

TEST_F(DoctorOverSsh, HostsAreVisitedAtTheSameTimeAndTheOthersAreStillJudged) {
  DoctorSettings many = settings();
  many.hosts.push_back({"localhost", "", 0, 1, true});
  many.hosts.push_back({"127.0.0.1", "", 1, 1, false});
  many.hosts.push_back({"no-such-host.invalid", "", 0, 1, false});
  const Diagnosis diagnosis = diagnose(many);
  const Finding* refused = find(diagnosis.findings, "tcp", Severity::kError);
  ASSERT_NE(refused, nullptr);
  EXPECT_THAT(refused->evidence, HasSubstr("refused"));
  const Finding* unknown = find(diagnosis.findings, "names", Severity::kError);
  ASSERT_NE(unknown, nullptr);
  EXPECT_EQ(unknown->host, "no-such-host.invalid");
  EXPECT_NE(find(diagnosis.findings, "ssh", Severity::kOk), nullptr);
  EXPECT_NE(find(diagnosis.findings, "cpu", Severity::kOk), nullptr);
}

// The agent's part is played by a service in this process; everything travels as JSON text.
TEST_F(DoctorOverSsh, ARemoteProbeTellsFactsAndTriesLinks) {
  DoctorSettings both = settings();
  both.hosts.push_back({"localhost", "", 0, 1, true});
  both.makeProbe = [](const DoctorHost&, const launch::ssh::SshOptions&,
                      Deadline) -> Result<std::unique_ptr<launch::facts::HostProbe>> {
    auto service = std::make_shared<launch::facts::ProbeService>();
    return std::unique_ptr<launch::facts::HostProbe>(std::make_unique<launch::facts::JsonProbe>(
        [service](const json& question, Deadline) -> Result<json> {
          return json::parse(service->answer(json::parse(question.dump())).dump());
        }));
  };
  const Diagnosis diagnosis = diagnose(both);
  EXPECT_EQ(diagnosis.links.size(), 2U);
  for (const json& link : diagnosis.links) EXPECT_TRUE(link["ok"]) << link;
  const Finding* twins = find(diagnosis.findings, "machines", Severity::kWarning);
  ASSERT_NE(twins, nullptr) << "both are this machine";
  EXPECT_THAT(twins->cause, HasSubstr("same machine"));
}

TEST(ProbeService, AnswersNonsenseWithAnError) {
  launch::facts::ProbeService service;
  for (const char* text :
       {"null", "[]", "{}", R"({"ask":"rm"})", R"({"ask":"facts"})", R"({"ask":"echo"})",
        R"({"ask":"echo","bytes":1e300})", R"({"ask":"open_echo","secret":"zz"})",
        R"({"ask":"open_echo","secret":3,"first":-1,"last":1e99})"}) {
    EXPECT_TRUE(service.answer(json::parse(text)).contains("error")) << text;
  }
}

TEST(Report, WorstFirstEqualOnesTogetherAndColoursOnlyWhenAsked) {
  Diagnosis diagnosis;
  diagnosis.findings = {{Severity::kOk, "cpu", "alpha", "fine", "", ""},
                        {Severity::kOk, "cpu", "beta", "fine", "", ""},
                        {Severity::kWarning, "clock", "beta", "late", "+3 s", "ntp"},
                        {Severity::kError, "ssh", "beta", "closed", "seen this", "do that"}};
  const std::string text = reportTable(diagnosis, false);
  EXPECT_LT(text.find("closed"), text.find("late"));
  EXPECT_LT(text.find("late"), text.find("fine"));
  EXPECT_THAT(text, HasSubstr("alpha,beta"));
  EXPECT_THAT(text, HasSubstr("seen: seen this"));
  EXPECT_THAT(text, HasSubstr("do:   do that"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(reportTable(diagnosis, true), HasSubstr("\x1b[31m"));
  EXPECT_EQ(exitCodeOf(diagnosis.findings, false), 2);
  diagnosis.findings.pop_back();
  EXPECT_EQ(exitCodeOf(diagnosis.findings, false), 0);
  EXPECT_EQ(exitCodeOf(diagnosis.findings, true), 1);
  EXPECT_EQ(reportJson(diagnosis, 1)["findings"].size(), 3U);
}

TEST(DoctorHosts, WhatMeansThisMachine) {
  auto hosts = doctorHosts("localhost,me@127.0.0.1:12345:2,alpha.invalid", "");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  ASSERT_EQ(hosts->size(), 3U);
  EXPECT_TRUE(hosts->at(0).local);
  EXPECT_FALSE(hosts->at(1).local) << "a server behind a port";
  EXPECT_FALSE(hosts->at(2).local);
  EXPECT_FALSE(doctorHosts("a", "b").ok());
  EXPECT_EQ(doctorHosts("", "")->size(), 1U);
}

}  // namespace
}  // namespace farandole::doctor
