#include "base/text.h"

#include <gtest/gtest.h>

namespace farandole {
namespace {

TEST(Text, AWordOfAShellIsQuotedWhereItMustBe) {
  EXPECT_EQ(shellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shellQuoted("plain"), "'plain'");
  EXPECT_EQ(shellWord("a/b-c_d.e=f:1,2+@%"), "a/b-c_d.e=f:1,2+@%");
  EXPECT_EQ(shellWord(""), "''");
  EXPECT_EQ(shellWord("two words"), "'two words'");
  EXPECT_EQ(shellWord("~/key"), "'~/key'");
  EXPECT_EQ(shellWord("~/key", "~"), "~/key");
  EXPECT_EQ(shellWord("\xc3\xa4"), "'\xc3\xa4'");
}

TEST(Text, WhatPeopleTypedIsShownOnOneLine) {
  EXPECT_EQ(quoted("a\nb"), "'a?b'");
  EXPECT_EQ(farandole::quoted(std::string(81, 'x')), "'" + std::string(80, 'x') + "…'");
  EXPECT_EQ(oneLine("a\x1b[1mb"), "a?[1mb");
}

}  // namespace
}  // namespace farandole
