// SPDX-License-Identifier: Apache-2.0
// `weft bench all-reduce`: how long ranks on this host take to reduce what they have.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "apps/command.h"
#include "base/files.h"
#include "base/posix_file.h"
#include "base/subprocess.h"
#include "net/job_identity.h"
#include "weft/cluster/data_plane.h"
#include "weft/collective/engine.h"
#include "weft/collective/schedule.h"
#include "weft/worker/collective_link.h"

namespace weft::apps {
namespace {

struct BenchFlags {
  int ranks = 2;
  std::vector<std::string> sizes{"1K", "32K", "1M", "16M"};
  std::string algorithm = "auto";
  double seconds = 0.3;  // for each size
  bool copy = false;
  std::string table;  // where to write which algorithm is the fastest
  // "FILE,ADDRESS": network namespaces, and this host's address in each; the ranks go in turn.
  std::vector<std::string> networks;
  std::string task_tls;  // folder of the job's secret
  int rank = 0;
  std::string leader;  // "host:port incarnation" of rank 0
};

std::string TaskOf(int rank) { return absl::StrCat("/job:bench/replica:0/task:", rank); }

// "/run/netns/a,10.0.0.1": the rank's network namespace, and its address there.
StatusOr<std::pair<std::string, std::string>> NetworkOf(const BenchFlags& flags, int rank) {
  if (flags.networks.empty()) return std::make_pair(std::string(), std::string("127.0.0.1"));
  const std::string& text = flags.networks[static_cast<size_t>(rank) % flags.networks.size()];
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(',', 1));
  if (parts.first.empty() || parts.second.empty())
    return InvalidArgument("--networks takes FILE,ADDRESS, got ", text);
  return parts;
}

// This thread, and those that it starts, are in the namespace of this file from now on.
Status EnterNetwork(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  const OwnedFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() >= 0 && setns(fd.get(), CLONE_NEWNET) == 0) return absl::OkStatus();
  return Unavailable("Cannot enter the network namespace ", file, ": ", std::strerror(errno));
}

// "32K", "1M", "100".
StatusOr<int64_t> BytesOf(const std::string& text) {
  int64_t unit = 1;
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "K")) unit = 1 << 10;
  if (absl::ConsumeSuffix(&number, "M")) unit = 1 << 20;
  int64_t value = 0;
  if (!absl::SimpleAtoi(number, &value) || value < 1 || value > (int64_t{1} << 31) / unit)
    return InvalidArgument("A size is bytes, as 100, 32K or 16M, got ", text);
  return value * unit;
}

// One rank: what a task has of collectives, without sessions and graphs.
class Rank final : public cluster::FrameReceiver {
 public:
  static StatusOr<std::unique_ptr<Rank>> Start(const BenchFlags& flags, std::string* address) {
    std::random_device random;
    const uint64_t incarnation = (uint64_t{random()} << 32 | random()) | 1;
    WEFT_ASSIGN_OR_RETURN(const auto network, NetworkOf(flags, flags.rank));
    WEFT_RETURN_IF_ERROR(EnterNetwork(network.first));
    std::optional<JobTls> tls;
    if (!flags.task_tls.empty()) {
      RealFileSystem files;
      WEFT_ASSIGN_OR_RETURN(const JobIdentity identity,
                            ReadJobIdentity(files, flags.task_tls, absl::Now()));
      WEFT_ASSIGN_OR_RETURN(tls, MakeJobTls(identity));
    }
    auto rank = std::make_unique<Rank>(flags, incarnation);
    cluster::DataPlaneOptions data{.task = TaskOf(flags.rank),
                                   .incarnation = incarnation,
                                   .token = "weft bench",
                                   .bind = absl::StrCat(network.second, ":0"),
                                   .tls = std::move(tls),
                                   .share_memory = !flags.copy};
    WEFT_ASSIGN_OR_RETURN(rank->plane_, cluster::DataPlane::Start(data, rank.get(), &rank->setup_));
    rank->link_.Attach(&rank->engine_, rank->plane_.get(), rank->plane_->address());
    *address = absl::StrCat(rank->plane_->address(), " ", incarnation);
    return rank;
  }
  Rank(const BenchFlags& flags, uint64_t incarnation)
      : flags_(flags),
        link_(
            TaskOf(flags.rank), incarnation, [this](const std::string&) { return Leader(); },
            &setup_, &pool_),
        engine_({.leader = TaskOf(0),
                 .tasks = {},
                 .pool = &pool_,
                 .boards = !flags.copy,
                 .patience = collective::kPatience},
                &link_) {}
  ~Rank() override {
    link_.Stop();
    if (plane_ != nullptr) plane_->Shutdown();
  }

  Status Reduce(const Tensor& input, CollectiveKind kind, const std::string& algorithm = "auto") {
    CollectiveCall call;
    call.kind = kind;
    call.group_key = 1;
    call.group_size = flags_.ranks;
    call.instance_key = kind == CollectiveKind::kBarrier ? 1 : 2;
    call.device = absl::StrCat(TaskOf(flags_.rank), "/device:CPU:0");
    call.node = "bench";
    call.algorithm = algorithm;
    call.step_id = ++step_;
    call.input = input;
    call.dtype = input.dtype();
    call.shape = input.shape();
    auto ended = std::make_shared<absl::Notification>();  // outlives the callback's last moment
    Status status;
    engine_.Run(std::move(call), [ended, &status](const StatusOr<Tensor>& result) {
      status = result.status();
      ended->Notify();
    });
    ended->WaitForNotification();
    return status;
  }

 private:
  StatusOr<cluster::TaskAddress> Leader() const {
    const std::vector<std::string> parts = absl::StrSplit(flags_.leader, ' ');
    uint64_t incarnation = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &incarnation))
      return InvalidArgument("--leader is an address and a number, got ", flags_.leader);
    return cluster::TaskAddress{TaskOf(0), parts[0], incarnation};
  }
  transport::Region BodyFor(const std::string& task, const transport::FrameHeader& header,
                            absl::string_view) override {
    return link_.BodyFor(task, header);
  }
  void Received(const std::string& task, const transport::FrameHeader& header,
                absl::string_view meta, transport::Region body) override {
    link_.Received(task, header, meta, std::move(body));
  }
  void TaskLost(const std::string& task, const Status& why) override { link_.TaskLost(task, why); }

  const BenchFlags flags_;
  int64_t step_ = 0;
  worker::CollectiveLink link_;
  collective::Engine engine_;
  std::unique_ptr<cluster::DataPlane> plane_;
  ThreadPool setup_{"weft-setup", 2};
  ThreadPool pool_{"weft-compute", std::max(1, UsableCores())};
};

// Times one size: rank 0 prints it in microseconds and gives the least, which others
// on the machine disturb least.
StatusOr<double> Measure(Rank* rank, const BenchFlags& flags, int64_t bytes,
                         const std::string& hint) {
  const int64_t elements = std::max<int64_t>(1, bytes / 4);
  WEFT_ASSIGN_OR_RETURN(const Tensor input, Tensor::Zeros(DType::kFloat, Shape{elements}));
  constexpr int kRounds = 12;
  std::vector<double> micros;
  // The first rounds warm memory and connections.
  for (int round = 0; round < kRounds + 3; ++round) {
    WEFT_RETURN_IF_ERROR(rank->Reduce(Tensor::Vector<float>({0}), CollectiveKind::kBarrier));
    const int calls = static_cast<int>(
        std::clamp<int64_t>((int64_t{1} << 22) / std::max<int64_t>(bytes, 1 << 14), 1, 64));
    const absl::Time begin = absl::Now();
    for (int i = 0; i < calls; ++i)
      WEFT_RETURN_IF_ERROR(rank->Reduce(input, CollectiveKind::kReduce, hint));
    if (round >= 3) micros.push_back(absl::ToDoubleMicroseconds(absl::Now() - begin) / calls);
  }
  if (flags.rank != 0) return 0.0;
  std::sort(micros.begin(), micros.end());
  const double median = micros[micros.size() / 2];
  collective::Topology topology;
  for (int other = 0; other < flags.ranks; ++other) {
    WEFT_ASSIGN_OR_RETURN(const auto network, NetworkOf(flags, other));
    topology.hosts.push_back(network.second);
  }
  const auto algorithm =
      collective::ChooseAlgorithm(CollectiveKind::kReduce, elements * 4, topology, hint);
  const double moved = 2.0 * (flags.ranks - 1) / flags.ranks * static_cast<double>(elements) * 4;
  std::printf("%12lld  %-18s %12.1f %12.1f %12.3f\n", static_cast<long long>(elements * 4),
              std::string(collective::AlgorithmName(algorithm)).c_str(), median, micros.front(),
              moved / median / 1e3);
  std::fflush(stdout);
  return micros.front();
}

// The fastest algorithm of each size. Of one host: a hierarchy would be of one level.
StatusOr<collective::AlgorithmTable> MeasureTable(Rank* rank, const BenchFlags& flags,
                                                  std::vector<int64_t> sizes) {
  constexpr collective::Algorithm kAlgorithms[] = {
      collective::Algorithm::kDirect, collective::Algorithm::kParts, collective::Algorithm::kRing,
      collective::Algorithm::kHalvingDoubling, collective::Algorithm::kHub};
  std::sort(sizes.begin(), sizes.end());
  collective::AlgorithmTable table;
  for (size_t i = 0; i < sizes.size(); ++i) {
    double best = 0;
    // Up to half the way to the next size, as sizes go.
    const int64_t most = i + 1 < sizes.size()
                             ? static_cast<int64_t>(std::sqrt(static_cast<double>(sizes[i]) *
                                                              static_cast<double>(sizes[i + 1])))
                             : std::numeric_limits<int64_t>::max();
    collective::AlgorithmTable::Row row{.tasks = flags.ranks, .hosts = 1, .most_bytes = most};
    for (const collective::Algorithm algorithm : kAlgorithms) {
      WEFT_ASSIGN_OR_RETURN(
          const double least,
          Measure(rank, flags, sizes[i], std::string(collective::AlgorithmName(algorithm))));
      if (row.algorithm != collective::Algorithm::kNone && least >= best) continue;
      best = least;
      row.algorithm = algorithm;
    }
    table.rows.push_back(row);
  }
  return table;
}

// Rows of other groups that the file has stay.
Status WriteTable(const collective::AlgorithmTable& measured, const BenchFlags& flags) {
  RealFileSystem files;
  collective::AlgorithmTable table;
  if (const StatusOr<std::string> text = ReadFile(files, flags.table); text.ok()) {
    const StatusOr<collective::AlgorithmTable> known = collective::AlgorithmTable::Parse(*text);
    if (known.ok()) {
      table = *known;
    } else {
      std::printf("%s is written anew: %s\n", flags.table.c_str(),
                  std::string(known.status().message()).c_str());
    }
  }
  std::erase_if(table.rows,
                [&](const auto& row) { return row.tasks == flags.ranks && row.hosts == 1; });
  table.rows.insert(table.rows.end(), measured.rows.begin(), measured.rows.end());
  std::printf("\n%s", measured.ToText().c_str());
  return WriteFileAtomically(files, flags.table, table.ToText());
}

Status RunRank(const BenchFlags& flags) {
  std::string address;
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Rank> rank, Rank::Start(flags, &address));
  std::vector<std::unique_ptr<Subprocess>> others;
  if (flags.rank == 0) {
    for (int other = 1; other < flags.ranks; ++other) {
      SpawnOptions spawn;
      spawn.argv = {"/proc/self/exe",          "bench",       "all-reduce",    "--ranks",
                    absl::StrCat(flags.ranks), "--algorithm", flags.algorithm, "--rank",
                    absl::StrCat(other),       "--leader",    address};
      spawn.environment = CurrentEnvironment();
      if (flags.copy) spawn.argv.push_back("--copy");
      for (const std::string& network : flags.networks)
        spawn.argv.insert(spawn.argv.end(), {"--networks", network});
      if (!flags.task_tls.empty())
        spawn.argv.insert(spawn.argv.end(), {"--task_tls", flags.task_tls});
      if (!flags.table.empty()) spawn.argv.insert(spawn.argv.end(), {"--table", flags.table});
      for (const std::string& size : flags.sizes) {
        spawn.argv.push_back("--size");
        spawn.argv.push_back(size);
      }
      WEFT_ASSIGN_OR_RETURN(others.emplace_back(), Subprocess::Spawn(spawn));
    }
    std::printf("%12s  %-18s %12s %12s %12s\n", "bytes", "algorithm", "median us", "least us",
                "GB/s");
  }
  std::vector<int64_t> sizes;
  for (const std::string& size : flags.sizes) {
    WEFT_ASSIGN_OR_RETURN(sizes.emplace_back(), BytesOf(size));
  }
  collective::AlgorithmTable table;
  if (flags.table.empty()) {
    for (const int64_t bytes : sizes)
      WEFT_RETURN_IF_ERROR(Measure(rank.get(), flags, bytes, flags.algorithm).status());
  } else {
    WEFT_ASSIGN_OR_RETURN(table, MeasureTable(rank.get(), flags, sizes));
  }
  WEFT_RETURN_IF_ERROR(rank->Reduce(Tensor::Vector<float>({0}), CollectiveKind::kBarrier));
  // Who is through first does not take along what it sent last: links may be slow.
  if (flags.rank != 0) absl::SleepFor(absl::Milliseconds(500));
  for (const auto& other : others) {
    WEFT_RETURN_IF_ERROR(other->Wait(absl::Seconds(30)).status());
  }
  return flags.rank == 0 && !flags.table.empty() ? WriteTable(table, flags) : absl::OkStatus();
}

}  // namespace

void AddBench(CLI::App& app, Action* action) {
  CLI::App* const bench = app.add_subcommand("bench", "Measure parts of weft on this machine");
  bench->require_subcommand(1);
  CLI::App* const command = bench->add_subcommand(
      "all-reduce",
      "Time all-reduces of processes of this host, by size: the time of one, and the "
      "bytes that each rank must move at least, by that time");
  const auto flags = std::make_shared<BenchFlags>();  // shared with the action
  command->add_option("--ranks", flags->ranks, "Processes that take part")
      ->capture_default_str()
      ->check(CLI::Range(2, 64));
  command->add_option("--size", flags->sizes, "Bytes of each rank, as 32K or 16M; may be repeated")
      ->capture_default_str();
  command
      ->add_option("--algorithm", flags->algorithm,
                   "direct, parts, ring, halving-doubling, hub, hierarchical, or auto by size")
      ->capture_default_str();
  command->add_option("--table", flags->table,
                      "Time all algorithms and write which is the fastest by size to this file, "
                      "for --collective_table of `weft server`");
  command->add_flag("--copy", flags->copy, "Through sockets, not through shared memory");
  command->add_option("--networks", flags->networks,
                      "FILE,ADDRESS: a network namespace and an address in it; repeated, the ranks "
                      "take them in turn");
  command->add_option("--task_tls", flags->task_tls,
                      "Folder with a job's secret, which `weft secret` makes: ranks speak TLS");
  command->add_option("--rank", flags->rank, "Of the program's own processes")->group("");
  command->add_option("--leader", flags->leader, "Of the program's own processes")->group("");
  SetAction(command, action, [flags] { return RunRank(*flags); });
}

}  // namespace weft::apps
