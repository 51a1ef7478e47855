// The initial values of the C ABI's structs are the same in C and in C++, whichever the standard.
#include "c_header.h"

#include <gtest/gtest.h>

namespace {

void checkRequest(const farandole_request& request) {
  EXPECT_EQ(request.struct_size, sizeof(farandole_request));
  EXPECT_EQ(request.prescale, 1.0);
  EXPECT_EQ(request.postscale, 1.0);
  EXPECT_EQ(request.output_bytes, FARANDOLE_BYTES_UNKNOWN);

  EXPECT_EQ(request.operation, 0);
  EXPECT_EQ(request.dtype, 0);
  EXPECT_EQ(request.op, 0);
  EXPECT_EQ(request.root, 0);
  EXPECT_EQ(request.set, 0);
  EXPECT_EQ(request.flags, 0U);
  EXPECT_EQ(request.tag, 0);
  EXPECT_EQ(request.name, nullptr);
  EXPECT_EQ(request.input, nullptr);
  EXPECT_EQ(request.output, nullptr);
  EXPECT_EQ(request.shape, nullptr);
  EXPECT_EQ(request.ndim, 0);
  EXPECT_EQ(request.nsplits, 0);
  EXPECT_EQ(request.splits, nullptr);
  EXPECT_EQ(request.group, 0U);
  EXPECT_EQ(request.allocate, nullptr);
  EXPECT_EQ(request.allocate_user, nullptr);
  EXPECT_EQ(request.on_complete, nullptr);
  EXPECT_EQ(request.on_complete_user, nullptr);
  EXPECT_EQ(request.queue, nullptr);
  EXPECT_EQ(request.queue_tag, 0U);
}

void checkOptions(const farandole_init_options& options) {
  EXPECT_EQ(options.struct_size, sizeof(farandole_init_options));
  EXPECT_EQ(options.reserved, 0U);
  EXPECT_EQ(options.timeout_ms, 0);
}

TEST(CHeader, RequestsBeginAlikeInEveryLanguage) {
  checkRequest(requestFromC());
  checkRequest(requestFromCpp11());
  const farandole_request request = FARANDOLE_REQUEST_INIT;
  checkRequest(request);
}

TEST(CHeader, InitOptionsBeginAlikeInEveryLanguage) {
  checkOptions(optionsFromC());
  checkOptions(optionsFromCpp11());
  const farandole_init_options options = FARANDOLE_INIT_OPTIONS_INIT;
  checkOptions(options);
}

}  // namespace
