// What a caller can get wrong in a request, and what becomes of a right one.
#include "api/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace farandole::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Rank 11, which is member 1 of a set of ranks 10, 11 and 12, with 6 rows of 2 float32.
class RequestTest : public ::testing::Test {
 protected:
  explicit RequestTest(int operation = FARANDOLE_ALLREDUCE) {
    set_.ranks = {10, 11, 12};
    set_.me = 1;
    request_.operation = operation;
    request_.dtype = FARANDOLE_FLOAT32;
    request_.op = FARANDOLE_SUM;
    request_.root = 10;
    request_.name = "a";
    request_.input = memory_;
    request_.output = memory_ + 64;
    request_.shape = shape_;
    request_.ndim = 2;
  }
  // The text of the error; "" if there is none.
  std::string check() {
    checked_ = conductor::Request();
    return checkRequest(&set_, 11, request_, checked_).message();
  }
  std::string checkAs(int operation) {
    request_.operation = operation;
    return check();
  }

  static constexpr std::int64_t kBytes = 48;
  float memory_[256] = {};
  std::int64_t shape_[2] = {6, 2};
  std::int64_t splits_[3] = {1, 2, 3};
  runtime::Runtime::SetInfo set_;
  farandole_request request_ = FARANDOLE_REQUEST_INIT;
  conductor::Request checked_;
};

TEST_F(RequestTest, ARightOneIsTakenOver) {
  request_.prescale = 0.5;
  request_.group = 7;
  request_.flags = FARANDOLE_FLAG_WILL_WAIT | FARANDOLE_FLAG_ORDERED;
  EXPECT_EQ(check(), "");
  EXPECT_EQ(checked_.name, "a");
  EXPECT_EQ(checked_.meta.kind, control::Kind::kAllreduce);
  EXPECT_EQ(checked_.meta.dtype, DType::kFloat32);
  EXPECT_EQ(checked_.meta.op, ReduceOp::kSum);
  EXPECT_EQ(checked_.meta.prescale, 0.5);
  EXPECT_THAT(checked_.meta.shape, ElementsAre(6, 2));
  EXPECT_EQ(checked_.input, request_.input);
  EXPECT_EQ(checked_.output, request_.output);
  EXPECT_EQ(checked_.outputBytes, kBytes);
  EXPECT_EQ(checked_.group, 7U);
  EXPECT_TRUE(checked_.willWait);
  EXPECT_TRUE(checked_.ordered);
  EXPECT_FALSE(checked_.callbackAnywhere);
}
TEST_F(RequestTest, CallsBackWithItsOwnData) {
  request_.allocate = [](void* user, std::size_t bytes, const std::int64_t* shape,
                         std::int32_t ndim) -> void* {
    EXPECT_EQ(bytes, 48U);
    EXPECT_EQ(ndim, 2);
    EXPECT_EQ(shape[0], 6);
    return user;
  };
  request_.allocate_user = memory_;
  static farandole_handle told = 0;
  request_.on_complete = [](void*, farandole_handle handle, farandole_code) { told = handle; };
  ASSERT_EQ(check(), "");
  EXPECT_EQ(checked_.allocate(48, {6, 2}), memory_);
  checked_.onComplete(9, Code::kOk);
  EXPECT_EQ(told, 9U);
}

TEST_F(RequestTest, TheSetMustBeThereAndThisRankInIt) {
  request_.set = 4;
  EXPECT_EQ(checkRequest(nullptr, 11, request_, checked_).message(),
            "'a': there is no process set 4");
  set_.me = -1;
  EXPECT_EQ(check(), "'a': rank 11 is not a member of process set 4");
}
TEST_F(RequestTest, ErrorsNameTheTensor) {
  request_.operation = 99;
  EXPECT_EQ(checkRequest(&set_, 11, request_, checked_).tensor(), "a");
  request_.name = nullptr;
  EXPECT_EQ(check(), "unknown operation 99");
}
TEST_F(RequestTest, NumbersMustBeOfTheirEnums) {
  EXPECT_EQ(checkAs(-1), "'a': unknown operation -1");
  EXPECT_EQ(checkAs(control::kKindCount), "'a': unknown operation 12");
  request_.operation = FARANDOLE_ALLREDUCE;
  request_.dtype = 99;
  EXPECT_EQ(check(), "'a': unknown dtype 99");
  request_.dtype = FARANDOLE_FLOAT32;
  request_.op = 99;
  EXPECT_EQ(check(), "'a': unknown reduction 99");
  EXPECT_EQ(checkAs(FARANDOLE_ALLGATHER), "") << "where none is needed";
}
TEST_F(RequestTest, NamesHaveALength) {
  request_.name = "";
  EXPECT_EQ(check(), "a name must have 1 to 4096 bytes");
  std::string name(4096, 'x');
  request_.name = name.c_str();
  EXPECT_EQ(check(), "");
  name += 'x';
  request_.name = name.c_str();
  EXPECT_EQ(check(), "a name must have 1 to 4096 bytes");
  request_.name = nullptr;
  EXPECT_EQ(check(), "");
  EXPECT_EQ(checked_.name, "");
}
TEST_F(RequestTest, ShapesMustBePossible) {
  for (const int ndim : {-1, 65}) {
    request_.ndim = ndim;
    EXPECT_THAT(check(), HasSubstr("a shape of " + std::to_string(ndim) + " dimensions"));
  }
  request_.ndim = 2;
  request_.shape = nullptr;
  EXPECT_THAT(check(), HasSubstr("a shape of 2 dimensions"));
  request_.ndim = 0;
  EXPECT_EQ(check(), "") << "a scalar";
  request_.shape = shape_;
  request_.ndim = 2;
  shape_[1] = -2;
  EXPECT_THAT(check(), HasSubstr("the shape has a negative dimension"));
  shape_[0] = shape_[1] = std::int64_t{1} << 31;
  EXPECT_THAT(check(), HasSubstr("too large for 64 bits")) << "2^62 floats";
  shape_[0] = 0;
  EXPECT_EQ(check(), "") << "of no elements";
}
TEST_F(RequestTest, TagsAreNotNegative) {
  request_.tag = -1;
  EXPECT_EQ(check(), "'a': a tag must not be negative");
}

TEST_F(RequestTest, ARootIsARankOfTheSet) {
  EXPECT_EQ(checkAs(FARANDOLE_BROADCAST), "");
  EXPECT_EQ(checked_.meta.root, 0) << "as a member";
  request_.root = 3;
  EXPECT_EQ(checkAs(FARANDOLE_BROADCAST), "'a': root rank 3 is not a member of process set 0");
  EXPECT_EQ(checkAs(FARANDOLE_ALLREDUCE), "") << "which has none";
}
TEST_F(RequestTest, APeerIsAnotherRankOfTheSet) {
  request_.root = 12;
  EXPECT_EQ(checkAs(FARANDOLE_SEND), "");
  EXPECT_EQ(checked_.meta.root, 2);
  request_.root = 11;
  EXPECT_THAT(check(), HasSubstr("a rank cannot send to or receive from itself"));
  request_.root = 3;
  EXPECT_THAT(check(), HasSubstr("peer rank 3 is not a member"));
  request_.root = FARANDOLE_ANY_RANK;
  EXPECT_THAT(check(), HasSubstr("peer rank -1 is not a member"));
  EXPECT_EQ(checkAs(FARANDOLE_RECV), "");
  EXPECT_EQ(checked_.meta.root, collective::kAnyMember);
}
TEST_F(RequestTest, ReductionsMustBeDefined) {
  request_.op = FARANDOLE_BAND;
  EXPECT_THAT(check(), HasSubstr("is not defined for float32"));
  request_.op = FARANDOLE_ADASUM;
  EXPECT_EQ(check(), "");
  EXPECT_THAT(checkAs(FARANDOLE_REDUCESCATTER),
              HasSubstr("adasum is possible with allreduce only"));
  request_.op = FARANDOLE_SUM;
  request_.postscale = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(checkAs(FARANDOLE_ALLREDUCE), HasSubstr("must be finite numbers"));
  EXPECT_EQ(checkAs(FARANDOLE_ALLGATHER), "") << "which does not scale";
}

TEST_F(RequestTest, SplitsAreTheRowsOfEachMember) {
  request_.splits = splits_;
  request_.nsplits = 3;
  EXPECT_EQ(checkAs(FARANDOLE_ALLTOALL), "");
  EXPECT_THAT(checked_.splits, ElementsAre(1, 2, 3));
  EXPECT_EQ(checkAs(FARANDOLE_REDUCESCATTER), "");
  EXPECT_THAT(checked_.meta.splits, ElementsAre(1, 2, 3)) << "part of the agreement";
  EXPECT_THAT(checked_.splits, IsEmpty());
  EXPECT_EQ(checkAs(FARANDOLE_ALLREDUCE), "");
  EXPECT_THAT(checked_.splits, IsEmpty()) << "which has none";
}
TEST_F(RequestTest, SplitsOfAScatterAreTheRoots) {
  request_.splits = splits_;
  request_.nsplits = 3;
  EXPECT_EQ(checkAs(FARANDOLE_SCATTER), "");
  EXPECT_THAT(checked_.splits, IsEmpty());
  request_.root = 11;
  EXPECT_EQ(check(), "");
  EXPECT_THAT(checked_.splits, ElementsAre(1, 2, 3));
}
TEST_F(RequestTest, SplitsMustAddUp) {
  request_.operation = FARANDOLE_ALLTOALL;
  request_.splits = splits_;
  request_.nsplits = 2;
  EXPECT_EQ(check(), "'a': 2 splits for 3 ranks");
  request_.nsplits = -1;
  EXPECT_EQ(check(), "'a': -1 splits for 3 ranks");
  request_.nsplits = 3;
  splits_[2] = 2;
  EXPECT_THAT(check(), HasSubstr("splits add up to 5, the first dimension is 6"));
  splits_[2] = 4;
  EXPECT_THAT(check(), HasSubstr("splits must be non-negative and add up to the first dimension"));
  splits_[0] = -1;
  EXPECT_THAT(check(), HasSubstr("splits must be non-negative"));
  request_.splits = nullptr;
  EXPECT_THAT(check(), HasSubstr("3 splits for 3 ranks"));
}
TEST_F(RequestTest, AnAlltoallWithoutSplitsIsEven) {
  EXPECT_EQ(checkAs(FARANDOLE_ALLTOALL), "");
  shape_[0] = 7;
  EXPECT_THAT(check(), HasSubstr("7 rows cannot be divided equally among 3 ranks"));
}

TEST_F(RequestTest, WhoeverReadsNeedsAnInput) {
  request_.input = nullptr;
  EXPECT_EQ(check(), "'a': input is NULL but the shape has 12 elements");
  EXPECT_EQ(checkAs(FARANDOLE_BROADCAST), "") << "not at the root";
  request_.root = 11;
  EXPECT_THAT(check(), HasSubstr("input is NULL"));
  shape_[0] = 0;
  EXPECT_EQ(check(), "") << "of no elements";
  request_.ndim = 0;
  request_.shape = nullptr;
  EXPECT_EQ(checkAs(FARANDOLE_BARRIER), "");
  EXPECT_EQ(checkAs(FARANDOLE_JOIN), "");
}
TEST_F(RequestTest, AReceiveNeedsAnOutput) {
  request_.output = nullptr;
  EXPECT_EQ(checkAs(FARANDOLE_RECV), "'a': recv needs an output buffer");
  EXPECT_EQ(checkAs(FARANDOLE_ALLREDUCE), "") << "the library provides it";
  EXPECT_EQ(checked_.outputBytes, conductor::kNoLimit);
}
TEST_F(RequestTest, AnAllreduceIsInPlaceOrApart) {
  request_.output = memory_;
  EXPECT_EQ(check(), "");
  request_.output = memory_ + 11;
  EXPECT_THAT(check(), HasSubstr("input and output overlap"));
  request_.output = memory_ + 12;
  EXPECT_EQ(check(), "");
}

TEST_F(RequestTest, AnOutputOfUnknownSizeHasRoomForWhatItAsksFor) {
  EXPECT_EQ(checkAs(FARANDOLE_ALLGATHER), "");
  EXPECT_EQ(checked_.outputBytes, 3 * kBytes);
  EXPECT_EQ(checkAs(FARANDOLE_ALLTOALL), "");
  EXPECT_EQ(checked_.outputBytes, kBytes);
  EXPECT_EQ(checkAs(FARANDOLE_REDUCESCATTER), "");
  EXPECT_EQ(checked_.outputBytes, kBytes / 3);
  shape_[0] = 7;
  EXPECT_EQ(check(), "");
  EXPECT_EQ(checked_.outputBytes, 16) << "the larger parts are the first members'";
  shape_[0] = 8;
  EXPECT_EQ(check(), "");
  EXPECT_EQ(checked_.outputBytes, 24);
}
TEST_F(RequestTest, AnOutputTooSmallForItsOwnResultIsRefused) {
  request_.output_bytes = kBytes - 1;
  EXPECT_EQ(check(), "'a': the output has room for 47 bytes, but 48 are needed");
  request_.output_bytes = kBytes;
  EXPECT_EQ(check(), "");
  EXPECT_EQ(checked_.outputBytes, kBytes);
  request_.output_bytes = -2;
  EXPECT_THAT(check(), HasSubstr("room for -2 bytes"));
}
TEST_F(RequestTest, AnOutputWhoseSizeOthersDecideIsTheirs) {
  request_.output_bytes = 1;
  for (const int operation : {FARANDOLE_ALLGATHER, FARANDOLE_ALLTOALL, FARANDOLE_SCATTER}) {
    EXPECT_EQ(checkAs(operation), "");
    EXPECT_EQ(checked_.outputBytes, 1);
  }
}
TEST_F(RequestTest, AnOutputThatIsNotWrittenMayBeOfAnySize) {
  request_.output_bytes = 1;
  EXPECT_EQ(checkAs(FARANDOLE_REDUCE), "") << "not at the root";
  request_.root = 11;
  EXPECT_THAT(check(), HasSubstr("room for 1 bytes"));
  request_.root = 10;
  EXPECT_EQ(checkAs(FARANDOLE_SEND), "");
}

TEST(ShortRequest, IsAnOlderCallers) {
  farandole_request given = FARANDOLE_REQUEST_INIT;
  given.tag = 5;
  given.prescale = 3;
  given.output_bytes = 77;
  given.struct_size = offsetof(farandole_request, output_bytes);
  farandole_request whole;
  ASSERT_TRUE(completeRequest(given, whole).ok());
  EXPECT_EQ(whole.tag, 5);
  EXPECT_EQ(whole.prescale, 3);
  EXPECT_EQ(whole.output_bytes, FARANDOLE_BYTES_UNKNOWN);
  given.struct_size = offsetof(farandole_request, prescale);
  ASSERT_TRUE(completeRequest(given, whole).ok());
  EXPECT_EQ(whole.prescale, 1.0);
}
TEST(ShortRequest, HasAtLeastWhatTheFirstVersionHad) {
  farandole_request given = FARANDOLE_REQUEST_INIT;
  given.struct_size = offsetof(farandole_request, prescale) - 1;
  farandole_request whole;
  EXPECT_THAT(completeRequest(given, whole).message(),
              HasSubstr("initialise the struct with FARANDOLE_REQUEST_INIT"));
}

}  // namespace
}  // namespace farandole::api
