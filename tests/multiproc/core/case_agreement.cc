// What ranks must agree about, and what happens when they do not.
#include <cmath>
#include <limits>

#include "multiproc/core/rank.h"

namespace farandole::test {
namespace {

constexpr int kOdd = 1;  // the rank that is different

farandole_error requireMismatch(const farandole_request& request, farandole_handle& handle) {
  handle = submit(request);
  REQUIRE_CODE(FARANDOLE_MISMATCH, farandole_wait(handle, -1));
  const farandole_error error = errorOf(handle);
  REQUIRE(error.code == FARANDOLE_MISMATCH);
  REQUIRE(std::string(error.tensor) == request.name);
  return error;
}

void requireNames(const farandole_error& error, const std::string& usual, const std::string& odd) {
  for (const std::string& text :
       {std::string("rank 0"), "rank " + std::to_string(kOdd), usual, odd})
    if (!contains(error, text))
      fail(__FILE__, __LINE__, "'" + text + "' is not in: " + error.message);
}

}  // namespace

// mismatch dtype|shape|op|root|scale [ordered]: all ranks are told, and the job goes on.
CORE_CASE(mismatch) {
  REQUIRE_OK(farandole_init(nullptr));
  const std::string& what = arguments.at(0);
  const bool odd = farandole_rank() == kOdd;
  const auto n = static_cast<float>(farandole_size());
  requireSum("x", 1.0F, n);  // "x" has a plan by now
  for (int round = 0; round < 3; ++round) {
    double data[8] = {};
    std::int64_t shape[2] = {2, 3};
    farandole_request request = allreduceOf("x", data, shape, 2);
    if (arguments.size() > 1) request.flags |= FARANDOLE_FLAG_ORDERED;
    std::string usual;
    std::string different;
    if (what == "dtype") {
      if (odd) request.dtype = FARANDOLE_INT64;
      usual = "float32", different = "int64";
    } else if (what == "shape") {
      if (odd) shape[1] = 4;
      usual = "3", different = "4";
    } else if (what == "op") {
      if (odd) request.op = FARANDOLE_MAX;
      usual = "sum", different = "max";
    } else if (what == "root") {
      request.operation = FARANDOLE_BROADCAST;
      request.root = odd ? 1 : 0;
      usual = "root", different = "1";
    } else {
      if (odd) request.postscale = 0.5;
      usual = "scale", different = "0.5";
    }
    farandole_handle handle = 0;
    requireNames(requireMismatch(request, handle), usual, different);
    REQUIRE_OK(farandole_release(handle));
    requireSum("x", 2.0F, 2 * n);
    requireSum("y", 1.0F, n);
  }
  REQUIRE_OK(farandole_shutdown());
}

// A name is in flight once.
CORE_CASE(duplicate_name) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  const std::int64_t one = 1;
  float first = 1;
  float second = 1;
  if (farandole_rank() != 0) requireSum("gate", 1.0F, n);  // "twice" cannot run before this
  const farandole_request request = allreduceOf("twice", &first, &one);
  const farandole_handle handle = submit(request);
  if (farandole_rank() == 0) {
    farandole_handle refused = 7;
    const farandole_request again = allreduceOf("twice", &second, &one);
    REQUIRE_CODE(FARANDOLE_DUPLICATE_NAME, farandole_submit(&again, 1, &refused));
    REQUIRE(lastMessage().find("'twice'") != std::string::npos);
    // All or nothing: the one with a free name was not started either.
    const farandole_request both[2] = {allreduceOf("free", &second, &one), again};
    farandole_handle none[2] = {};
    REQUIRE_CODE(FARANDOLE_DUPLICATE_NAME, farandole_submit(both, 2, none));
    const farandole_request pair[2] = {allreduceOf("free", &second, &one),
                                       allreduceOf("free", &second, &one)};
    REQUIRE_CODE(FARANDOLE_DUPLICATE_NAME, farandole_submit(pair, 2, none));
    requireSum("gate", 1.0F, n);
  }
  REQUIRE_OK(farandole_wait(handle, -1));
  REQUIRE(first == n);
  REQUIRE_OK(farandole_release(handle));
  requireSum("twice", 3.0F, 3 * n);
  requireSum("free", 3.0F, 3 * n);
  REQUIRE_OK(farandole_shutdown());
}

// A group runs as a whole or not at all.
CORE_CASE(groups) {
  REQUIRE_OK(farandole_init(nullptr));
  const auto n = static_cast<float>(farandole_size());
  const bool odd = farandole_rank() == kOdd;
  const char* const names[4] = {"a", "b", "c", "d"};
  for (int round = 0; round < 6; ++round) {
    const bool spoiled = round % 2 == 1;
    float data[4][2];
    std::int64_t shapes[4] = {2, 2, 2, 2};
    farandole_request requests[4];
    farandole_handle handles[4];
    for (int i = 0; i < 4; ++i) {
      data[i][0] = data[i][1] = static_cast<float>(i + 1);
      requests[i] = allreduceOf(names[i], data[i], &shapes[i]);
      requests[i].group = 5;
    }
    if (spoiled && odd) shapes[round % 4] = 1;
    REQUIRE_OK(farandole_submit(requests, 4, handles));
    for (int i = 0; i < 4; ++i) {
      REQUIRE_CODE(spoiled ? FARANDOLE_MISMATCH : FARANDOLE_OK, farandole_wait(handles[i], -1));
      if (spoiled) {
        const farandole_error error = errorOf(handles[i]);
        REQUIRE(contains(error, names[round % 4]));
        REQUIRE(data[i][0] == static_cast<float>(i + 1));
      } else {
        REQUIRE(data[i][0] == n * static_cast<float>(i + 1));
      }
      REQUIRE_OK(farandole_release(handles[i]));
    }
  }
  // An incomplete group waits, whole: one rank is late with it.
  float data[2] = {1, 1};
  const std::int64_t one = 1;
  farandole_request requests[2] = {allreduceOf("late.a", &data[0], &one),
                                   allreduceOf("late.b", &data[1], &one)};
  for (auto& request : requests) request.group = 9;
  farandole_handle handles[2];
  if (odd) requireSum("before", 1.0F, n);
  REQUIRE_OK(farandole_submit(requests, 2, handles));
  if (!odd) {
    REQUIRE_CODE(FARANDOLE_TIMEOUT, farandole_wait(handles[0], 30));
    requireSum("before", 1.0F, n);
  }
  for (int i = 0; i < 2; ++i) {
    REQUIRE_OK(farandole_wait(handles[i], -1));
    REQUIRE(data[i] == n);
    REQUIRE_OK(farandole_release(handles[i]));
  }
  REQUIRE_OK(farandole_shutdown());
}

// Values and shapes at the edges.
CORE_CASE(edge_values) {
  REQUIRE_OK(farandole_init(nullptr));
  const int n = farandole_size();
  const bool first = farandole_rank() == 0;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float special[4] = {first ? std::nanf("") : 1.0F, first ? kInf : 1.0F, first ? -kInf : kInf,
                      first ? -kInf : 0.0F};
  const std::int64_t four = 4;
  REQUIRE_OK(run(allreduceOf("special", special, &four)));
  REQUIRE(std::isnan(special[0]));
  REQUIRE(special[1] == kInf);
  REQUIRE(std::isnan(special[2]));
  REQUIRE(special[3] == -kInf);

  const std::int64_t nothing[2] = {0, 3};
  for (const int operation : {FARANDOLE_ALLREDUCE, FARANDOLE_BROADCAST, FARANDOLE_ALLGATHER,
                              FARANDOLE_ALLTOALL, FARANDOLE_REDUCESCATTER, FARANDOLE_GATHER}) {
    farandole_request empty = allreduceOf("empty", nullptr, nothing, 2);
    empty.operation = operation;
    REQUIRE_OK(run(empty));
  }
  // One rank brings rows, the others none.
  const float rows[6] = {1, 2, 3, 4, 5, 6};
  const std::int64_t some[2] = {first ? 2 : 0, 3};
  farandole_request gather = allreduceOf("rows", nullptr, some, 2);
  gather.operation = FARANDOLE_ALLGATHER;
  gather.input = first ? rows : nullptr;
  const farandole_handle handle = submit(gather);
  REQUIRE_OK(farandole_wait(handle, -1));
  farandole_result result = emptyResult();
  REQUIRE_OK(farandole_get_result(handle, &result));
  REQUIRE(result.ndim == 2 && result.shape[0] == 2 && result.shape[1] == 3);
  REQUIRE(result.bytes == sizeof rows && static_cast<const float*>(result.data)[5] == 6);
  REQUIRE(result.nsplits == n && result.splits[0] == 2 && result.splits[n - 1] == 0);
  REQUIRE_OK(farandole_release(handle));

  float scalar = 2;
  REQUIRE_OK(run(allreduceOf("scalar", &scalar, nullptr, 0)));
  REQUIRE(scalar == static_cast<float>(2 * n));
  REQUIRE_OK(farandole_shutdown());
}

}  // namespace farandole::test
