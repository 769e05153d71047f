// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/dispatcher.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "net/yaml.h"

namespace weft::platform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class DispatcherTest : public testing::Test {
 protected:
  void Begin(const std::string& order, Dispatcher::Options options = {},
             std::vector<QueueSpec> queues = {}) {
    order_ = *MakeOrder(order);
    placement_ = MakePacking();
    quotas_ = std::make_unique<Quotas>(std::move(queues));
    options.order = order_.get();
    options.placement = placement_.get();
    options.state = &state_;
    options.quotas = quotas_.get();
    dispatcher_ = std::make_unique<Dispatcher>(options);
  }
  void AddNode(const std::string& name, int gpus) {
    NodeDescription node;
    node.name = name;
    node.allocatable = Amounts({64000, int64_t{1} << 38, 100});
    node.gpus.resize(static_cast<size_t>(gpus));
    state_.SetNode(std::make_shared<NodeDescription>(node));
    dispatcher_->CountCapacity();
  }
  Dispatcher::Id Submit(const std::string& name, int pods, int gpus, double left = 1000,
                        int64_t priority = 0, int queue = 0) {
    std::shared_ptr<const PodNeeds>& needs = needs_[gpus];
    if (needs == nullptr) {
      PodNeeds made;
      made.amounts = Amounts({1000, 0, 1});
      made.gpu.count = gpus;
      needs = std::make_shared<PodNeeds>(made);
    }
    Workload workload;
    workload.name = name;
    workload.queue = queue;
    workload.priority = priority;
    workload.submitted = now_;
    workload.left = left;
    workload.pods.assign(static_cast<size_t>(pods), needs);
    return dispatcher_->Add(std::move(workload), now_);
  }
  // The names of those that started.
  std::vector<std::string> Decide() {
    dispatcher_->Decide(now_, &outcome_);
    return NamesOf(outcome_.started);
  }
  std::vector<std::string> NamesOf(const std::vector<Dispatcher::Id>& ids) {
    std::vector<std::string> names;
    for (const Dispatcher::Id id : ids) names.push_back(dispatcher_->workload(id).name);
    return names;
  }

  double now_ = 0;
  ClusterState state_;
  std::map<int, std::shared_ptr<const PodNeeds>> needs_;
  std::unique_ptr<Order> order_;
  std::unique_ptr<PlacementPolicy> placement_;
  std::unique_ptr<Quotas> quotas_;
  std::unique_ptr<Dispatcher> dispatcher_;
  Dispatcher::Outcome outcome_;
};

TEST_F(DispatcherTest, GangsStartWholeOrNotAtAll) {
  Begin("fifo", {.backfill = Backfill::kGreedy});
  AddNode("a", 4);
  // Two jobs of 3 workers on 4 GPUs, pod by pod a deadlock.
  const auto first = Submit("first", 3, 1);
  Submit("second", 3, 1);
  EXPECT_THAT(Decide(), ElementsAre("first"));
  EXPECT_EQ(state_.free_whole_gpus(), 1);
  EXPECT_THAT(Decide(), IsEmpty());
  dispatcher_->Remove(first, now_);
  EXPECT_THAT(Decide(), ElementsAre("second"));
}

TEST_F(DispatcherTest, PriorityGoesFirstAndThenWhoCameFirst) {
  Begin("fifo");
  AddNode("a", 2);
  Submit("old", 1, 1);
  now_ = 1;
  Submit("new", 1, 1);
  Submit("urgent", 1, 1, 1000, 10);
  EXPECT_THAT(Decide(), ElementsAre("urgent", "old"));
}

TEST_F(DispatcherTest, BackfillNeverDelaysTheFirstThatWaits) {
  Begin("fifo", {.backfill = Backfill::kEasy});
  AddNode("a", 4);
  Submit("runs", 3, 1, 100);
  ASSERT_THAT(Decide(), ElementsAre("runs"));
  now_ = 10;
  Submit("great", 4, 1, 100);
  Submit("long", 1, 1, 500);
  Submit("short", 1, 1, 80);
  // It ends at 90, before "great" can start at 100; "long" would hold that up.
  EXPECT_THAT(Decide(), ElementsAre("short"));
}

TEST_F(DispatcherTest, WhatFoundNoRoomIsNotTakenForAnother) {
  Begin("fifo", {.backfill = Backfill::kGreedy});
  AddNode("a", 4);
  for (int i = 0; i < 100; ++i) {
    const auto great = Submit("great", 1, 9);
    ASSERT_THAT(Decide(), IsEmpty());
    dispatcher_->Remove(great, now_);
    // Their needs go, and others may come to lie where they were.
    needs_.clear();
    const auto small = Submit("small", 1, 1);
    ASSERT_THAT(Decide(), ElementsAre("small"));
    dispatcher_->Remove(small, now_);
    needs_.clear();
  }
}

TEST_F(DispatcherTest, StrictQueuesWaitForTheirFirst) {
  Begin("fifo", {.backfill = Backfill::kStrict}, {{"other", "", 1, {-1, -1, -1}}});
  AddNode("a", 4);
  Submit("runs", 1, 1);
  ASSERT_THAT(Decide(), ElementsAre("runs"));
  Submit("great", 4, 1);
  Submit("small", 1, 1);
  Submit("elsewhere", 1, 1, 1000, 0, 1);
  EXPECT_THAT(Decide(), ElementsAre("elsewhere"));
}

TEST_F(DispatcherTest, NobodyWaitsForWhatNeverFits) {
  Begin("fifo", {.backfill = Backfill::kStrict});
  AddNode("a", 4);
  Submit("more than there is", 5, 1);
  Submit("small", 1, 1);
  EXPECT_THAT(Decide(), ElementsAre("small"));
  // Until there is more.
  AddNode("b", 4);
  EXPECT_THAT(Decide(), ElementsAre("more than there is"));
}

TEST_F(DispatcherTest, AHigherPriorityDisplacesTheLeastAndSparesWhatIsNearlyDone) {
  Begin("fifo", {.spared = 60});
  AddNode("a", 4);
  Submit("low", 1, 1, 10000, 1);
  Submit("nearly", 1, 1, 100, 0);
  Submit("lower", 2, 1, 10000, 0);
  EXPECT_THAT(Decide().size(), 3);
  now_ = 50;  // "nearly" has 50 s left
  Submit("urgent", 2, 1, 100, 5);
  EXPECT_THAT(Decide(), ElementsAre("urgent"));
  EXPECT_THAT(NamesOf(outcome_.displaced), ElementsAre("lower"));
  EXPECT_EQ(state_.free_whole_gpus(), 0);
  // Who cannot win that way displaces nobody.
  Submit("greater", 9, 1, 100, 9);
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(outcome_.displaced, IsEmpty());
}

TEST_F(DispatcherTest, VictimsThatLeaveByThemselvesAreWaitedFor) {
  Begin("fifo", {.backfill = Backfill::kGreedy, .evicts = true});
  AddNode("a", 2);
  const auto low = Submit("low", 2, 1);
  ASSERT_THAT(Decide(), ElementsAre("low"));
  Submit("urgent", 1, 2, 1000, 5);
  now_ = 1;
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(NamesOf(outcome_.displaced), ElementsAre("low"));
  EXPECT_TRUE(dispatcher_->workload(low).is_running());
  // Nobody else is told to go meanwhile, and nobody slips in.
  Submit("small", 1, 1);
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(outcome_.displaced, IsEmpty());
  dispatcher_->Remove(low, now_);
  EXPECT_THAT(Decide(), ElementsAre("urgent"));
}

TEST_F(DispatcherTest, ShortestRemainingDisplacesTheLongest) {
  Begin("srtf", {.spared = 0});
  AddNode("a", 2);
  Submit("long", 1, 1, 1000);
  Submit("middle", 1, 1, 500);
  ASSERT_THAT(Decide().size(), 2);
  now_ = 100;
  const auto brief = Submit("brief", 1, 1, 50);
  EXPECT_THAT(Decide(), ElementsAre("brief"));
  EXPECT_THAT(NamesOf(outcome_.displaced), ElementsAre("long"));
  EXPECT_EQ(dispatcher_->workload(outcome_.displaced[0]).left, 900);
  now_ = 150;
  dispatcher_->Remove(brief, now_);
  EXPECT_THAT(Decide(), ElementsAre("long"));
}

TEST_F(DispatcherTest, LeastAttainedServiceGivesWayAfterItsFirstStep) {
  Begin("las", {.spared = 0});
  AddNode("a", 2);
  Submit("wide", 2, 1, kForever);
  ASSERT_THAT(Decide(), ElementsAre("wide"));
  now_ = 100;
  Submit("new", 1, 1, kForever);
  EXPECT_THAT(Decide(), IsEmpty());
  // Two GPUs have 3250 GPU-seconds after 1625 s.
  EXPECT_NEAR(dispatcher_->NextChange(now_), 1625, 1e-6);
  now_ = 1625;
  EXPECT_THAT(Decide(), ElementsAre("new"));
  EXPECT_THAT(NamesOf(outcome_.displaced), ElementsAre("wide"));
}

TEST_F(DispatcherTest, FairShareGoesByTheDominantResource) {
  Begin("drf", {.backfill = Backfill::kGreedy},
        {{"x", "", 1, {-1, -1, -1}}, {"y", "", 2, {-1, -1, -1}}});
  AddNode("a", 9);
  for (int i = 0; i < 9; ++i) Submit(absl::StrCat("x", i), 1, 1, 1000, 0, 1);
  now_ = 1;
  for (int i = 0; i < 9; ++i) Submit(absl::StrCat("y", i), 1, 1, 1000, 0, 2);
  const auto started = Decide();
  ASSERT_EQ(started.size(), 9u);
  // By weight.
  EXPECT_EQ(
      std::count_if(started.begin(), started.end(), [](const auto& n) { return n[0] == 'y'; }), 6);
}

TEST_F(DispatcherTest, QueuesBorrowWhatOthersLeaveAndGiveItBack) {
  Begin("fifo", {.backfill = Backfill::kGreedy, .spared = 0},
        {{"x", "team", 1, {-1, -1, 4000}}, {"y", "team", 1, {-1, -1, 4000}}});
  AddNode("a", 16);
  for (int i = 0; i < 10; ++i) Submit(absl::StrCat("x", i), 1, 1, 1000, 0, 1);
  EXPECT_EQ(Decide().size(), 8u);  // its own 4 and the 4 of y
  now_ = 10;
  Submit("y0", 3, 1, 1000, 0, 2);
  EXPECT_THAT(Decide(), ElementsAre("y0"));
  EXPECT_EQ(outcome_.displaced.size(), 3u);
  Submit("y1", 2, 1, 1000, 0, 2);  // beyond its quota, and nothing is left to borrow
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(outcome_.displaced, IsEmpty());
}

TEST_F(DispatcherTest, BorrowingHasABound) {
  Begin("fifo", {.backfill = Backfill::kGreedy, .spared = 0},
        {{"x", "team", 1, {-1, -1, 4000}, {-1, -1, 2000}}, {"y", "team", 1, {-1, -1, 8000}}});
  AddNode("a", 16);
  for (int i = 0; i < 10; ++i) Submit(absl::StrCat("x", i), 1, 1, 1000, 0, 1);
  EXPECT_EQ(Decide().size(), 6u);  // its own 4, and 2 of the 8 that y leaves
  Submit("x-wide", 7, 1, 1000, 9, 1);
  EXPECT_THAT(Decide(), IsEmpty());
  Submit("y0", 6, 1, 1000, 0, 2);
  EXPECT_THAT(Decide(), ElementsAre("y0"));
  EXPECT_THAT(outcome_.displaced, IsEmpty());
}

TEST_F(DispatcherTest, QueuesAreReadWithTheirMistakes) {
  const auto read = [](const std::string& text) {
    const auto documents = ParseYamlOrJson(text, "q.yaml");
    if (!documents.ok()) return std::string(documents.status().message());
    const Json list = documents->empty() ? Json::MakeArray() : documents->front();
    const auto queues = ReadQueues(list, "q.yaml");
    return queues.ok() ? absl::StrCat(queues->size()) : std::string(queues.status().message());
  };
  EXPECT_EQ(
      read("- {name: a, cohort: c, quota: {cpu: 2, nvidia.com/gpu: 4}, borrowingLimit: {cpu: 1}}"),
      "1");
  EXPECT_EQ(read("- name: a\n- name: b\n- name: a\n"),
            "q.yaml:3:3: queues[2].name: there is a queue 'a' already, in line 1");
  const std::pair<const char*, const char*> mistakes[] = {
      {"quotas: {}", "q.yaml:2:11: queues[0].quotas: "},
      {"weight: 0", "q.yaml:2:11: queues[0].weight: holds 0, a number above 0"},
      {"weight: .inf", "queues[0].weight: holds"},
      {"weight: heavy", "queues[0].weight: holds \"heavy\""},
      {"cohort: [x]", "queues[0].cohort: holds"},
      {"cohort: 'a b'", "queues[0].cohort: holds \"a b\""},
      {"quota: 3", "queues[0].quota"},
      {"quota: {gpus: 1}", "queues[0].quota.gpus"},
      {"quota: {cpu: -1}", "queues[0].quota.cpu"},
      {"quota: {cpu: many}", "queues[0].quota.cpu"},
      {"quota: {cpu: 100P}", "queues[0].quota.cpu"},
      {"quota: {nvidia.com/gpu: 500m}", "queues[0].quota.nvidia.com/gpu"},
      {"borrowingLimit: {cpu: 1}", "a queue without a cohort borrows from nobody"},
      {"parent: root", "q.yaml:2:11: queues[0].parent: queues stand beside each other"},
      {"children: []", "queues[0].children"}};
  for (const auto& [line, message] : mistakes)
    EXPECT_THAT(read(absl::StrCat("- name: a\n  ", line, "\n")), testing::HasSubstr(message));
  EXPECT_THAT(
      read("- {name: a, cohort: c, borrowingLimit: {cpu: 1}}"),
      testing::HasSubstr("queues[0].borrowingLimit.cpu: bounds what goes beyond the quota"));
  EXPECT_THAT(read("- {}"), testing::HasSubstr("queues[0].name: missing"));
  EXPECT_THAT(read("- a"), testing::HasSubstr("queues[0]"));
  EXPECT_THAT(read("{name: a}"), testing::HasSubstr("a list of queues is allowed"));
  EXPECT_THAT(read(""), testing::HasSubstr("there is no queue in it"));
  EXPECT_THAT(read("- {name: ''}"), testing::HasSubstr("queues[0].name"));
}

// Whatever comes and goes: no GPU is with two, a gang has all its places or none, sums are right.
TEST_F(DispatcherTest, AccountsStayRightUnderRandomLife) {
  std::mt19937 random(7);
  for (const std::string order : {"fifo", "srtf", "las", "drf"}) {
    state_ = ClusterState();
    Begin(order, {.evicts = order == "fifo", .spared = 0},
          {{"x", "team", 1, {-1, -1, 6000}}, {"y", "team", 1, {-1, -1, 6000}}});
    for (int i = 0; i < 4; ++i) AddNode(absl::StrCat("n", i), 4);
    std::vector<Dispatcher::Id> alive;
    for (int step = 0; step < 2000; ++step) {
      now_ += 1;
      if (random() % 2 == 0 && alive.size() < 40) {
        alive.push_back(Submit(absl::StrCat(step), 1 + static_cast<int>(random() % 5),
                               static_cast<int>(random() % 3), 1 + random() % 500,
                               static_cast<int64_t>(random() % 3), static_cast<int>(random() % 3)));
      } else if (!alive.empty()) {
        const size_t at = random() % alive.size();
        dispatcher_->Remove(alive[at], now_);
        alive.erase(alive.begin() + static_cast<ptrdiff_t>(at));
      }
      Decide();
      std::map<std::pair<int, int>, int> holders;
      int64_t used = 0;
      for (const Dispatcher::Id id : alive) {
        const Workload& workload = dispatcher_->workload(id);
        if (!workload.is_running()) continue;
        ASSERT_EQ(workload.places.size(), workload.pods.size());
        for (size_t i = 0; i < workload.places.size(); ++i) {
          ASSERT_EQ(static_cast<int64_t>(workload.places[i].gpus.size()),
                    workload.pods[i]->gpu.count);
          for (const int gpu : workload.places[i].gpus) {
            ASSERT_EQ((holders[{workload.places[i].node, gpu}]++), 0) << order << " step " << step;
            ++used;
          }
        }
      }
      ASSERT_EQ(state_.free_whole_gpus(), 16 - used);
      ASSERT_EQ(dispatcher_->used().of[2], used * 1000);
      ASSERT_EQ(dispatcher_->waiting_count() + dispatcher_->running_count(),
                static_cast<int>(alive.size()));
    }
  }
}

}  // namespace
}  // namespace weft::platform
