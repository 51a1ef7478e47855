// What the launcher and the agent of another machine say to each other through ssh's pipe.
//
// Frames as in bootstrap/wire.h, with types of their own. Before the first frame the agent prints a
// line that begins with kGreeting: whatever a login shell printed before it is noise.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire.h"
#include "launch/output/output_writer.h"
#include "launch/plan/job_plan.h"

namespace farandole::launch::remote {

inline constexpr std::string_view kGreeting = "FARANDOLE-AGENT ";
// The remote script has found no tree of ours and waits for one. What machine it is; if it has a
// tree that is damaged, kDamaged and what is wrong with it follow.
inline constexpr std::string_view kNeed = "FARANDOLE-NEED ";
// It may not ask for one.
inline constexpr std::string_view kMissing = "FARANDOLE-MISSING ";
inline constexpr std::string_view kPushFailed = "FARANDOLE-PUSH-FAILED ";
// Others may have written what would be executed there.
inline constexpr std::string_view kUnsafe = "FARANDOLE-UNSAFE ";
inline constexpr std::string_view kDamaged = " damaged: ";

// Output that may be in flight before the launcher says that it has been taken.
inline constexpr std::size_t kOutputWindow = std::size_t{2} << 20;
inline constexpr std::size_t kInputWindow = std::size_t{256} << 10;
// Both sides say that they live, and take the other for lost after so much silence.
inline constexpr auto kBeatEvery = std::chrono::seconds(1);
inline constexpr auto kSilence = std::chrono::seconds(8);
inline constexpr std::size_t kMaxChunk = std::size_t{256} << 10;

enum class Type : std::uint16_t {
  // from the launcher
  kStart = 64,          // a job to get ready for: encodeStart
  kSignal,              // u32: to all ranks of the machine
  kInput,               // bytes for rank 0's stdin; none: its end
  kCredit,              // u32: so many bytes of output have been taken
  kToRank,              // u32 rank, a frame of the bootstrap: for its connection
  kRankEndedElsewhere,  // RankEnd: to be passed on to the ranks here
  kHold,                // u32: 1 the launcher is being stopped, 0 it goes on
  kFinish,              // nothing more will come: end what is left, and go
  kAsk,                 // a question in JSON; the id is answered with kReply
  kGo,                  // all machines are prepared: start the ranks
  // from the agent
  kHello = 96,  // encodeHello
  kStarted,     // encodePids
  kRefused,     // text: why the job cannot be started here
  kOutput,      // u32 rank, u32 stream, bytes
  kRankEnded,   // u32 ordered, RankEnd
  kFromRank,    // u32 rank, a frame of the bootstrap
  kTaken,       // u32: so many bytes of input have been taken
  kGone,        // text: what the ranks had left behind; the agent ends now
  kReply,       // JSON
  kNoticed,     // a process has opened MASTER_PORT: torch.distributed is at work
  kPrepared,    // the job could be started here
  // both ways
  kBeat = 128,
};

std::optional<std::size_t> maxBody(std::uint16_t type);

struct Frame {
  Type type;
  std::uint64_t id;
  std::string body;
};
Frame fromWire(bootstrap::wire::Frame frame);
// A frame whose body still lies in the decoder.
struct FrameView {
  Type type;
  std::uint64_t id;
  std::string_view body;
};

struct Hello {
  std::string version;
  std::string hostName;
  std::string machine;        // equal on two agents: the same kernel and the same processes
  std::string sshConnection;  // SSH_CONNECTION: client address, port, own address, port
  std::string network{};      // and
  std::vector<std::string> addresses{};  // see HostAddresses
  int cpus = 0;
  int freePort = 0;
};

std::string encode(Type type, std::string_view body = {}, std::uint64_t id = 0);
std::string encodeNumber(Type type, std::uint32_t number);
std::string encodeHello(const Hello& hello);
// The plan with the ranks of the machine it is sent to. Secret and environment travel in it.
std::string encodeStart(const launch::plan::JobPlan& plan);
std::string encodePids(const std::vector<std::pair<int, int>>& pids);
std::string encodeOutput(int rank, launch::output::Stream stream, std::string_view bytes);
// All of that frame but the bytes, which follow it.
std::string encodeOutputHead(int rank, launch::output::Stream stream, std::size_t bytes);
std::string encodeRankEnded(const bootstrap::RankEnd& end, bool ordered);
std::string encodeElsewhere(const bootstrap::RankEnd& end);
std::string encodeRelay(Type type, int rank, std::string_view frame);

struct Output {
  int rank = 0;
  launch::output::Stream stream = launch::output::Stream::kOut;
  std::string_view bytes;  // of the body it was decoded from
};
struct Ended {
  bootstrap::RankEnd end;
  bool ordered = false;
};
struct Relay {
  int rank = 0;
  std::string frame;
};

Result<std::uint32_t> decodeNumber(std::string_view body);
Result<Hello> decodeHello(std::string_view body);
Result<launch::plan::JobPlan> decodeStart(std::string_view body);
Result<std::vector<std::pair<int, int>>> decodePids(std::string_view body);
Result<Output> decodeOutput(std::string_view body);
Result<Ended> decodeRankEnded(std::string_view body);
Result<bootstrap::RankEnd> decodeElsewhere(std::string_view body);
Result<Relay> decodeRelay(std::string_view body);

}  // namespace farandole::launch::remote
