// SPDX-License-Identifier: Apache-2.0
// The scheduler while everything goes wrong: killed between any two calls, answers lost, refused or
// late, watches behind, nodes that vanish, pods that go. Chance and time come from one seed.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/resources/node_words.h"
#include "platform/resources/pod_needs.h"
#include "platform/scheduling/pod_scheduler.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

// The way to the API server. Watches say what they have when they are let, in order.
class BadNetwork : public PassingStore {
 public:
  BadNetwork(ObjectStore* below, std::mt19937_64* random) : PassingStore(below), random_(random) {}

  // After so many more calls whoever calls is dead: nothing that it asks for happens.
  void DieAfter(int calls) { calls_left_ = calls; }
  bool is_dead() const { return calls_left_ == 0; }
  void set_is_bad(bool is_bad) { is_bad_ = is_bad; }

  // Events on their way: some of them arrive.
  void Deliver(bool all) {
    for (const auto& line : lines_) {
      while (!line->events.empty() && (all || Draw(2) == 0)) {
        const WatchEvent event = line->events.front();
        line->events.pop_front();
        line->sink(event);
      }
    }
  }

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override {
    return Call([&] { return below_->Get(type, name); });
  }
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    return Call([&] { return below_->Update(type, std::move(object), options); });
  }
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override {
    return Call([&] { return below_->Patch(type, name, kind, patch, options); });
  }
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    return Call([&] { return below_->Create(type, namespace_name, std::move(object), options); });
  }
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override {
    return Call([&] {
      const StatusOr<ObjectPtr> before = below_->Get(type, name);
      StatusOr<ObjectPtr> deleted = below_->Delete(type, name, options);
      if (deleted.ok()) ++evictions_;
      if (deleted.ok() && before.ok() && IsFinishedPod(**before)) ++lost_work_;
      return deleted;
    });
  }
  // Pods that had finished and were evicted all the same.
  int lost_work() const { return lost_work_; }
  int evictions() const { return evictions_; }
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    auto line = std::make_shared<Line>();
    line->sink = std::move(sink);
    WEFT_ASSIGN_OR_RETURN(
        auto watch, below_->StartWatch(type, options,
                                       [line](const WatchEvent& e) { line->events.push_back(e); }));
    lines_.push_back(line);
    return std::unique_ptr<Watch>(new LineWatch(this, line, std::move(watch)));
  }

 private:
  struct Line {
    WatchSink sink;
    std::deque<WatchEvent> events;
  };
  class LineWatch : public Watch {
   public:
    LineWatch(BadNetwork* network, std::shared_ptr<Line> line, std::unique_ptr<Watch> watch)
        : network_(network), line_(std::move(line)), watch_(std::move(watch)) {}
    ~LineWatch() override {
      std::vector<std::shared_ptr<Line>>& lines = network_->lines_;
      lines.erase(std::find(lines.begin(), lines.end(), line_));
    }

   private:
    BadNetwork* const network_;
    const std::shared_ptr<Line> line_;
    const std::unique_ptr<Watch> watch_;
  };

  uint64_t Draw(uint64_t below) { return (*random_)() % below; }

  template <typename Function>
  StatusOr<ObjectPtr> Call(Function call) {
    if (calls_left_ == 0) return absl::CancelledError("dead");
    if (calls_left_ > 0) --calls_left_;
    if (!is_bad_) return call();
    switch (Draw(12)) {
      case 0:
        return absl::UnavailableError("the call is lost");
      case 1: {
        const Status ignored = call().status();
        return absl::DeadlineExceededError("the answer is lost");
      }
      default:
        return call();
    }
  }

  std::mt19937_64* const random_;
  std::vector<std::shared_ptr<Line>> lines_;  // in the order in which they began
  int lost_work_ = 0;
  int evictions_ = 0;
  int calls_left_ = -1;
  bool is_bad_ = true;
};

class World {
 public:
  // Every third world has two queues that lend each other what they do not use.
  explicit World(uint64_t seed)
      : random_(seed), has_queues_(seed % 3 == 0), clock_(absl::FromUnixSeconds(1700000000)) {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    auto store = EmbeddedStore::Open(std::move(options));
    if (store.ok()) store_ = *std::move(store);
    for (int i = 0; i < 3; ++i) {
      AddNode(i);
      const StatusOr<Json> priority =
          Json::Parse(absl::StrCat(R"({"metadata":{"name":"p)", i, R"("},"value":)", i, "}"));
      EXPECT_TRUE(priority.ok());
      const ResourceType& type = *FindResource("scheduling.k8s.io", "priorityclasses");
      EXPECT_TRUE(store_->Create(type, "", *priority, {}).ok());
    }
  }

  // Of pods that had a place.
  int evictions() const { return evictions_ + network_->evictions(); }

  void Run() {
    Start();
    for (int step = 0; step < 60; ++step) {
      Change();
      if (Draw(10) == 0) network_->DieAfter(static_cast<int>(Draw(8)));
      network_->Deliver(false);
      clock_.Advance(absl::Seconds(static_cast<int64_t>(Draw(4))));
      scheduler_->Step();
      if (network_->is_dead() || Draw(25) == 0) Start();
      Check(step);
      if (testing::Test::HasFailure()) return;
    }
    // It is calm again: what is to be must come.
    for (int i = 0; i < 3; ++i) AddNode(i);
    Start();
    network_->set_is_bad(false);
    for (int i = 0; i < 60; ++i) {
      network_->Deliver(true);
      clock_.Advance(absl::Seconds(2));
      scheduler_->Step();
      Check(1000 + i);
      ReplaceEvicted();
    }
    CheckEnd();
  }

 private:
  static constexpr const char* kQueues[] = {"red", "blue"};
  static constexpr int64_t kQuota = 6;  // GPUs of 12

  uint64_t Draw(uint64_t below) { return random_() % below; }

  void Start() {
    scheduler_.reset();
    if (network_ != nullptr) evictions_ += network_->evictions();
    network_ = std::make_unique<BadNetwork>(store_.get(), &random_);
    PodScheduler::Options options;
    options.store = network_.get();
    options.clock = &clock_;
    options.scheduler_names = {"default-scheduler"};
    if (has_queues_) {
      for (const char* name : kQueues) {
        QueueSpec queue;
        queue.name = name;
        queue.cohort = "all";
        queue.quota = {-1, -1, kQuota * 1000};
        options.queues.push_back(queue);
      }
    }
    auto scheduler = PodScheduler::Create(std::move(options));
    ASSERT_TRUE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
  }

  void AddNode(int number) {
    const StatusOr<Json> node =
        ParseNodeWord(absl::StrCat("n", number, ",cpu=8,pods=20,gpu=4,gpu-memory=16Gi"));
    ASSERT_TRUE(node.ok());
    if (!store_->Create(Nodes(), "", *node, {}).ok()) return;
    WriteOptions status;
    status.subresource = "status";
    ASSERT_TRUE(store_->Patch(Nodes(), {"", NameOf(*node)}, PatchKind::kMerge, *node, status).ok());
  }

  void AddPod(const std::string& name, const std::string& gang) {
    const char* const kinds[] = {R"("cpu":"1")", R"("cpu":"1","nvidia.com/gpu":"1")",
                                 R"("cpu":"2","nvidia.com/gpu":"2")",
                                 R"("weft.dev/gpu-memory":"6Gi")"};
    const std::string queue = has_queues_
                                  ? absl::StrCat(R"(,"labels":{"kueue.x-k8s.io/queue-name":")",
                                                 kQueues[Draw(4) == 0 ? 1 : 0], "\"}")
                                  : "";
    const StatusOr<Json> pod = Json::Parse(absl::StrCat(
        R"({"metadata":{"name":")", name, "\"",
        gang.empty() ? queue
                     : absl::StrCat(R"(,"labels":{"scheduling.x-k8s.io/pod-group":")", gang, "\"}"),
        R"(},"spec":{"priorityClassName":"p)",
        has_queues_    ? 0
        : gang.empty() ? Draw(3)
                       : 1,
        "\"", R"(,"containers":[{"name":"c","image":"i","resources":{"limits":{)",
        gang.empty() && !has_queues_ ? kinds[Draw(4)] : kinds[1], "}}}]}}"));
    ASSERT_TRUE(pod.ok()) << pod.status();
    const Status created = store_->Create(Pods(), "default", *pod, {}).status();
    if (created.ok() && !gang.empty()) members_[gang].insert(name);
  }

  void AddGang() {
    const std::string gang = absl::StrCat("g", ++count_);
    Json group;
    group.Set("apiVersion", PodGroups().ApiVersion());
    group.Set("kind", "PodGroup");
    SetField(&group, {"metadata", "name"}, gang);
    SetField(&group, {"spec", "minMember"}, 4);
    ASSERT_TRUE(store_->Create(PodGroups(), "default", group, {}).ok());
    for (int i = 0; i < 4; ++i) AddPod(absl::StrCat(gang, "-", i), gang);
  }

  void Change() {
    if (Draw(3) == 0) WorkSome();
    switch (Draw(8)) {
      case 0:
      case 1:
        AddPod(absl::StrCat("p", ++count_), "");
        break;
      case 2:
        if (members_.size() < 6 && !has_queues_) AddGang();
        break;
      case 3:
      case 4:
        DeleteSomePod();
        break;
      case 5: {
        const int number = static_cast<int>(Draw(3));
        if (!store_->Delete(Nodes(), {"", absl::StrCat("n", number)}, {}).ok()) AddNode(number);
        // What ran there is lost, as a node controller finds.
        DropPodsOf(absl::StrCat("n", number));
        break;
      }
      default:
        // There is more to do than room for it.
        AddPod(absl::StrCat("p", ++count_), "");
        break;
    }
    FinishDeletions();
    ReplaceEvicted();
  }

  std::vector<ObjectPtr> ListPods() {
    const auto pods = store_->List(Pods(), {});
    return pods.ok() ? pods->items : std::vector<ObjectPtr>();
  }
  void DropPodsOf(const std::string& node) {
    for (const ObjectPtr& pod : ListPods()) {
      if (StringField(*pod, {"spec", "nodeName"}) == node)
        (void)store_->Delete(Pods(), {"default", NameOf(*pod)}, {.grace_seconds = 0});
    }
  }
  // What is bound begins to run, and what runs comes to its end.
  void WorkSome() {
    for (const ObjectPtr& pod : ListPods()) {
      if (StringField(*pod, {"spec", "nodeName"}).empty() || IsTerminating(*pod) ||
          IsFinishedPod(*pod) || Draw(3) != 0)
        continue;
      const bool runs = StringField(*pod, {"status", "phase"}) == "Running";
      if (runs && Draw(4) != 0) continue;
      Json worked = *pod;
      SetField(&worked, {"status", "phase"}, runs ? "Succeeded" : "Running");
      WriteOptions status;
      status.subresource = "status";
      (void)store_->Update(Pods(), std::move(worked), status);
    }
  }
  // A kubelet's part.
  void FinishDeletions() {
    for (const ObjectPtr& pod : ListPods()) {
      if (IsTerminating(*pod) && Draw(2) == 0)
        (void)store_->Delete(Pods(), {"default", NameOf(*pod)}, {.grace_seconds = 0});
    }
  }
  void DeleteSomePod() {
    const std::vector<ObjectPtr> pods = ListPods();
    if (!pods.empty())
      (void)store_->Delete(Pods(), {"default", NameOf(*pods[Draw(pods.size())])}, {});
  }
  // A job's controller makes a pod of its gang again.
  void ReplaceEvicted() {
    FinishDeletions();
    for (const auto& [gang, names] : std::map<std::string, std::set<std::string>>(members_)) {
      for (const std::string& name : names) {
        if (!store_->Get(Pods(), {"default", name}).ok()) AddPod(name, gang);
      }
    }
  }

  // Nobody waits while its own quota is not used up, whatever others have borrowed.
  void CheckQuotas() {
    std::map<std::string, int64_t> used;
    std::set<std::string> waiting;
    for (const ObjectPtr& pod : ListPods()) {
      if (IsFinishedPod(*pod)) continue;
      const std::string queue =
          StringField(*pod, {"metadata", "labels", "kueue.x-k8s.io/queue-name"});
      const bool is_placed = !StringField(*pod, {"spec", "nodeName"}).empty();
      is_placed ? (void)++used[queue] : (void)waiting.insert(queue);
    }
    for (const std::string& queue : waiting)
      EXPECT_GE(used[queue], kQuota) << "of queue " << queue << ", which waits";
  }

  // No GPU is with two, no share of one is more than it has, no node has more than it has.
  void Check(int step) {
    std::map<std::string, std::map<int, int64_t>> memory;  // by node and GPU; 16 is a whole one
    std::map<std::string, int64_t> processors;
    for (const ObjectPtr& pod : ListPods()) {
      const std::string node = StringField(*pod, {"spec", "nodeName"});
      if (node.empty() || IsFinishedPod(*pod)) continue;
      std::shared_ptr<const PodNeeds>& needs = needs_[StringField(*pod, {"metadata", "uid"})];
      if (needs == nullptr) {
        ResourceNames names;
        const auto read = ReadPodNeeds(*pod, &names);
        ASSERT_TRUE(read.ok());
        needs = *read;
      }
      processors[node] += AmountOf(needs->amounts, kCpu);
      const auto gpus =
          ParseGpuIndices(StringField(*pod, {"metadata", "annotations", kGpuIndicesAnnotation}));
      ASSERT_TRUE(gpus.ok());
      ASSERT_EQ(static_cast<int64_t>(gpus->size()), needs->gpu.count) << NameOf(*pod);
      for (const int gpu : *gpus)
        memory[node][gpu] += needs->gpu.is_shared() ? needs->gpu.memory >> 30 : 16;
    }
    for (const auto& [node, by_gpu] : memory) {
      for (const auto& [gpu, gib] : by_gpu)
        ASSERT_LE(gib, 16) << "GPU " << gpu << " of " << node << " at step " << step;
    }
    for (const auto& [node, cpu] : processors) ASSERT_LE(cpu, 8000) << node << " at step " << step;
    ASSERT_EQ(network_->lost_work(), 0) << "finished pods were evicted at step " << step;
  }

  // A gang has all its places or none, unless some of it have begun to work: those keep theirs
  // while the others find none.
  void CheckEnd() {
    if (has_queues_) CheckQuotas();
    for (const auto& [gang, names] : members_) {
      size_t placed = 0;
      bool has_begun = false;
      for (const std::string& name : names) {
        const auto pod = store_->Get(Pods(), {"default", name});
        has_begun = has_begun || (pod.ok() && StringField(**pod, {"status", "phase"}) != "Pending");
        if (pod.ok() && !StringField(**pod, {"spec", "nodeName"}).empty()) ++placed;
      }
      EXPECT_TRUE(has_begun || placed == 0 || placed == names.size())
          << gang << " has " << placed << " of " << names.size();
    }
  }

  std::mt19937_64 random_;
  const bool has_queues_;
  FakeClock clock_;
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<BadNetwork> network_;
  std::unique_ptr<PodScheduler> scheduler_;
  std::map<std::string, std::set<std::string>> members_;
  std::map<std::string, std::shared_ptr<const PodNeeds>>
      needs_;  // by UID; pods do not change theirs
  int count_ = 0;
  int evictions_ = 0;
};

TEST(SchedulerFaultsTest, NothingIsGivenTwiceAndNoGangStaysPartial) {
  const char* const first = std::getenv("WEFT_FIRST_SEED");
  const uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* const count = std::getenv("WEFT_SEEDS");
  const uint64_t seeds = count == nullptr ? 150 : std::strtoull(count, nullptr, 10);
  int evictions = 0;
  for (uint64_t seed = begin; seed < begin + seeds; ++seed) {
    World world(seed);
    world.Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "WEFT_FIRST_SEED=" << seed;
    evictions += world.evictions();
  }
  // Else there was nothing to be lost.
  if (seeds > 20) {
    EXPECT_GT(evictions, static_cast<int>(seeds) / 10);
  }
}

}  // namespace
}  // namespace weft::platform
