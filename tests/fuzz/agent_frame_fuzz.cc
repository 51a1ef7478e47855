// Fuzzes what the launcher and the agents of other machines say to each other.
#include "launch/remote/agent_wire.h"
#include "stream.h"

namespace farandole::fuzz {
namespace {

using namespace launch::remote;

std::string again(const Frame& frame) {
  const std::string_view body = frame.body;
  switch (frame.type) {
    case Type::kStart: {
      auto plan = decodeStart(body);
      return plan.ok() ? encodeStart(*plan) : "";
    }
    case Type::kHello: {
      auto hello = decodeHello(body);
      return hello.ok() ? encodeHello(*hello) : "";
    }
    case Type::kStarted: {
      auto pids = decodePids(body);
      return pids.ok() ? encodePids(*pids) : "";
    }
    case Type::kOutput: {
      auto output = decodeOutput(body);
      return output.ok() ? encodeOutput(output->rank, output->stream, output->bytes) : "";
    }
    case Type::kRankEnded: {
      auto ended = decodeRankEnded(body);
      return ended.ok() ? encodeRankEnded(ended->end, ended->ordered) : "";
    }
    case Type::kRankEndedElsewhere: {
      auto end = decodeElsewhere(body);
      return end.ok() ? encodeElsewhere(*end) : "";
    }
    case Type::kToRank:
    case Type::kFromRank: {
      auto relay = decodeRelay(body);
      return relay.ok() ? encodeRelay(frame.type, relay->rank, relay->frame) : "";
    }
    case Type::kSignal:
    case Type::kCredit:
    case Type::kHold:
    case Type::kTaken: {
      auto number = decodeNumber(body);
      return number.ok() ? encodeNumber(frame.type, *number) : "";
    }
    case Type::kInput:
    case Type::kGo:
    case Type::kFinish:
    case Type::kPrepared:
    case Type::kNoticed:
    case Type::kAsk:
    case Type::kRefused:
    case Type::kGone:
    case Type::kReply:
    case Type::kBeat: return encode(frame.type, body, frame.id);
  }
  return "";
}

launch::plan::JobPlan plan() {
  launch::plan::JobPlan plan;
  plan.job = "job";
  plan.secret = "00112233";
  plan.total = 3;
  plan.bindTo = launch::plan::BindTo::kCore;
  plan.folder = "/home";
  plan.command = {"python3", "train.py"};
  plan.settings = {{"FARANDOLE_LOG", "info"}};
  plan.environment = {{"PATH", "/bin"}};
  plan.cpuSets = {"0-3", "4"};
  plan.ranks = {{1, 0, 2, 1, 2, "node1"}, {2, 1, 2, 1, 2, "node1"}};
  return plan;
}

}  // namespace

std::vector<std::string> seeds() {
  bootstrap::RankEnd end;
  end.rank = 1;
  end.host = "node1";
  const std::vector<std::string> frames = {
      encodeStart(plan()),
      encodeHello(
          {"0.1.0", "node1", "boot", "10.0.0.1 22 10.0.0.2 22", "net", {"10.0.0.2"}, 4, 29500}),
      encodePids({{0, 100}, {1, 101}}),
      encodeOutput(1, launch::output::Stream::kErr, "text\n"),
      encodeRankEnded(end, true),
      encodeElsewhere(end),
      encodeRelay(Type::kToRank, 1, bootstrap::wire::encodeGet(2, "key")),
      encodeRelay(Type::kFromRank, 1, bootstrap::wire::encodePut(2, "key", "value")),
      encodeNumber(Type::kSignal, 15),
      encodeNumber(Type::kCredit, 65536),
      encode(Type::kInput, "typed\n"),
      encode(Type::kAsk, "{}", 7),
      encode(Type::kBeat)};
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
  Cut stream = cutBothWays(input, launch::remote::maxBody);
  bool good = stream.whole;
  for (bootstrap::wire::Frame& one : stream.frames) {
    const Frame frame = fromWire(std::move(one));
    good = checkAgain(again(frame), frame.body) && good;
  }
  return good;
}

}  // namespace farandole::fuzz
