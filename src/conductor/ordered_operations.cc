#include "conductor/ordered_operations.h"

#include <utility>

namespace farandole::conductor {
namespace {

EntryPtr entryOf(control::OrderedOperationPtr operation) {
  // Only entries were given to the channel.
  return std::static_pointer_cast<Entry>(std::move(operation));
}

std::vector<EntryPtr> entriesOf(std::vector<control::OrderedOperationPtr> operations) {
  std::vector<EntryPtr> entries;
  for (auto& operation : operations) entries.push_back(entryOf(std::move(operation)));
  return entries;
}

control::OrderedChannel::Options withLimit(control::OrderedChannel::Options options) {
  const int members = static_cast<int>(options.memberNames.size());
  options.mostPayload = static_cast<std::size_t>(collective::Exchange::mostBytes(members));
  return options;
}

}  // namespace

OrderedOperations::OrderedOperations(control::OrderedChannel::Options options)
    : channel_(withLimit(std::move(options))) {}

std::optional<collective::Exchange> OrderedOperations::exchangeOf(const control::Meta& meta,
                                                                  int members) {
  if (!collective::Exchange::serves(members) || meta.group != 0) return std::nullopt;
  collective::Exchange exchange;
  exchange.members = members;
  switch (meta.kind) {
    case control::Kind::kBarrier: return exchange;
    case control::Kind::kAllreduce: exchange.what = collective::Exchange::What::kAllreduce; break;
    case control::Kind::kReduce: exchange.what = collective::Exchange::What::kReduce; break;
    case control::Kind::kBroadcast: exchange.what = collective::Exchange::What::kBroadcast; break;
    default: return std::nullopt;
  }
  exchange.elements = meta.elements();
  if (meta.op == ReduceOp::kAdasum ||
      exchange.elements * static_cast<std::int64_t>(sizeOf(meta.dtype)) >
          collective::Exchange::mostBytes(members)) {
    return std::nullopt;
  }
  exchange.dtype = meta.dtype;
  exchange.op = meta.op;
  exchange.scale = {meta.prescale, meta.postscale, 1};
  exchange.root = meta.root;
  return exchange;
}

void OrderedOperations::submit(const EntryPtr& entry) {
  const Request& request = entry->request;
  const collective::Exchange& exchange = *entry->exchange;
  const std::span data(static_cast<const std::byte*>(request.input), exchange.bytes());
  channel_.submit(entry, data, exchange.receiversOf(channel_.me()));
}

void OrderedOperations::countByName(const EntryPtr& entry) {
  channel_.countByName(entry);
  std::string& name = entry->request.name;
  if (name.empty()) name = control::OrderedChannel::nameAt(entry->place);
}

Status OrderedOperations::step(std::vector<Finished>& finished) {
  control::OrderedChannel::Delivery delivery;
  while (channel_.next(delivery)) {
    finished.push_back(
        {entryOf(std::move(delivery.operation)), std::move(delivery.status), delivery.culprit});
    if (finished.back().status.ok()) finish(finished.back(), delivery.data);
  }
  return channel_.broken();
}

void OrderedOperations::finish(Finished& finished,
                               std::span<const std::span<const std::byte>> data) const {
  Entry& entry = *finished.entry;
  const collective::Exchange& exchange = *entry.exchange;
  if (const int member = exchange.wrongSize(data, channel_.me()); member >= 0) {
    finished.status =
        Status::internal(channel_.nameOf(member) + " sent data of another size than it said");
    finished.culprit = member;
    return;
  }
  if (!exchange.hasResult(channel_.me())) return;
  auto out = provideOutput(entry, entry.request.meta.shape);
  if (!out.ok()) {
    finished.status = out.status();
    return;
  }
  exchange.combine(data, *out);
}

std::vector<EntryPtr> OrderedOperations::takeDisputed() {
  return entriesOf(channel_.takeDisputed());
}

std::optional<OrderedOperations::Stall> OrderedOperations::stall(TimePoint now,
                                                                 Duration olderThan) const {
  auto stall = channel_.stall(now, olderThan);
  if (!stall) return std::nullopt;
  return Stall{nameOf(*entryOf(std::move(stall->operation))), std::move(stall->missing),
               stall->age};
}

std::vector<EntryPtr> OrderedOperations::takeAll() { return entriesOf(channel_.takeAll()); }

}  // namespace farandole::conductor
