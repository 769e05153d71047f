// SPDX-License-Identifier: Apache-2.0
// `weft bench all-reduce`: how long ranks on this host take to reduce what they have.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "apps/command.h"
#include "base/files.h"
#include "base/subprocess.h"
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
  int rank = 0;
  std::string leader;  // "host:port incarnation" of rank 0
};

std::string TaskOf(int rank) { return absl::StrCat("/job:bench/replica:0/task:", rank); }

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
    auto rank = std::make_unique<Rank>(flags, incarnation);
    cluster::DataPlaneOptions data{.task = TaskOf(flags.rank),
                                   .incarnation = incarnation,
                                   .token = "weft bench",
                                   .bind = "127.0.0.1:0",
                                   .tls = std::nullopt,
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
        engine_({.leader = TaskOf(0), .tasks = {}, .pool = &pool_}, &link_) {}
  ~Rank() override {
    link_.Stop();
    if (plane_ != nullptr) plane_->Shutdown();
  }

  Status Reduce(const Tensor& input, CollectiveKind kind) {
    CollectiveCall call;
    call.kind = kind;
    call.group_key = 1;
    call.group_size = flags_.ranks;
    call.instance_key = kind == CollectiveKind::kBarrier ? 1 : 2;
    call.device = absl::StrCat(TaskOf(flags_.rank), "/device:CPU:0");
    call.node = "bench";
    call.algorithm = flags_.algorithm;
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

// Times one size; every rank does as many rounds as rank 0 finds that fit.
Status Measure(Rank* rank, const BenchFlags& flags, int64_t bytes) {
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
      WEFT_RETURN_IF_ERROR(rank->Reduce(input, CollectiveKind::kReduce));
    if (round >= 3) micros.push_back(absl::ToDoubleMicroseconds(absl::Now() - begin) / calls);
  }
  if (flags.rank != 0) return absl::OkStatus();
  std::sort(micros.begin(), micros.end());
  const double median = micros[micros.size() / 2];
  const collective::Topology topology{
      std::vector<std::string>(static_cast<size_t>(flags.ranks), "127.0.0.1")};
  const auto algorithm =
      collective::ChooseAlgorithm(CollectiveKind::kReduce, elements * 4, topology, flags.algorithm);
  const double moved = 2.0 * (flags.ranks - 1) / flags.ranks * static_cast<double>(elements) * 4;
  std::printf("%12lld  %-18s %12.1f %12.1f %12.3f\n", static_cast<long long>(elements * 4),
              std::string(collective::AlgorithmName(algorithm)).c_str(), median, micros.front(),
              moved / median / 1e3);
  std::fflush(stdout);
  return absl::OkStatus();
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
      for (const std::string& size : flags.sizes) {
        spawn.argv.push_back("--size");
        spawn.argv.push_back(size);
      }
      WEFT_ASSIGN_OR_RETURN(others.emplace_back(), Subprocess::Spawn(spawn));
    }
    std::printf("%12s  %-18s %12s %12s %12s\n", "bytes", "algorithm", "median us", "least us",
                "GB/s");
  }
  for (const std::string& size : flags.sizes) {
    WEFT_ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(size));
    WEFT_RETURN_IF_ERROR(Measure(rank.get(), flags, bytes));
  }
  WEFT_RETURN_IF_ERROR(rank->Reduce(Tensor::Vector<float>({0}), CollectiveKind::kBarrier));
  for (const auto& other : others) {
    WEFT_RETURN_IF_ERROR(other->Wait(absl::Seconds(30)).status());
  }
  return absl::OkStatus();
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
                   "direct, ring, halving-doubling, hierarchical, or auto by size")
      ->capture_default_str();
  command->add_flag("--copy", flags->copy, "Through sockets, not through shared memory");
  command->add_option("--rank", flags->rank, "Of the program's own processes")->group("");
  command->add_option("--leader", flags->leader, "Of the program's own processes")->group("");
  SetAction(command, action, [flags] { return RunRank(*flags); });
}

}  // namespace weft::apps
