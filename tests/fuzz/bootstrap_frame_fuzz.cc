// Fuzzes the frames of the agent's socket.
#include "bootstrap/wire.h"
#include "stream.h"

namespace farandole::fuzz {
namespace {

using namespace bootstrap::wire;

// The frame that the decoded message encodes to, or nothing if the body was refused.
std::string again(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kPut: {
      Result<Put> put = decodePut(frame.body);
      return put.ok() ? encodePut(frame.id, put->key, put->value) : "";
    }
    case FrameType::kGet: {
      Result<Get> get = decodeGet(frame.body);
      return get.ok() ? encodeGet(frame.id, get->key) : "";
    }
    case FrameType::kFence: {
      Result<Fence> fence = decodeFence(frame.body);
      return fence.ok() ? encodeFence(frame.id, fence->key, fence->count) : "";
    }
    case FrameType::kCancel: return encodeCancel(frame.id);
    case FrameType::kReport: {
      Result<Report> report = decodeReport(frame.body);
      return report.ok() ? encodeReport(report->text) : "";
    }
    case FrameType::kAnswer: {
      Result<Answer> answer = decodeAnswer(frame.body);
      return answer.ok() ? encodeAnswer(frame.id, answer->status, answer->value) : "";
    }
    case FrameType::kRankEnd: {
      Result<bootstrap::RankEnd> end = decodeRankEnd(frame.body);
      return end.ok() ? encodeRankEnd(end.value()) : "";
    }
    case FrameType::kArrived: {
      Result<Arrived> arrived = decodeArrived(frame.body);
      return arrived.ok() ? encodeArrived(arrived->size, arrived->refusal) : "";
    }
    case FrameType::kGone: return encodeGone();
    case FrameType::kRankStop: {
      Result<bootstrap::RankStop> stop = decodeRankStop(frame.body);
      return stop.ok() ? encodeRankStop(stop.value()) : "";
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> seeds() {
  bootstrap::RankEnd end;
  end.rank = 1;
  end.host = "node1";
  const std::vector<std::string> frames = {encodePut(1, "key", "value"),
                                           encodeGet(2, "key"),
                                           encodeFence(3, "key", 4),
                                           encodeCancel(5),
                                           encodeReport("text"),
                                           encodeAnswer(6, {}, "value"),
                                           encodeAnswer(7, Status::timeout("late"), ""),
                                           encodeRankEnd(end),
                                           encodeArrived(2, "no"),
                                           encodeGone(),
                                           encodeRankStop({1, "node1", 17, Standstill::kSignal})};
  std::vector<std::string> all;
  std::string stream;
  for (const std::string& frame : frames) {
    all.push_back(choose(3, frame));
    stream += frame;
  }
  all.push_back(choose(10, stream));
  return all;
}

bool run(std::string_view input) {
  const Cut stream = cutBothWays(input, bootstrap::wire::maxBody);
  bool good = stream.whole;
  for (const Frame& frame : stream.frames) good = checkAgain(again(frame), frame.body) && good;
  return good;
}

}  // namespace farandole::fuzz
