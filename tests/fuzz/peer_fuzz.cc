// Plays a rank that has proved itself and then sends what it likes: a real process set (control
// channel, sequencer or log, plans, ordered channel) among operations of this rank that are in flight,
// joined or cancelled. The input is a list of actions; what the hostile members send is made by the
// encoders from the input's numbers, so that it is well-formed where it must be to get further, or
// taken from the input as it is.
//
// Beyond not crashing: every buffer is its own block of exactly the right size and the engine
// touches all that it is given, so that a wrong size is seen; and in the end nothing of this rank
// is in flight any more.

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "conductor/process_set.h"
#include "control/link_control.h"
#include "fuzz.h"
#include "transport/link_mesh.h"

namespace farandole::fuzz {
namespace {

using collective::OperationPtr;
using collective::Piece;
using conductor::EntryPtr;
using control::encode;
using control::Kind;
using control::LogEntry;
using control::Meta;
using control::Submission;

constexpr int kMembers = 3;
constexpr std::uint32_t kKey = 7;
constexpr int kMostActions = 200;
// A peer may make this rank take memory; how much is not what is looked for here.
constexpr std::int64_t kMostBytes = 1 << 20;

class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  int below(int bound) { return byte() % bound; }
  // Mostly small, sometimes at the edge of a type.
  std::int64_t number() {
    constexpr std::int64_t kEdges[] = {-1,      INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                       1 << 24, 1LL << 32, 1LL << 62, 4096,      65536};
    const std::uint8_t first = byte();
    return first < 200 ? first % 20 : kEdges[first % std::size(kEdges)];
  }
  std::string_view rest(std::size_t most) {
    const auto part = bytes_.substr(0, most);
    bytes_.remove_prefix(part.size());
    return part;
  }

 private:
  std::string_view bytes_;
};

std::string nameFrom(Input& input) {
  return std::string("t") + static_cast<char>('0' + input.below(4));
}

Meta metaFrom(Input& input) {
  Meta meta;
  meta.kind = static_cast<Kind>(input.below(16) - 1);
  meta.dtype = static_cast<DType>(input.below(16));
  meta.op = static_cast<ReduceOp>(input.below(12));
  meta.root = static_cast<std::int32_t>(input.number());
  if (input.below(4) == 0) meta.prescale = static_cast<double>(input.number());
  meta.group = static_cast<std::uint64_t>(input.below(8) == 0 ? input.number() : 0);
  meta.groupSize = static_cast<std::int32_t>(meta.group != 0 ? input.number() : 0);
  for (int i = input.below(4); i > 0; --i) meta.shape.push_back(input.number());
  for (int i = input.below(8) == 0 ? input.below(5) : 0; i > 0; --i) {
    meta.splits.push_back(input.number());
  }
  return meta;
}

control::PlanId planFrom(Input& input) {
  return {static_cast<std::uint32_t>(input.number()), static_cast<std::uint32_t>(input.below(4))};
}

std::vector<std::byte> submissionFrom(Input& input) {
  switch (input.below(5)) {
    case 0: {
      control::Announce announce;
      announce.name = nameFrom(input);
      announce.meta = metaFrom(input);
      announce.shared = input.below(2) == 1;
      return encode(Submission(announce));
    }
    case 1: return encode(Submission(control::Repeat{planFrom(input), input.below(2) == 1}));
    case 2: return encode(Submission(control::Join{}));
    case 3: return encode(Submission(control::Withdraw{nameFrom(input)}));
    default: return encode(Submission(control::Retract{nameFrom(input), input.below(2) == 1}));
  }
}

std::vector<std::int64_t> membersFrom(Input& input) {
  std::vector<std::int64_t> members;
  for (int i = input.below(5); i > 0; --i) members.push_back(input.number());
  return members;
}

std::vector<std::byte> entryFrom(Input& input) {
  switch (input.below(7)) {
    case 0: {
      control::Define define;
      define.plan = planFrom(input);
      define.name = nameFrom(input);
      define.meta = metaFrom(input);
      return encode(LogEntry(define));
    }
    case 1: {
      control::Batch batch;
      for (int i = input.below(4); i > 0; --i) batch.plans.push_back(planFrom(input));
      batch.joined = membersFrom(input);
      return encode(LogEntry(batch));
    }
    case 2: {
      control::Refuse refuse;
      refuse.name = nameFrom(input);
      refuse.text = "refused";
      refuse.culprit = static_cast<std::int32_t>(input.number());
      refuse.spared = membersFrom(input);
      return encode(LogEntry(refuse));
    }
    case 3: return encode(LogEntry(control::Joined{static_cast<std::int32_t>(input.number())}));
    case 4:
      return encode(
          LogEntry(control::Resend{static_cast<std::int32_t>(input.number()), planFrom(input)}));
    case 5:
      return encode(
          LogEntry(control::Withdrawn{static_cast<std::int32_t>(input.number()), nameFrom(input)}));
    default:
      return encode(LogEntry(control::Abort{"over", static_cast<std::int32_t>(input.number())}));
  }
}

std::string asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class DoneAtOnce final : public collective::Operation {
 public:
  collective::Progress progress() override { return collective::Progress::kDone; }
  bool moved() const override { return true; }
  const Status& status() const override { return status_; }

 private:
  Status status_;
};

// An engine that is done at once, and has read and written all that it was given.
class Toucher final : public collective::Communicator {
 public:
  Toucher(int me, Input& input) : me_(me), input_(input) {}
  int member() const override { return me_; }
  int size() const override { return kMembers; }

  OperationPtr allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                         Scale scale) override {
    require(supports(op, dtype) && scale.divisor > 0);
    for (const Piece& piece : pieces) touch(piece.in, piece.out, piece.count, dtype);
    return done();
  }
  OperationPtr allgather(const void* in, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override {
    touch(in, out, sum(counts), dtype, counts[static_cast<std::size_t>(me_)]);
    return done();
  }
  OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) override {
    require(root >= 0 && root < kMembers);
    for (const Piece& piece : pieces)
      touch(piece.in, root == me_ ? nullptr : piece.out, piece.count, dtype);
    return done();
  }
  OperationPtr alltoall(const void* in, std::span<const std::int64_t> sent, void* out,
                        std::span<const std::int64_t> received, DType dtype) override {
    touch(in, out, sum(received), dtype, sum(sent));
    return done();
  }
  OperationPtr reducescatter(const void* in, void* out, std::span<const std::int64_t> counts,
                             DType dtype, ReduceOp op, Scale scale) override {
    require(supports(op, dtype) && scale.divisor > 0);
    touch(in, out, counts[static_cast<std::size_t>(me_)], dtype, sum(counts));
    return done();
  }
  OperationPtr reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op,
                      Scale scale, int root) override {
    require(supports(op, dtype) && scale.divisor > 0 && root >= 0 && root < kMembers);
    touch(in, root == me_ ? out : nullptr, count, dtype);
    return done();
  }
  OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      int root) override {
    require(root >= 0 && root < kMembers);
    touch(in, root == me_ ? out : nullptr, sum(counts), dtype,
          counts[static_cast<std::size_t>(me_)]);
    return done();
  }
  OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) override {
    require(root >= 0 && root < kMembers);
    touch(root == me_ ? in : nullptr, out, counts[static_cast<std::size_t>(me_)], dtype,
          sum(counts));
    return done();
  }
  OperationPtr barrier() override { return done(); }
  OperationPtr send(const void*, std::size_t, int, int) override { return done(); }
  OperationPtr receive(void*, std::size_t, int, int, collective::Received*) override {
    return done();
  }

 private:
  static OperationPtr done() { return std::make_unique<DoneAtOnce>(); }
  static std::int64_t sum(std::span<const std::int64_t> counts) {
    std::int64_t total = 0;
    for (const auto count : counts) {
      require(count >= 0);
      total += count;
    }
    return total;
  }
  // What the others contribute is the input's; sizes are asked for as numbers of 64 bits.
  void touch(const void* in, void* out, std::int64_t written, DType dtype, std::int64_t read = -1) {
    const auto size = static_cast<std::int64_t>(sizeOf(dtype));
    const std::int64_t readBytes = std::min((read < 0 ? written : read) * size, kMostBytes);
    if (in != nullptr) {
      volatile unsigned char sink = 0;
      for (std::int64_t i = 0; i < readBytes; ++i) sink = static_cast<const unsigned char*>(in)[i];
      static_cast<void>(sink);
    }
    if (out == nullptr) return;
    if (dtype == DType::kInt64 && written <= kMembers * kMembers) {
      for (std::int64_t i = 0; i < written; ++i) {
        const std::int64_t number = input_.number();
        std::memcpy(static_cast<char*>(out) + i * 8, &number, 8);
      }
      return;
    }
    std::memset(out, 0x5a, static_cast<std::size_t>(written * size));
  }

  const int me_;
  Input& input_;
};

class Observer final : public conductor::SetObserver {
 public:
  // Exactly once.
  void completed(const EntryPtr& entry) override { require(!entry->done.exchange(true)); }
  void ran(const conductor::Execution&) override {}
  void broken(Status status) override {
    requireOneLine(status.message());
    over = std::move(status);
  }
  Status over;
};

// No connection is ever made: what is sent to the others is lost.
transport::LinkMesh& idleMesh() {
  static const std::unique_ptr<transport::LinkMesh> mesh = [] {
    transport::LinkMeshOptions options;
    options.job = "fuzz";
    options.secretHex = std::string(64, 'a');
    options.size = kMembers;
    options.ports.bind = "127.0.0.1";
    auto started = transport::LinkMesh::start(options);
    require(started.ok());
    return std::move(started.value());
  }();
  return *mesh;
}

// One rank's side of a set.
class Rank {
 public:
  Rank(int me, Input& input) : me_(me), input_(input), switchboard_(idleMesh()) {
    conductor::ProcessSet::Components parts;
    for (int i = 0; i < kMembers; ++i) {
      parts.ranks.push_back(i);
      parts.hosts.push_back("host");
    }
    parts.me = me;
    control::LinkControl::Options control;
    control.key = kKey;
    control.ranks = parts.ranks;
    control.me = me;
    parts.control = std::make_unique<control::LinkControl>(switchboard_, std::move(control));
    parts.communicator = std::make_unique<Toucher>(me, input);
    const std::vector<std::string> names = {"rank 0", "rank 1", "rank 2"};
    if (me == 0) {
      control::Sequencer::Options options;
      options.memberNames = names;
      options.planCapacity = 4;
      parts.sequencer = std::make_unique<control::Sequencer>(std::move(options));
    }
    control::OrderedChannel::Options channel;
    channel.memberNames = names;
    channel.me = me;
    channel.send = [](int, std::string&, std::span<const std::byte>) {};
    channel.wake = [] {};
    auto made = std::make_unique<conductor::OrderedOperations>(std::move(channel));
    channel_ = &made->channel();
    parts.ordered = std::move(made);
    parts.betweenMachines = true;
    parts.isShared = [](const void*, std::size_t) { return false; };
    set_ = std::make_unique<conductor::ProcessSet>(std::move(parts), observer_);
  }

  void act() {
    switch (input_.below(8)) {
      case 0: submit(false); break;
      case 1: submit(true); break;
      case 2: join(); break;
      case 3: hostileControl(); break;
      case 4: hostileControl(); break;
      case 5: hostileRecord(); break;
      case 6: cancel(); break;
      default: step(); break;
    }
    if (observer_.over.ok()) step();
  }

  void end() {
    for (int i = 0; i < 4; ++i) step();
    set_->failAll(Status(Code::kShutdown, "over"));
    step();
    for (const auto& entry : entries_) require(entry->done.load());
    require(!set_->anythingInFlight());
  }
  bool broken() const { return !observer_.over.ok(); }

 private:
  EntryPtr newEntry() {
    auto entry = std::make_shared<conductor::Entry>();
    entry->handle = entries_.size() + 1;
    entry->submitted = Clock::now();
    return entry;
  }

  void submit(bool ordered) {
    // What a caller may pass: the api's checks are not what is fuzzed here.
    constexpr Kind kKinds[] = {Kind::kAllreduce,     Kind::kAllgather, Kind::kBroadcast,
                               Kind::kAlltoall,      Kind::kReduce,    Kind::kGather,
                               Kind::kReducescatter, Kind::kScatter,   Kind::kBarrier};
    const EntryPtr entry = newEntry();
    conductor::Request& request = entry->request;
    request.name = nameFrom(input_);
    request.ordered = ordered;
    Meta& meta = request.meta;
    meta.kind = kKinds[input_.below(std::size(kKinds))];
    meta.dtype = input_.below(2) == 0 ? DType::kFloat32 : DType::kInt16;
    meta.op = input_.below(2) == 0 ? ReduceOp::kSum : ReduceOp::kAverage;
    const bool rooted = meta.kind == Kind::kBroadcast || meta.kind == Kind::kReduce ||
                        meta.kind == Kind::kGather || meta.kind == Kind::kScatter;
    meta.root = rooted ? input_.below(kMembers) : 0;
    const std::int64_t rows =
        meta.kind == Kind::kAlltoall ? kMembers * input_.below(3) : input_.below(6);
    if (meta.kind != Kind::kBarrier) meta.shape = {rows, 2};
    auto memory = std::make_unique<std::byte[]>(static_cast<std::size_t>(meta.bytes()));
    request.input = memory.get();
    const bool ownOutput = meta.kind == Kind::kAllreduce || meta.kind == Kind::kBroadcast ||
                           meta.kind == Kind::kReduce;
    if (ownOutput) request.output = memory.get();
    memory_.push_back(std::move(memory));
    const EntryPtr all[] = {entry};
    if (set_->submit(all).ok()) entries_.push_back(entry);
  }

  void join() {
    const EntryPtr entry = newEntry();
    entry->request.meta.kind = Kind::kJoin;
    const EntryPtr all[] = {entry};
    if (set_->submit(all).ok()) entries_.push_back(entry);
  }

  void cancel() {
    if (!entries_.empty()) set_->cancel(entries_[input_.byte() % entries_.size()]);
  }

  int hostileMember() { return me_ == 0 ? 1 + input_.below(kMembers - 1) : 2 * input_.below(2); }

  static bool greedy(std::span<const std::byte> record, bool log) {
    const auto large = [](const Meta& meta) { return meta.bytes() > kMostBytes; };
    if (log) {
      const auto entry = control::decodeLogEntry(record, kMembers);
      const auto* define = entry ? std::get_if<control::Define>(&*entry) : nullptr;
      return define != nullptr && large(define->meta);
    }
    const auto submission = control::decodeSubmission(record, kMembers);
    const auto* announce = submission ? std::get_if<control::Announce>(&*submission) : nullptr;
    return announce != nullptr && large(announce->meta);
  }

  void hostileControl() {
    const int from = hostileMember();
    std::string message(control::Switchboard::kFront, '\0');
    std::memcpy(message.data(), &kKey, sizeof kKey);
    const int shape = input_.below(8);
    if (shape == 0) {
      message += input_.rest(input_.byte());
    } else {
      const std::vector<std::byte> record = shape == 1 ? std::vector<std::byte>()
                                            : me_ == 0 ? submissionFrom(input_)
                                                       : entryFrom(input_);
      if (greedy(record, me_ != 0)) return;
      // kSubmit with whether it waits, or kEntry; or any other type with its numbers.
      if (shape > 1) {
        message += me_ == 0 ? std::string("\1\0", 2) : std::string("\5");
        message += asText(record);
      } else {
        message += static_cast<char>(input_.below(9));
        for (int i = input_.below(3); i > 0; --i) {
          const std::int64_t number = input_.number();
          message.append(reinterpret_cast<const char*>(&number), 8);
        }
      }
    }
    static_cast<void>(switchboard_.control().deliver(from, message));
  }

  void hostileRecord() {
    const int from = (me_ + 1 + input_.below(kMembers - 1)) % kMembers;
    std::string bytes;
    if (input_.below(4) == 0) {
      bytes = input_.rest(input_.byte());
    } else {
      const Meta meta = metaFrom(input_);
      const auto head = control::encodeOrderedHead(nameFrom(input_), meta);
      const std::string payload(static_cast<std::size_t>(input_.below(64)), 'p');
      bytes = control::encodeOrdered(
          {input_.below(16) == 0, static_cast<std::uint64_t>(input_.number()), head,
           std::as_bytes(std::span(payload))},
          0);
    }
    RawBytes message;  // its own block, so that a read beyond it is seen
    message.renew(bytes.size());
    if (!bytes.empty()) std::memcpy(message.data(), bytes.data(), bytes.size());
    channel_->receive(from, message);
  }

  void step() {
    for (int i = 0; i < 8 && set_->step(Clock::now()); ++i) {
    }
    set_->checkStalls(Clock::now(), {}, std::chrono::hours(1), Duration::zero());
  }

  const int me_;
  Input& input_;
  Observer observer_;
  control::Switchboard switchboard_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;  // outlives the set
  std::vector<EntryPtr> entries_;
  std::unique_ptr<conductor::ProcessSet> set_;
  control::OrderedChannel* channel_ = nullptr;
};

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  // Both sides; submissions and joins among hostile messages of every kind.
  for (char me = 0; me < 2; ++me) {
    for (char kind = 0; kind < 8; ++kind) {
      std::string seed(1, me);
      for (int i = 0; i < 24; ++i) {
        seed += static_cast<char>(i % 3 == 0 ? 0 : i % 7 == 0 ? 2 : 3);
        for (int k = 0; k < 9; ++k) seed += static_cast<char>((i * 5 + k * kind) % 23);
      }
      all.push_back(seed);
    }
  }
  return all;
}

bool run(std::string_view bytes) {
  if (bytes.empty()) return false;
  Input input(bytes);
  Rank rank(input.below(2), input);
  for (int i = 0; i < kMostActions && !input.empty() && !rank.broken(); ++i) rank.act();
  rank.end();
  return true;
}

}  // namespace farandole::fuzz
