// Messages reach their handlers, also if they arrive before a handler is attached.
#include "control/keyed_handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/raw_bytes.h"

namespace farandole::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string keyed(MessageKey key, const std::string& text) {
  std::string message(sizeof key, '\0');
  std::memcpy(message.data(), &key, sizeof key);
  return message + text;
}

class Board : public ::testing::Test {
 protected:
  Status deliver(int from, std::string message) { return board_.deliver(from, message); }
  void listen(MessageKey key) {
    board_.attach(key, [this](int from, const std::string& message) {
      heard_.push_back(std::to_string(from) + message.substr(sizeof(MessageKey)));
    });
  }

  KeyedHandlers<std::string> board_;
  std::vector<std::string> heard_;
};

TEST_F(Board, BringsThemToTheirKey) {
  listen(7);
  EXPECT_TRUE(deliver(3, keyed(7, "a")).ok());
  EXPECT_TRUE(deliver(4, keyed(8, "b")).ok());
  EXPECT_TRUE(deliver(3, keyed(7, "")).ok());
  EXPECT_THAT(heard_, ElementsAre("3a", "3"));
}

TEST_F(Board, KeepsWhatComesTooEarlyInItsOrder) {
  EXPECT_TRUE(deliver(1, keyed(7, "a")).ok());
  EXPECT_TRUE(deliver(2, keyed(7, "b")).ok());
  EXPECT_TRUE(deliver(1, keyed(9, "c")).ok());
  EXPECT_THAT(heard_, IsEmpty());
  listen(7);
  EXPECT_THAT(heard_, ElementsAre("1a", "2b"));
  EXPECT_TRUE(deliver(1, keyed(7, "d")).ok());
  EXPECT_THAT(heard_, ElementsAre("1a", "2b", "1d"));
}

TEST_F(Board, DropsWhatComesTooLate) {
  listen(7);
  board_.detach(7);
  EXPECT_TRUE(deliver(1, keyed(7, "a")).ok());
  board_.detach(8);  // nobody ever listened
  EXPECT_TRUE(deliver(1, keyed(8, "b")).ok());
  listen(7);  // another one, after it was gone
  EXPECT_TRUE(deliver(1, keyed(7, "c")).ok());
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_F(Board, RefusesWhatHasNoKeyAndWhatIsTooMuch) {
  EXPECT_THAT(deliver(5, "abc").message(), HasSubstr("rank 5"));
  const std::string large = keyed(7, std::string(std::size_t{24} << 20, 'x'));
  EXPECT_TRUE(deliver(1, large).ok());
  EXPECT_TRUE(deliver(1, large).ok());
  EXPECT_EQ(deliver(6, large).code(), Code::kMismatch);
  // There is room again once they have been taken.
  listen(7);
  EXPECT_EQ(heard_.size(), 2U);
  EXPECT_TRUE(deliver(1, keyed(8, std::string(std::size_t{24} << 20, 'x'))).ok());
}

TEST(RawBytesTest, KeepTheirRoomAndCanBeTakenAway) {
  KeyedHandlers<RawBytes> board;
  RawBytes kept;
  board.attach(0, [&](int, RawBytes& message) { kept.swap(message); });
  RawBytes message;
  message.renew(100);
  std::memset(message.data(), 0, 100);
  const std::byte* const memory = message.data();
  EXPECT_TRUE(board.deliver(1, message).ok());
  EXPECT_EQ(kept.data(), memory);
  EXPECT_EQ(message.size(), 0U);
  kept.renew(10);
  EXPECT_EQ(kept.size(), 10U);
  kept.renew(100);
  EXPECT_EQ(kept.data(), memory) << "there was room";
  kept.renew(101);
  EXPECT_EQ(kept.size(), 101U);
}

}  // namespace
}  // namespace farandole::control
