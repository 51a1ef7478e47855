#include "launch/facts/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/within.h"
#include "launch/facts/fact_access.h"
#include "launch/facts/fact_items.h"

namespace farandole::launch::facts {
namespace {

using nlohmann::json;

class TemporaryFolder {
 public:
  TemporaryFolder() { path_ = ::mkdtemp(name_); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  char name_[32] = "/tmp/farandole-facts-XXXXXX";
  std::string path_;
};

TEST(Facts, TellTheTruthAboutThisMachine) {
  TemporaryFolder folder;
  std::ofstream(folder.path() + "/train.py") << "abc";
  const json facts =
      collectFacts({{"localhost", "no-such-host.invalid"}, folder.path(), "train.py"});
  char hostname[256] = {};
  ::gethostname(hostname, sizeof(hostname) - 1);
  EXPECT_EQ(factText(facts, "/machine/hostname"), hostname);
  EXPECT_EQ(factNumber(facts, "/machine/uid", -1), ::geteuid());
  EXPECT_GE(factNumber(facts, "/cpus/allowed"), 1);
  EXPECT_GE(factNumber(facts, "/cpus/cores"), 1);
  EXPECT_GT(factNumber(facts, "/memory/available"), 0);
  EXPECT_GT(factNumber(facts, "/time"), 1.7e9);
  EXPECT_TRUE(factFlag(facts, "/folder/writable"));
  EXPECT_EQ(factText(facts, "/script/sha256"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_FALSE(factAt(facts, "/names/localhost/addresses").empty());
  EXPECT_EQ(factAt(facts, "/names").size(), 2U);
  EXPECT_FALSE(factText(factAt(facts, "/names").at("no-such-host.invalid"), "/error").empty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
      << "the write test leaves nothing behind";
}

TEST(Facts, LoopbackIsAmongTheInterfaces) {
  bool found = false;
  for (const json& one : fact_items::interfaces()) {
    found = found || (factText(one, "/kind") == "loopback" && factFlag(one, "/up"));
  }
  EXPECT_TRUE(found);
}

TEST(Facts, AFolderThatIsNotThere) {
  const json facts = fact_items::folder("/no/such/folder");
  EXPECT_FALSE(factFlag(facts, "/exists", true));
}

TEST(Facts, ThePythonThatRanksFind) {
  EXPECT_EQ(factText(fact_items::python("/no/such/folder"), "/version"), "");
  std::string folder = testing::TempDir() + "farandole.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/python3") << "#!/bin/sh\necho 9.8.7\necho /venv/bin/python3\n";
  std::filesystem::permissions(folder + "/python3", std::filesystem::perms::owner_all);
  const json found = fact_items::python(folder);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(factText(found, "/version"), "9.8.7");
  EXPECT_EQ(factText(found, "/executable"), "/venv/bin/python3");
}

TEST(Facts, ARequestTravels) {
  const FactsRequest request{{"alpha", "beta"}, "/work", "train.py", "/bin"};
  auto back = factsRequestFromJson(json::parse(toJson(request).dump()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->names, request.names);
  EXPECT_EQ(back->folder, request.folder);
  EXPECT_EQ(back->script, request.script);
  EXPECT_EQ(back->searchPath, request.searchPath);
}

TEST(Facts, MalformedRequestsAreRefused) {
  for (const char* text :
       {"null", "[]", "{}", R"({"names":[1],"folder":"","script":""})",
        R"({"names":"a","folder":"","script":""})", R"({"names":[],"folder":1,"script":""})"}) {
    EXPECT_FALSE(factsRequestFromJson(json::parse(text)).ok()) << text;
  }
}

TEST(Background, WorkThatHangsOrThrowsHasNoResult) {
  Background<int> good([] { return 3; });
  EXPECT_EQ(good.wait(Deadline::after(std::chrono::seconds(60))), 3);
  Background<int> throwing([]() -> int { throw std::runtime_error("no"); });
  const Deadline patience = Deadline::after(std::chrono::seconds(60));
  EXPECT_EQ(throwing.wait(patience), std::nullopt);
  EXPECT_FALSE(patience.passed());  // it was told that there is no result
  std::promise<int> later;
  Background<int> hanging([result = later.get_future().share()] { return result.get(); });
  EXPECT_EQ(hanging.wait(Deadline::after(std::chrono::milliseconds(20))), std::nullopt);
  later.set_value(3);
}

TEST(FactAccess, WhatIsMissingOrOfAnotherTypeIsTheDefault) {
  const json facts = {{"a", {{"b", "text\x1b[0m"}, {"n", 3}}}};
  EXPECT_EQ(factText(facts, "/a/b"), "text [0m");
  EXPECT_EQ(factText(facts, "/a/n"), "");
  EXPECT_EQ(factText(facts, "/a/b/c"), "");
  EXPECT_EQ(factNumber(facts, "/a/n"), 3);
  EXPECT_EQ(factNumber(facts, "/a/b", 7), 7);
  EXPECT_EQ(factNumber(json(), "/a"), 0);
  EXPECT_EQ(describeBytes(64.0 * 1024 * 1024), "64 MiB");
  EXPECT_EQ(describeBytes(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
}

}  // namespace
}  // namespace farandole::launch::facts
