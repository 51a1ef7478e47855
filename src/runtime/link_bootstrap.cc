#include "runtime/link_bootstrap.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/suspension.h"

namespace farandole::runtime {
namespace {

constexpr std::size_t kMaxKey = 1 << 10;
constexpr std::size_t kMaxValue = 512 << 10;
// How long rank 0 may take to answer that a question was withdrawn.
constexpr Duration kWithdrawal = std::chrono::seconds(1);
// This is not an epoch of the data's mesh, which count from 1.
constexpr std::uint32_t kEpoch = 0;

// Messages begin with one of these, or with an Ask.
constexpr std::uint8_t kAnswer = 16;   // number u32, code u8, text
constexpr std::uint8_t kRankEnd = 17;  // rank i32, host, text
constexpr std::uint8_t kHello = 18;    // nothing: makes the connection

std::string begin(std::uint8_t type) {
  std::string message;
  appendInteger(message, type);
  return message;
}

// Resolves a name to numeric addresses.
Result<transport::LinkCard> cardOf(const LinkBootstrap::StoreAddress& store) {
  transport::LinkCard card{store.address, {}};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(store.address.c_str(), nullptr, &hints, &found); error != 0) {
    return Status::unavailable("MASTER_ADDR=" + store.address + ": " + ::gai_strerror(error));
  }
  for (int port = store.port; port < store.port + store.ports; ++port) {
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      auto address = transport::LinkAddress::fromSockaddr(each->ai_addr);
      if (!address.ok() || card.addresses.size() >= transport::kMaxLinkAddresses) continue;
      address->port = static_cast<std::uint16_t>(port);
      card.addresses.push_back(*address);
    }
  }
  ::freeaddrinfo(found);
  if (card.addresses.empty()) {
    return Status::unavailable("MASTER_ADDR=" + store.address + " has no usable address");
  }
  return card;
}

// Whether a server of this machine has the port. If not, a connection has it as its own end.
bool isListenedOn(const std::string& bind, int port) {
  auto address = transport::LinkAddress::parse(bind.empty() ? "127.0.0.1" : bind);
  if (!address.ok()) return true;
  address->port = static_cast<std::uint16_t>(port);
  sockaddr_storage storage{};
  const socklen_t length = address->toSockaddr(storage);
  const UniqueFd fd(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // A server that is too busy to accept says nothing.
  const timeval limit{1, 0};
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
    return true;
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) == 0 ||
         errno != ECONNREFUSED;
}

Result<std::unique_ptr<transport::LinkMesh>> startMesh(transport::LinkMeshOptions options,
                                                       const Config& config,
                                                       const LinkBootstrap::StoreAddress& store) {
  // Only rank 0 is connected to.
  if (config.rank != 0) {
    options.ports.bind = "127.0.0.1";
    return transport::LinkMesh::start(options);
  }
  options.ports.bind = config.bind;
  for (int port = store.port;; ++port) {
    options.ports.low = options.ports.high = static_cast<std::uint16_t>(port);
    auto mesh = transport::LinkMesh::start(options);
    if (mesh.ok()) return mesh;
    const bool more = port + 1 < store.port + store.ports;
    if (more && mesh.status().code() == Code::kUnavailable && !isListenedOn(config.bind, port)) {
      continue;
    }
    return Status(mesh.status().code(),
                  "rank 0 cannot listen on port " + std::to_string(port) +
                      " for the other ranks (FARANDOLE_PORT, else MASTER_PORT + 1): " +
                      mesh.status().message() +
                      ". A child of rank 0 must not call init: in Python put it under "
                      "if __name__ == \"__main__\":");
  }
}

}  // namespace

LinkBootstrap::LinkBootstrap(const Config& config)
    : rank_(config.rank),
      size_(config.size),
      store_(config.size, [this](int rank, std::uint64_t number, const Status& status,
                                 std::string_view value) REQUIRES(mutex_) {
        answerLocked({rank, static_cast<std::uint32_t>(number)},
                     {status.code(), status.ok() ? std::string(value) : status.message()});
      }) {}

Result<std::unique_ptr<LinkBootstrap>> LinkBootstrap::start(const Config& config,
                                                            const StoreAddress& store,
                                                            Deadline deadline) {
  transport::LinkMeshOptions options;
  options.job = config.job;
  options.secretHex = config.secret;
  options.rank = config.rank;
  options.size = config.size;
  options.host = config.host;
  options.epoch = kEpoch;
  options.connectTime = std::max(deadline.at() - Clock::now(), Duration::zero());
  FARANDOLE_ASSIGN_OR_RETURN(auto mesh, startMesh(options, config, store));
  std::unique_ptr<LinkBootstrap> bootstrap(new LinkBootstrap(config));
  bootstrap->mesh_ = std::move(mesh);
  bootstrap->mesh_->onControl([raw = bootstrap.get()](int from, std::string_view message) {
    raw->received(from, message);
  });
  bootstrap->mesh_->onPeerEnd(
      [raw = bootstrap.get()](int rank, const Status& status) { raw->peerEnded(rank, status); });
  if (config.rank == 0) {
    logDebug("keeps the job's values, for ranks that come to port " +
             std::to_string(bootstrap->mesh_->port()));
    return bootstrap;
  }
  std::string card = store.card;
  if (card.empty()) {
    FARANDOLE_ASSIGN_OR_RETURN(auto found, cardOf(store));
    card = transport::encodeLinkCard(found);
  }
  FARANDOLE_RETURN_IF_ERROR(bootstrap->mesh_->introduce(0, card));
  FARANDOLE_RETURN_IF_ERROR(bootstrap->mesh_->sendControl(0, begin(kHello)));
  return bootstrap;
}

LinkBootstrap::~LinkBootstrap() { mesh_->stop(); }

void LinkBootstrap::forgetAfterFork() { mesh_->forgetAfterFork(); }

Status LinkBootstrap::put(std::string_view key, std::string_view value, Deadline deadline) {
  return ask(Ask::kPut, key, value, 0, deadline).status();
}

Result<std::string> LinkBootstrap::get(std::string_view key, Deadline deadline) {
  return ask(Ask::kGet, key, "", 0, deadline);
}

Status LinkBootstrap::fence(std::string_view key, int count, Deadline deadline) {
  FARANDOLE_RETURN_IF_ERROR(ask(Ask::kFence, key, "", count, deadline).status());
  logDebug("passed the fence \"" + std::string(key) + "\" with " + std::to_string(count) +
           " ranks");
  return {};
}

void LinkBootstrap::onRankEnd(std::function<void(const bootstrap::RankEnd&)> callback) {
  const MutexLock lock(mutex_);
  callback_ = std::move(callback);
  flush();
}

Result<std::string> LinkBootstrap::ask(Ask what, std::string_view key, std::string_view value,
                                       int count, Deadline deadline) {
  if (key.empty() || key.size() > kMaxKey || value.size() > kMaxValue) {
    return Status::invalid("bootstrap: a key of " + std::to_string(key.size()) +
                           " bytes, a value of " + std::to_string(value.size()));
  }
  const MutexLock lock(mutex_);
  FARANDOLE_RETURN_IF_ERROR(over_);
  const std::uint32_t number = ++lastNumber_;
  mine_[number];
  Status posed = pose(number, what, key, value, count);
  if (posed.ok() && !awaitAnswer(number, deadline)) {
    // The question is withdrawn, so that it does not count when this rank asks again.
    posed = pose(number, Ask::kCancel, key, "", 0);
    if (posed.ok() && !awaitAnswer(number, Deadline::after(kWithdrawal))) {
      posed = Status::timeout("rank 0 does not answer ('" + std::string(key) + "')");
    }
  }
  const std::optional<Answer> answer = std::exchange(mine_[number], std::nullopt);
  mine_.erase(number);
  if (!posed.ok()) return posed;
  if (!answer) return over_;
  if (answer->code != Code::kOk) return Status(answer->code, answer->text);
  return answer->text;
}

Status LinkBootstrap::pose(std::uint32_t number, Ask what, std::string_view key,
                           std::string_view value, int count) {
  if (rank_ == 0) {
    serve({0, number}, what, std::string(key), std::string(value), count);
    flush();
    return {};
  }
  std::string message = begin(static_cast<std::uint8_t>(what));
  appendInteger(message, number);
  appendInteger(message, static_cast<std::int32_t>(count));
  appendText(message, key);
  appendText(message, value);
  const MutexUnlock unlocked(mutex_);
  return mesh_->sendControl(0, std::move(message));
}

bool LinkBootstrap::awaitAnswer(std::uint32_t number, Deadline deadline) {
  const auto done = [&]() REQUIRES(mutex_) { return mine_[number].has_value() || !over_.ok(); };
  // It waits in slices, so that it notices if this process was stopped.
  constexpr Duration kSlice = std::chrono::seconds(1);
  for (RunningDeadline limit(deadline, kSlice); !done() && !limit.passed();) {
    came_.wait(mutex_, Deadline::after(limit.get().left(kSlice)));
  }
  return done();
}

void LinkBootstrap::serve(const Question& question, Ask what, std::string key, std::string value,
                          int count) {
  switch (what) {
    case Ask::kPut:
      return store_.put(question.rank, question.number, {std::move(key), std::move(value)});
    case Ask::kGet: return store_.get(question.rank, question.number, {std::move(key)});
    case Ask::kFence:
      return store_.fence(question.rank, question.number,
                          {std::move(key), static_cast<std::uint32_t>(count)});
    case Ask::kCancel: return store_.cancel(question.rank, question.number);
  }
}

void LinkBootstrap::answerLocked(const Question& question, Answer answer) {
  if (question.rank == rank_) {
    // The thread that asked may have given up.
    if (const auto found = mine_.find(question.number); found != mine_.end()) {
      found->second = std::move(answer);
    }
    return came_.notifyAll();
  }
  std::string message = begin(kAnswer);
  appendInteger(message, question.number);
  appendInteger(message, static_cast<std::uint8_t>(answer.code));
  appendText(message, answer.text);
  outgoing_.emplace_back(question.rank, std::move(message));
}

void LinkBootstrap::flush() {
  const auto outgoing = std::exchange(outgoing_, {});
  const auto callback = callback_;
  const auto ends = callback ? std::exchange(ends_, {}) : std::vector<bootstrap::RankEnd>();
  const MutexUnlock unlocked(mutex_);
  for (const auto& [rank, message] : outgoing) {
    // A rank that has ended needs no answer.
    [[maybe_unused]] const Status sent = mesh_->sendControl(rank, message);
  }
  for (const bootstrap::RankEnd& end : ends) callback(end);
}

void LinkBootstrap::rankLostLocked(int rank, const std::string& host, const std::string& text) {
  bootstrap::RankEnd end;
  end.rank = rank;
  end.host = host;
  end.hostLost = true;
  end.account = text;
  ends_.push_back(end);
  if (rank_ == 0) store_.rankEnded(end);
  if (over_.ok()) over_ = Status(Code::kPeerLost, text).withRank(rank, host);
  came_.notifyAll();
}

void LinkBootstrap::peerEnded(int rank, const Status& status) {
  const MutexLock lock(mutex_);
  if (status.code() == Code::kShutdown) {
    // Rank 0 leaves last. A rank that still asks it for something would wait in vain.
    if (rank == 0 && over_.ok()) over_ = Status(Code::kPeerLost, "rank 0 has left the job");
    came_.notifyAll();
    return;
  }
  rankLostLocked(rank, status.host(), status.message());
  if (rank_ == 0) {
    lost_.insert(rank);
    std::string message = begin(kRankEnd);
    appendInteger(message, static_cast<std::int32_t>(rank));
    appendText(message, std::string_view(status.host()).substr(0, kMaxKey));
    appendText(message, std::string_view(status.message()).substr(0, kMaxKey));
    for (int other = 1; other < size_; ++other) {
      if (!lost_.contains(other)) outgoing_.emplace_back(other, message);
    }
  }
  flush();
}

void LinkBootstrap::received(int from, std::string_view message) {
  ByteReader reader(message);
  const auto type = reader.integer<std::uint8_t>();
  const MutexLock lock(mutex_);
  if (rank_ == 0) {
    if (type == kHello) return;
    const auto number = reader.integer<std::uint32_t>();
    const auto count = reader.integer<std::int32_t>();
    std::string key = reader.text(kMaxKey);
    std::string value = reader.text(kMaxValue);
    const bool known = type >= static_cast<std::uint8_t>(Ask::kPut) &&
                       type <= static_cast<std::uint8_t>(Ask::kCancel);
    if (!reader.finished() || !known || key.empty()) return;
    serve({from, number}, static_cast<Ask>(type), std::move(key), std::move(value), count);
  } else if (from == 0 && type == kAnswer) {
    const auto number = reader.integer<std::uint32_t>();
    const auto code = reader.integer<std::uint8_t>();
    std::string text = reader.text(kMaxValue);
    const auto found = mine_.find(number);
    if (!reader.finished() || found == mine_.end() || code > static_cast<int>(Code::kInternal)) {
      return;
    }
    found->second = Answer{static_cast<Code>(code), std::move(text)};
    came_.notifyAll();
  } else if (from == 0 && type == kRankEnd) {
    const auto rank = reader.integer<std::int32_t>();
    const std::string host = reader.text(kMaxKey);
    const std::string text = reader.text(kMaxKey);
    if (!reader.finished() || rank < 0 || rank >= size_ || rank == rank_) return;
    rankLostLocked(rank, host, text);
  }
  flush();
}

}  // namespace farandole::runtime
