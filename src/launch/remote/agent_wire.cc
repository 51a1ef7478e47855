#include "launch/remote/agent_wire.h"

#include "base/bytes.h"

namespace farandole::launch::remote {
namespace {

using Reader = ByteReader;

constexpr std::size_t kMaxText = std::size_t{64} << 10;
constexpr std::size_t kMaxWord = std::size_t{1} << 20;  // an argument, a variable
constexpr std::size_t kMaxStart = std::size_t{16} << 20;
constexpr std::size_t kMaxJson = std::size_t{4} << 20;

Status malformed(const char* what) {
  return Status::invalid(std::string("malformed message between launcher and agent: ") + what);
}

void appendNumber(std::string& out, int value) {
  appendInteger(out, static_cast<std::uint32_t>(value));
}
int number(Reader& reader) { return static_cast<std::int32_t>(reader.integer<std::uint32_t>()); }

void appendWords(std::string& out, const std::vector<std::string>& words) {
  appendInteger(out, static_cast<std::uint32_t>(words.size()));
  for (const std::string& word : words) appendText(out, word);
}
std::vector<std::string> words(Reader& reader) {
  std::vector<std::string> result;
  const std::uint32_t count = reader.count(4);
  for (std::uint32_t i = 0; i < count && reader.good(); ++i)
    result.push_back(reader.text(kMaxWord));
  return result;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;
void appendPairs(std::string& out, const Pairs& pairs) {
  appendInteger(out, static_cast<std::uint32_t>(pairs.size()));
  for (const auto& [name, value] : pairs) {
    appendText(out, name);
    appendText(out, value);
  }
}
Pairs pairs(Reader& reader) {
  Pairs result;
  const std::uint32_t count = reader.count(8);
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    std::string name = reader.text(kMaxWord);
    std::string value = reader.text(kMaxWord);
    result.emplace_back(std::move(name), std::move(value));
  }
  return result;
}

// The body of a frame of the bootstrap's.
std::string_view bodyOf(std::string_view frame) {
  return frame.substr(bootstrap::wire::kHeaderBytes);
}

}  // namespace

std::optional<std::size_t> maxBody(std::uint16_t type) {
  constexpr std::size_t kRelay = std::size_t{2} << 20;  // above the largest frame of the bootstrap
  switch (static_cast<Type>(type)) {
    case Type::kStart: return kMaxStart;
    case Type::kInput: return kInputWindow;
    case Type::kToRank:
    case Type::kFromRank: return kRelay;
    case Type::kOutput: return 8 + kMaxChunk;
    case Type::kAsk:
    case Type::kReply: return kMaxJson;
    case Type::kStarted: return std::size_t{8} << 20;
    case Type::kHello:
    case Type::kRefused:
    case Type::kRankEnded:
    case Type::kRankEndedElsewhere:
    case Type::kGone: return kMaxText;
    case Type::kSignal:
    case Type::kCredit:
    case Type::kHold:
    case Type::kTaken: return 4;
    case Type::kNoticed:
    case Type::kFinish:
    case Type::kGo:
    case Type::kPrepared:
    case Type::kBeat: return 0;
  }
  return std::nullopt;
}

Frame fromWire(bootstrap::wire::Frame frame) {
  return {static_cast<Type>(static_cast<std::uint16_t>(frame.type)), frame.id,
          std::move(frame.body)};
}

std::string encode(Type type, std::string_view body, std::uint64_t id) {
  const std::size_t limit = maxBody(static_cast<std::uint16_t>(type)).value_or(0);
  return bootstrap::wire::encodeFrame(static_cast<std::uint16_t>(type), id, body.substr(0, limit));
}

std::string encodeNumber(Type type, std::uint32_t value) {
  std::string body;
  appendInteger(body, value);
  return encode(type, body);
}

std::string encodeHello(const Hello& hello) {
  std::string body;
  for (const std::string* text :
       {&hello.version, &hello.hostName, &hello.machine, &hello.sshConnection, &hello.network}) {
    appendText(body, std::string_view(*text).substr(0, 1024));
  }
  appendNumber(body, hello.cpus);
  appendNumber(body, hello.freePort);
  appendWords(body, hello.addresses);
  return encode(Type::kHello, body);
}

std::string encodeStart(const launch::plan::JobPlan& plan) {
  std::string body;
  for (const std::string* text :
       {&plan.job, &plan.secret, &plan.masterAddress, &plan.folder, &plan.interfaces}) {
    appendText(body, *text);
  }
  appendText(body, plan.bindTo == launch::plan::BindTo::kNone ? "" : bindToWord(plan.bindTo));
  for (const int value : {plan.total, plan.masterPort, plan.threads, plan.restart, plan.maxRestarts,
                          static_cast<int>(plan.hostIndex)}) {
    appendNumber(body, value);
  }
  appendWords(body, plan.command);
  appendPairs(body, plan.settings);
  appendPairs(body, plan.environment);
  appendWords(body, plan.cpuSets);
  appendInteger(body, static_cast<std::uint32_t>(plan.ranks.size()));
  for (const launch::plan::RankPlan& rank : plan.ranks) {
    for (const int value :
         {rank.rank, rank.localRank, rank.localSize, rank.crossRank, rank.crossSize}) {
      appendNumber(body, value);
    }
    appendText(body, rank.host);
  }
  return encode(Type::kStart, body);
}

std::string encodePids(const std::vector<std::pair<int, int>>& pids) {
  std::string body;
  for (const auto& [rank, pid] : pids) {
    appendNumber(body, rank);
    appendNumber(body, pid);
  }
  return encode(Type::kStarted, body);
}

std::string encodeOutputHead(int rank, launch::output::Stream stream, std::size_t bytes) {
  std::string head =
      bootstrap::wire::encodeHeader(static_cast<std::uint16_t>(Type::kOutput), 0, 8 + bytes);
  appendNumber(head, rank);
  appendNumber(head, static_cast<int>(stream));
  return head;
}

std::string encodeOutput(int rank, launch::output::Stream stream, std::string_view bytes) {
  return encodeOutputHead(rank, stream, bytes.size()).append(bytes);
}

std::string encodeRankEnded(const bootstrap::RankEnd& end, bool ordered) {
  std::string body;
  appendNumber(body, ordered ? 1 : 0);
  body += bodyOf(bootstrap::wire::encodeRankEnd(end));
  return encode(Type::kRankEnded, body);
}

std::string encodeElsewhere(const bootstrap::RankEnd& end) {
  const std::string frame = bootstrap::wire::encodeRankEnd(end);
  return encode(Type::kRankEndedElsewhere, bodyOf(frame));
}

std::string encodeRelay(Type type, int rank, std::string_view frame) {
  std::string body;
  appendNumber(body, rank);
  body += frame;
  return encode(type, body);
}

Result<std::uint32_t> decodeNumber(std::string_view body) {
  Reader reader(body);
  const auto value = reader.integer<std::uint32_t>();
  if (!reader.finished()) return malformed("number");
  return value;
}

Result<Hello> decodeHello(std::string_view body) {
  Reader reader(body);
  Hello hello;
  for (std::string* text :
       {&hello.version, &hello.hostName, &hello.machine, &hello.sshConnection, &hello.network}) {
    *text = reader.text(1024);
  }
  hello.cpus = number(reader);
  hello.freePort = number(reader);
  hello.addresses = words(reader);
  if (!reader.finished()) return malformed("greeting");
  return hello;
}

Result<launch::plan::JobPlan> decodeStart(std::string_view body) {
  Reader reader(body);
  launch::plan::JobPlan plan;
  for (std::string* text :
       {&plan.job, &plan.secret, &plan.masterAddress, &plan.folder, &plan.interfaces}) {
    *text = reader.text(kMaxWord);
  }
  bool sane = true;
  if (const std::string bindTo = reader.text(kMaxWord); !bindTo.empty()) {
    auto parsed = launch::plan::parseBindTo(bindTo);
    sane = parsed.ok() && *parsed != launch::plan::BindTo::kNone;
    if (sane) plan.bindTo = *parsed;
  }
  int host = 0;
  for (int* value :
       {&plan.total, &plan.masterPort, &plan.threads, &plan.restart, &plan.maxRestarts, &host}) {
    *value = number(reader);
  }
  plan.hostIndex = static_cast<std::size_t>(host);
  plan.command = words(reader);
  plan.settings = pairs(reader);
  plan.environment = pairs(reader);
  plan.cpuSets = words(reader);
  const std::uint32_t count = reader.count(24);
  sane = sane && plan.total >= 1 && count >= 1;
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    launch::plan::RankPlan rank;
    for (int* value :
         {&rank.rank, &rank.localRank, &rank.localSize, &rank.crossRank, &rank.crossSize}) {
      *value = number(reader);
    }
    rank.host = reader.text(bootstrap::wire::kMaxHost);
    rank.hostIndex = plan.hostIndex;
    sane = sane && rank.rank >= 0 && rank.rank < plan.total && rank.localRank >= 0 &&
           rank.localRank < rank.localSize;
    plan.ranks.push_back(std::move(rank));
  }
  if (!reader.finished() || !sane || plan.command.empty()) return malformed("start");
  return plan;
}

Result<std::vector<std::pair<int, int>>> decodePids(std::string_view body) {
  Reader reader(body);
  std::vector<std::pair<int, int>> pids;
  for (std::size_t i = 0; i < body.size() / 8; ++i) {
    const int rank = number(reader);
    pids.emplace_back(rank, number(reader));
  }
  if (!reader.finished()) return malformed("process numbers");
  return pids;
}

Result<Output> decodeOutput(std::string_view body) {
  Reader reader(body);
  Output output;
  output.rank = number(reader);
  const int stream = number(reader);
  output.bytes = reader.remainder();
  if (!reader.good() || stream < 0 || stream > 1) return malformed("output");
  output.stream = static_cast<launch::output::Stream>(stream);
  return output;
}

Result<Ended> decodeRankEnded(std::string_view body) {
  Reader reader(body);
  const int ordered = number(reader);
  const std::string_view rest = reader.remainder();
  if (!reader.good() || ordered < 0 || ordered > 1) return malformed("end of a rank");
  Result<bootstrap::RankEnd> end = bootstrap::wire::decodeRankEnd(rest);
  if (!end.ok()) return end.status();
  return Ended{std::move(*end), ordered == 1};
}

Result<bootstrap::RankEnd> decodeElsewhere(std::string_view body) {
  return bootstrap::wire::decodeRankEnd(body);
}

Result<Relay> decodeRelay(std::string_view body) {
  Reader reader(body);
  Relay relay;
  relay.rank = number(reader);
  relay.frame = std::string(reader.remainder());
  if (!reader.good()) return malformed("relay");
  return relay;
}

}  // namespace farandole::launch::remote
