#include "bench/commands.h"

#include <fmt/format.h>

#include <cstdio>

#include "bench/line_up.h"
#include "bench/model_shapes.h"
#include "bench/pattern.h"
#include "bench/peers.h"
#include "bench/report.h"
#include "bench/sizes.h"
#include "collective/link/choose.h"

namespace farandole::bench {
namespace {

std::vector<Memory> memoriesOf(const std::string& text) {
  if (text == "ordinary") return {Memory::kOrdinary};
  if (text == "shared") return {Memory::kShared};
  return {Memory::kShared, Memory::kOrdinary};
}

std::vector<int> pinning(const CommonOptions& options) {
  return options.pin ? allowedProcessors() : std::vector<int>();
}

ContestSettings settingsOf(const CommonOptions& options) {
  return {options.rounds, allowedProcessors()};
}

// Names a failed contender once; a failure of ours is what the command returns.
Status failuresOf(const std::vector<Measurement>& measurements,
                  std::vector<std::string>& reported) {
  Status result;
  for (const Measurement& m : measurements) {
    if (m.failure.empty()) continue;
    if (std::find(reported.begin(), reported.end(), m.contender) == reported.end()) {
      reported.push_back(m.contender);
      say(fmt::format("{} failed at {} bytes: {}", m.contender, sizeText(m.bytes), m.failure));
    }
    if (m.side != Side::kPeer) result = Status::internal(m.contender + " failed: " + m.failure);
  }
  return result;
}

Status write(const CommonOptions& options, const Report& report) {
  const auto put = [](const std::string& path, const std::string& content) -> Status {
    if (path.empty()) return {};
    if (path != "-") return writeFile(path, content);
    say(content);
    return {};
  };
  FARANDOLE_RETURN_IF_ERROR(put(options.csv, report.csv()));
  FARANDOLE_RETURN_IF_ERROR(put(options.json, report.json()));
  return put(options.svg, report.svg());
}

void printMachine(const CommonOptions& options) {
  const auto processors = allowedProcessors();
  const double crossing = processors.size() > 1 ? flagCrossing(processors[0], processors[1]) : 0;
  say(fmt::format("{} ranks on {} processors{}; a flag crosses in {}; {} interleaved rounds",
                  options.ranks, processors.size(), options.pin ? ", pinned" : "",
                  timeText(crossing), options.rounds));
}

Result<Job> jobOf(const CollectiveOptions& options) {
  const auto work = workFromName(options.work);
  const auto dtype = dtypeFromName(options.dtype);
  const auto op = reduceOpFromName(options.op);
  if (!work || *work == Work::kBound || *work == Work::kResnet50 || *work == Work::kVgg16) {
    return Status::invalid(fmt::format("unknown operation '{}'", options.work));
  }
  if (!dtype) return Status::invalid(fmt::format("unknown element type '{}'", options.dtype));
  if (!op || !Pattern::knows(*dtype, *op)) {
    return Status::invalid(
        fmt::format("{} of {} is not benchmarked; sum, min and max of integers and floats are",
                    options.op, options.dtype));
  }
  Job job;
  job.work = *work;
  job.dtype = *dtype;
  job.op = *op;
  return job;
}

// Starts all groups of ranks that the options ask for.
Status lineUp(LineUp& lineUp, const CollectiveOptions& options, const Job& job) {
  const auto memories = memoriesOf(options.memory);
  const bool engine = options.path == "engine" || options.path == "both";
  if (engine || options.bound) {
    auto group = lineUp.startEngine();
    if (!group.ok()) return group.status();
    if (engine) lineUp.add("engine", Side::kOurs, *group, job, memories);
    Job bound = job;
    bound.work = Work::kBound;
    if (options.bound) lineUp.add("bound", Side::kBound, *group, bound, memories);
  }
  if (options.path != "engine") {
    auto group = lineUp.startNamed();
    if (!group.ok()) return group.status();
    lineUp.add("named", Side::kOurs, *group, job, memories);
  }
  return options.against.empty() ? Status() : lineUp.addPeers(options.against, job);
}

// One model: every gradient by itself and all as one buffer, through names and on the bare engine.
void addModel(LineUp& lineUp, RankGroup* engine, RankGroup* named, Work model, Memory memory) {
  Job tensors;
  tensors.work = model;
  tensors.memory = memory;
  tensors.bytes = static_cast<std::size_t>(modelElements(model)) * sizeof(float);
  Job fused = tensors;
  fused.work = Work::kAllreduce;
  const auto addOne = [&](const std::string& name, RankGroup* group, const Job& job) {
    lineUp.addSingle({name, Side::kOurs, group, job, false, {}});
  };
  addOne("named tensors", named, tensors);
  addOne("named one buffer", named, fused);
  addOne("engine tensors", engine, tensors);
  addOne("engine one buffer", engine, fused);
}

// What a rank reads and writes for an allreduce of `bytes`, all ranks together.
double trafficBytes(Memory memory, std::size_t bytes, int ranks) {
  const double n = ranks;
  const double perRank = memory == Memory::kShared ? 2 : 4 * (n - 1) / n + 1 + 2 / n;
  return perRank * n * static_cast<double>(bytes);
}

Status runCollective(LineUp& all, const CollectiveOptions& options, int ranks,
                     const std::vector<std::size_t>& sizes) {
  for (const std::string& note : all.notes()) say(note);
  Report report(fmt::format("{} of {}, {} ranks", options.work, options.dtype, ranks), ranks);
  std::vector<std::string> reported;
  Status result;
  say(Report::header());
  for (const std::size_t bytes : sizes) {
    const auto measurements = runContest(all.contenders(), bytes, settingsOf(options));
    for (const Row& row : report.add(measurements)) say(Report::text(row));
    if (Status status = failuresOf(measurements, reported); !status.ok()) result = status;
  }
  if (const std::string ratios = report.ratios(); !ratios.empty()) {
    say("\nspeed against the best peer of the same class (above 1: faster):");
    say(ratios);
  }
  FARANDOLE_RETURN_IF_ERROR(write(options, report));
  return result;
}

// The same on several machines: by name, and by the order that the ranks promise each other; for
// each grade of security asked for.
Status benchHosts(const CollectiveOptions& options, const Job& job,
                  const std::vector<std::size_t>& sizes) {
  if (options.bound || options.path == "engine") {
    return Status::invalid("--bound and --path engine belong to one machine: leave --hosts out");
  }
  auto hosted = HostedRanks::of(options.on);
  if (!hosted.ok()) return hosted.status();
  auto variants = hosted->variants();
  if (!variants.ok()) return variants.status();
  const std::string where = hosted->describe();
  const int ranks = hosted->ranks();
  LineUp all(std::move(*hosted), pinning(options));
  for (const OwnVariant& variant : *variants) {
    auto group = all.startNamed(variant);
    if (!group.ok()) return group.status();
    Job ordered = job;
    ordered.ordered = true;
    const auto memories = memoriesOf(options.memory);
    if (options.path != "ordered") all.add(variant.name, Side::kOurs, *group, job, memories);
    if (options.path != "named") {
      all.add("ordered " + variant.name, Side::kOurs, *group, ordered, memories);
    }
  }
  if (!options.against.empty()) FARANDOLE_RETURN_IF_ERROR(all.addPeers(options.against, job));
  say(fmt::format("{}{}; {} interleaved rounds", where, options.pin ? ", pinned" : "",
                  options.rounds));
  return runCollective(all, options, ranks, sizes);
}

}  // namespace

Status benchCollective(const CollectiveOptions& options) {
  if (options.path == "ordered" && options.on.hosts.empty()) {
    return Status::invalid("--path ordered makes a difference between machines: add --hosts");
  }
  auto job = jobOf(options);
  if (!job.ok()) return job.status();
  auto sizes = parseSizes(options.sizes);
  if (!sizes.ok()) return sizes.status();
  const bool peersCan =
      job->work == Work::kAllreduce && job->dtype == DType::kFloat32 && job->op == ReduceOp::kSum;
  if (!options.against.empty() && !peersCan) {
    return Status::invalid("--against compares float32 sum allreduce only");
  }
  if (options.bound && job->work != Work::kAllreduce) {
    return Status::invalid("--bound belongs to allreduce");
  }
  if (!options.on.hosts.empty()) return benchHosts(options, *job, *sizes);
  LineUp all(options.ranks, pinning(options));
  FARANDOLE_RETURN_IF_ERROR(lineUp(all, options, *job));
  printMachine(options);
  return runCollective(all, options, options.ranks, *sizes);
}

Status benchTensors(const TensorsOptions& options) {
  LineUp groups(options.ranks, pinning(options));
  auto engine = groups.startEngine();
  if (!engine.ok()) return engine.status();
  auto named = groups.startNamed();
  if (!named.ok()) return named.status();
  printMachine(options);
  Report report(fmt::format("gradients, {} ranks", options.ranks), options.ranks);
  Status result;
  for (const Work model : {Work::kResnet50, Work::kVgg16}) {
    if (options.model != "both" && options.model != name(model)) continue;
    for (const Memory memory : memoriesOf(options.memory)) {
      groups.contenders().clear();
      addModel(groups, *engine, *named, model, memory);
      const std::string what =
          fmt::format("{}: {} tensors, {} elements, {} memory", name(model),
                      modelTensors(model).size(), modelElements(model), name(memory));
      say("\n" + what + "\n" + Report::header());
      std::vector<std::string> reported;
      auto measurements = runContest(groups.contenders(), 0, settingsOf(options));
      if (Status status = failuresOf(measurements, reported); !status.ok()) result = status;
      const double tensors = percentile(measurements[0].seconds(), 0.5);
      const double one = percentile(measurements[1].seconds(), 0.5);
      for (Measurement& m : measurements) {
        m.contender = fmt::format("{} {} {}", m.contender, name(model), name(memory));
      }
      for (Row row : report.add(measurements)) {
        row.contender =
            row.contender.substr(0, row.contender.find(fmt::format(" {}", name(model))));
        say(Report::text(row));
      }
      if (one > 0) say(fmt::format("named tensors / named one buffer: {:.2f}", tensors / one));
    }
  }
  FARANDOLE_RETURN_IF_ERROR(write(options, report));
  return result;
}

Status benchMemory(const MemoryOptions& options) {
  auto sizes = parseSizes(options.sizes);
  if (!sizes.ok()) return sizes.status();
  LineUp all(options.ranks, pinning(options));
  auto engine = all.startEngine();
  if (!engine.ok()) return engine.status();
  Job job;
  job.work = Work::kBound;
  all.add("bound", Side::kBound, *engine, job, memoriesOf(options.memory));
  printMachine(options);
  say("an allreduce's reads and writes by all ranks at once, without any waiting:");
  say(fmt::format("{:>7}  {:<16} {:<6} {:>6} {:>10} {:>10} {:>10} {:>14}", "bytes", "memory",
                  "class", "rounds", "median", "p10", "p90", "traffic GB/s"));
  Report report(fmt::format("memory bound, {} ranks", options.ranks), options.ranks);
  std::vector<std::string> reported;
  Status result;
  for (const std::size_t bytes : *sizes) {
    const auto measurements = runContest(all.contenders(), bytes, settingsOf(options));
    for (const Row& row : report.add(measurements)) {
      const Memory memory = row.contender.ends_with("shared") ? Memory::kShared : Memory::kOrdinary;
      say(fmt::format("{:>7}  {:<16} {:<6} {:>6} {:>10} {:>10} {:>10} {:>14.2f}", sizeText(bytes),
                      name(memory), name(row.distance), row.rounds, timeText(row.time.median),
                      timeText(row.time.p10), timeText(row.time.p90),
                      trafficBytes(memory, bytes, options.ranks) / row.time.median / 1e9));
    }
    if (Status status = failuresOf(measurements, reported); !status.ok()) result = status;
  }
  FARANDOLE_RETURN_IF_ERROR(write(options, report));
  return result;
}

void listAlgorithms() {
  say("Between machines (engine link); inside a machine the engine shm has one way for each kind "
      "of memory.");
  say(fmt::format("{:<15} {:<10} {:<16} {:<10} {}", "operation", "members", "bytes", "algorithm",
                  "how"));
  for (const collective::link::AlgorithmRow& row : collective::link::netAlgorithms()) {
    const std::string members = row.most == 0 ? fmt::format("{} or more", row.fewest)
                                : row.most == row.fewest
                                    ? std::to_string(row.most)
                                    : fmt::format("{}–{}", row.fewest, row.most);
    std::string bytes = "any";
    if (row.least != 0) bytes = "from " + sizeText(row.least);
    if (row.below != 0) bytes = "below " + sizeText(row.below);
    say(fmt::format("{:<15} {:<10} {:<16} {:<10} {}", row.operation, members, bytes, row.algorithm,
                    row.description));
  }
}

void listPeers() {
  for (const Peer& peer : findPeers()) {
    const std::string state = peer.missing.empty() ? std::string("available")
                                                   : fmt::format("missing ({}); install: {}",
                                                                 peer.missing, peer.install());
    say(fmt::format("{:<10} {:<62} {}", peer.name, peer.what, state));
  }
}

}  // namespace farandole::bench
