// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timers.h"
#include "net/utf8.h"
#include "platform/object/fields.h"
#include "platform/reconcile/controller_loop.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/reconcile/expectations.h"
#include "platform/reconcile/informer.h"
#include "platform/reconcile/owned_objects.h"
#include "platform/reconcile/work_queue.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string TakeNow(WorkQueue* queue) { return queue->Take(absl::ZeroDuration()).value_or(""); }

TEST(WorkQueueTest, HoldsAKeyOnceAndWithOneWorker) {
  FakeClock clock;
  WorkQueue queue(&clock);
  queue.Add("a");
  queue.Add("a");
  queue.Add("b");
  EXPECT_EQ(TakeNow(&queue), "a");
  queue.Add("a");
  EXPECT_EQ(TakeNow(&queue), "b");
  EXPECT_EQ(TakeNow(&queue), "");
  queue.Done("a");
  EXPECT_EQ(TakeNow(&queue), "a");
  queue.Done("a");
  queue.Done("b");
  EXPECT_EQ(TakeNow(&queue), "");
}

TEST(WorkQueueTest, KeepsTheEarlierTime) {
  FakeClock clock;
  WorkQueue queue(&clock);
  queue.AddAfter("a", absl::Seconds(10));
  queue.AddAfter("a", absl::Seconds(5));
  queue.AddAfter("a", absl::Seconds(20));
  EXPECT_EQ(queue.NextDue(), clock.Monotonic() + absl::Seconds(5));
  clock.Advance(absl::Seconds(4));
  EXPECT_EQ(TakeNow(&queue), "");
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(TakeNow(&queue), "a");
  queue.Done("a");
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(TakeNow(&queue), "");
}

TEST(WorkQueueTest, WaitsLongerAfterEachFailure) {
  FakeClock clock;
  WorkQueue queue(&clock, {absl::Seconds(1), absl::Seconds(5)});
  for (const int want : {1, 2, 4, 5, 5}) {
    queue.AddRateLimited("a");
    EXPECT_EQ(queue.NextDue() - clock.Monotonic(), absl::Seconds(want));
    clock.Advance(absl::Seconds(want));
    EXPECT_EQ(TakeNow(&queue), "a");
    queue.Done("a");
  }
  queue.Forget("a");
  queue.AddRateLimited("a");
  EXPECT_EQ(queue.NextDue() - clock.Monotonic(), absl::Seconds(1));
}

TEST(WorkQueueTest, ARefusalIsTriedAgainLessOftenAtFirstAndMoreOftenLater) {
  FakeClock clock{absl::FromUnixSeconds(0)};
  WorkQueue queue(&clock);
  int tries = 0;
  absl::Duration longest;
  absl::Duration last;
  for (absl::Duration now; now < absl::Minutes(10); now += absl::Seconds(1)) {
    if (queue.Take(absl::ZeroDuration()).has_value()) {
      ++tries;
      longest = std::max(longest, now - last);
      last = now;
      queue.Done("a");
    }
    if (now == absl::ZeroDuration() || last == now) queue.AddRefused("a");
    clock.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(longest, absl::Minutes(1));
  EXPECT_LT(tries, 17);
}

TEST(WorkQueueTest, ShuttingDownWakesWhoWaits) {
  RealClock clock;
  WorkQueue queue(&clock);
  TimerQueue timers;
  timers.Schedule(absl::Milliseconds(20), [&] { queue.ShutDown(); });
  EXPECT_FALSE(queue.Take(absl::InfiniteDuration()).has_value());
}

TEST(ExpectationsTest, AreMetWhenSeenOrGivenUp) {
  FakeClock clock;
  Expectations expectations(&clock);
  EXPECT_TRUE(expectations.AreMet("job"));
  expectations.ExpectCreation("job", "pods/a");
  expectations.ExpectDeletion("job", "uid");
  expectations.Created("job", "pods/a");
  expectations.Created("job", "pods/other");
  EXPECT_FALSE(expectations.AreMet("job"));
  EXPECT_TRUE(expectations.AreMet("another"));
  expectations.Deleted("job", "uid");
  EXPECT_TRUE(expectations.AreMet("job"));
  expectations.ExpectCreation("job", "pods/lost");
  EXPECT_FALSE(expectations.AreMet("job"));
  clock.Advance(absl::Minutes(6));
  EXPECT_TRUE(expectations.AreMet("job"));
}

std::unique_ptr<EmbeddedStore> MakeStore(const Clock* clock) {
  EmbeddedStore::Options options;
  options.clock = clock;
  return EmbeddedStore::Open(std::move(options)).value();
}

class InformerTest : public ::testing::Test {
 protected:
  InformerTest() : store_(MakeStore(&clock_)) {}
  void Put(const std::string& name, const std::string& owner = "") {
    Json object = Json::Parse(R"({"apiVersion":"v1","kind":"ConfigMap"})").value();
    SetField(&object, {"metadata", "name"}, name);
    if (!owner.empty()) {
      Json reference;
      reference.Set("apiVersion", "v1");
      reference.Set("kind", "ConfigMap");
      reference.Set("name", "owner");
      reference.Set("uid", owner);
      reference.Set("controller", true);
      SetField(&object, {"metadata", "ownerReferences"}, Json(Json::Array{std::move(reference)}));
    }
    ASSERT_TRUE(store_->Create(type_, "default", std::move(object), {}).ok());
  }
  std::vector<std::string> Names(const std::vector<ObjectPtr>& objects) {
    std::vector<std::string> names;
    for (const ObjectPtr& object : objects) names.push_back(NameOf(*object));
    return names;
  }
  FakeClock clock_;
  const ResourceType& type_ = *FindResource("", "configmaps");
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(InformerTest, FollowsTheStore) {
  Put("a");
  const std::string uid = UidOf(*store_->Get(type_, {"default", "a"}).value());
  Informer informer(store_.get(), type_, {"default", ""}, &clock_);
  std::vector<std::string> seen;
  informer.AddHandler([&](const ObjectPtr& previous, const ObjectPtr& object) {
    seen.push_back((previous == nullptr ? "+"
                    : object == nullptr ? "-"
                                        : "~") +
                   NameOf(object == nullptr ? *previous : *object));
  });
  EXPECT_FALSE(informer.HasSynced());
  informer.Maintain();
  EXPECT_TRUE(informer.HasSynced());
  Put("b", uid);
  EXPECT_THAT(Names(informer.List()), ElementsAre("a", "b"));
  EXPECT_THAT(Names(informer.OwnedBy(uid)), ElementsAre("b"));
  ASSERT_TRUE(store_->Delete(type_, {"default", "a"}, {}).ok());
  EXPECT_THAT(informer.List(), IsEmpty());
  EXPECT_THAT(informer.OwnedBy(uid), IsEmpty());
  EXPECT_THAT(seen, ElementsAre("+a", "+b", "-a", "-b"));
  EXPECT_EQ(informer.Get("default", "a"), nullptr);
}

TEST_F(InformerTest, KeepsOnlyWhatItIsAskedTo) {
  Put("a");
  const std::string uid = UidOf(*store_->Get(type_, {"default", "a"}).value());
  Informer::Options options;
  options.keep = [](const Json& object) {
    Json kept;
    kept.Set("metadata", *object.Find("metadata"));
    EraseField(&kept, {"metadata", "creationTimestamp"});
    return kept;
  };
  Informer informer(store_.get(), type_, options, &clock_);
  std::vector<std::string> seen;
  informer.AddHandler([&](const ObjectPtr& previous, const ObjectPtr& object) {
    for (const ObjectPtr& one : {previous, object}) {
      seen.push_back(one == nullptr ? "-" : absl::StrCat(NameOf(*one), one->size()));
    }
  });
  informer.Maintain();
  Put("c", uid);
  Put("b", uid);
  EXPECT_THAT(Names(informer.List()), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Names(informer.OwnedBy(uid)), ElementsAre("b", "c"));
  EXPECT_EQ(UidOf(*informer.Get("default", "a")), uid);
  EXPECT_EQ(informer.Get("default", "a")->Find("kind"), nullptr);
  EXPECT_EQ(informer.Get("default", "d"), nullptr);
  ASSERT_TRUE(store_->Delete(type_, {"default", "b"}, {}).ok());
  EXPECT_THAT(Names(informer.OwnedBy(uid)), ElementsAre("c"));
  EXPECT_THAT(seen, ElementsAre("-", "a1", "-", "c1", "-", "b1", "b1", "-"));
}

// A store whose watches the test breaks.
class WatchBreaker : public PassingStore {
 public:
  using PassingStore::PassingStore;
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    ++starts;
    if (refuses) return Unavailable("no watch");
    sink_ = sink;
    return below_->StartWatch(type, options, [this](const WatchEvent& event) {
      if (!is_deaf) sink_(event);
    });
  }
  void Tell(const WatchEvent& event) { sink_(event); }
  void Break() { sink_(WatchEvent{WatchEvent::Kind::kError, nullptr, Unavailable("broken")}); }

  bool refuses = false;
  bool is_deaf = false;
  int starts = 0;

 private:
  WatchSink sink_;
};

TEST_F(InformerTest, CatchesUpAfterABrokenWatch) {
  Put("a");
  Put("b");
  WatchBreaker breaker(store_.get());
  Informer informer(&breaker, type_, {}, &clock_);
  int removed = 0;
  informer.AddHandler(
      [&](const ObjectPtr&, const ObjectPtr& object) { removed += object == nullptr ? 1 : 0; });
  informer.Maintain();
  breaker.is_deaf = true;
  ASSERT_TRUE(store_->Delete(type_, {"default", "a"}, {}).ok());
  Put("c");
  EXPECT_THAT(Names(informer.List()), ElementsAre("a", "b"));
  breaker.is_deaf = false;
  breaker.refuses = true;
  breaker.Break();
  informer.Maintain();  // the pause after the first failure
  EXPECT_EQ(breaker.starts, 1);
  clock_.Advance(absl::Seconds(1));
  informer.Maintain();
  EXPECT_EQ(breaker.starts, 2);
  breaker.refuses = false;
  clock_.Advance(absl::Minutes(1));
  informer.Maintain();
  EXPECT_THAT(Names(informer.List()), UnorderedElementsAre("b", "c"));
  EXPECT_EQ(removed, 1);
}

TEST_F(InformerTest, AWatchThatLosesItsOrderStartsAnew) {
  Put("a");
  WatchBreaker breaker(store_.get());
  Informer informer(&breaker, type_, {}, &clock_);
  informer.Maintain();
  const ObjectPtr first = informer.Get("default", "a");
  breaker.is_deaf = true;
  Json changed = *first;
  SetField(&changed, {"data", "key"}, "value");
  const ObjectPtr second = store_->Update(type_, changed, {}).value();
  Put("b");
  const ObjectPtr other = store_->Get(type_, {"default", "b"}).value();
  breaker.is_deaf = false;
  breaker.Tell({WatchEvent::Kind::kAdded, other, absl::OkStatus()});
  // A repeat says nothing new; what is older than what came before it is a loss of order.
  breaker.Tell({WatchEvent::Kind::kAdded, other, absl::OkStatus()});
  EXPECT_GT(informer.NextMaintenance(), clock_.Monotonic() + absl::Minutes(1));
  breaker.Tell({WatchEvent::Kind::kModified, second, absl::OkStatus()});
  EXPECT_EQ(RevisionOf(*informer.Get("default", "a")), RevisionOf(*first));
  EXPECT_LT(informer.NextMaintenance(), clock_.Monotonic() + absl::Minutes(1));
  clock_.Advance(absl::Seconds(1));
  informer.Maintain();
  EXPECT_EQ(breaker.starts, 2);
  EXPECT_EQ(RevisionOf(*informer.Get("default", "a")), RevisionOf(*second));
}

// A list that is older than what is known, as a server that lags behind has it.
TEST_F(InformerTest, DoesNotGoBackToAnOldList) {
  Put("a");
  const ObjectPtr first = store_->Get(type_, {"default", "a"}).value();
  Put("b");
  WatchBreaker breaker(store_.get());
  Informer informer(&breaker, type_, {}, &clock_);
  informer.Maintain();
  breaker.is_deaf = true;
  const auto tell_old_list = [&] {
    breaker.Break();
    clock_.Advance(absl::Seconds(31));
    informer.Maintain();
    breaker.Tell({WatchEvent::Kind::kAdded, first, absl::OkStatus()});
    breaker.Tell({WatchEvent::Kind::kBookmark, first, absl::OkStatus()});
  };
  tell_old_list();
  EXPECT_THAT(Names(informer.List()), ElementsAre("a", "b"));
  // Said for minutes it is true: the store was set back.
  for (int i = 0; i < 10; ++i) tell_old_list();
  EXPECT_THAT(Names(informer.List()), ElementsAre("a"));
}

TEST_F(InformerTest, FindsWhatAWatchHasLostByListingAgain) {
  WatchBreaker breaker(store_.get());
  Informer informer(&breaker, type_, {"", "", absl::Minutes(10)}, &clock_);
  informer.Maintain();
  breaker.is_deaf = true;
  Put("a");
  breaker.is_deaf = false;
  clock_.Advance(absl::Minutes(9));
  informer.Maintain();
  EXPECT_THAT(informer.List(), IsEmpty());
  clock_.Advance(absl::Minutes(1));
  informer.Maintain();
  EXPECT_THAT(Names(informer.List()), ElementsAre("a"));
}

TEST_F(InformerTest, EventsThatRepeatAreCounted) {
  Put("a");
  const Json object = *store_->Get(type_, {"default", "a"}).value();
  EventRecorder recorder(store_.get(), &clock_, "tester");
  recorder.Record(object, "Normal", "Done", "it is done");
  recorder.Record(object, "Normal", "Done", "it is done");
  recorder.Record(object, "Warning", "Done", "it is done");
  ListOptions options;
  options.field_selector = absl::StrCat("involvedObject.uid=", UidOf(object), ",type=Normal");
  const ObjectList events = store_->List(Events(), options).value();
  ASSERT_EQ(events.items.size(), 1u);
  EXPECT_EQ(IntField(*events.items[0], {"count"}), 2);
  ASSERT_TRUE(store_->Delete(Events(), {"default", NameOf(*events.items[0])}, {}).ok());
  recorder.Record(object, "Normal", "Done", "it is done");
  EXPECT_EQ(store_->List(Events(), options).value().items.size(), 1u);
  // On one line, and not longer than a cluster takes, which takes whole characters.
  std::string much = "one\ntwo ";
  for (int i = 0; i < 1000; ++i) much += "\u00e9";
  recorder.Record(object, "Error", "Long", much);
  options.field_selector = "type=Error";
  const ObjectList cut = store_->List(Events(), options).value();
  ASSERT_EQ(cut.items.size(), 1u);
  const std::string text = StringField(*cut.items[0], {"message"});
  EXPECT_EQ(text.substr(0, 11), "one; two \u00e9");
  EXPECT_EQ(text.size(), 1023u);
  EXPECT_EQ(FindBadUtf8(text), std::string::npos);
}

TEST_F(InformerTest, EventsAreWrittenBehindTheWorkAndBeforeTheEnd) {
  Put("a");
  const Json object = *store_->Get(type_, {"default", "a"}).value();
  {
    EventRecorder recorder(store_.get(), &clock_, "tester");
    recorder.Start();
    for (int i = 0; i < 20; ++i)
      recorder.Record(object, "Normal", "Done", absl::StrCat("part ", i));
    recorder.Record(object, "Normal", "Done", "part 19");
  }
  const ObjectList events = store_->List(Events(), {}).value();
  EXPECT_EQ(events.items.size(), 20u);
}

// Whose user ends with the third object that it makes.
class EndingStore : public PassingStore {
 public:
  using PassingStore::PassingStore;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    if (++count_ == 3) user->Stop();
    return PassingStore::Create(type, namespace_name, std::move(object), options);
  }
  OwnedObjects* user = nullptr;

 private:
  int count_ = 0;
};

TEST_F(InformerTest, WhoEndsMakesAndDeletesNoMore) {
  Put("owner");
  const ObjectPtr owner = store_->Get(type_, {"default", "owner"}).value();
  EventRecorder recorder(store_.get(), &clock_, "tester");
  Expectations expectations(&clock_);
  EndingStore store(store_.get());
  OwnedObjects owned(&store, &recorder, &expectations, nullptr, {});
  store.user = &owned;
  std::vector<Json> wanted(1000, Json::Parse(R"({"apiVersion":"v1","kind":"ConfigMap"})").value());
  for (size_t i = 0; i < wanted.size(); ++i)
    SetField(&wanted[i], {"metadata", "name"}, absl::StrCat("made-", i));
  EXPECT_TRUE(absl::IsCancelled(owned.CreateAll(type_, *owner, wanted)));
  EXPECT_EQ(store_->List(type_, {}).value().items.size(), 4u);
  EXPECT_TRUE(absl::IsCancelled(owned.Delete(type_, *owner, owner)));
  EXPECT_TRUE(store_->Get(type_, {"default", "owner"}).ok());
}

TEST_F(InformerTest, ALoopWorksUntilItEnds) {
  RealClock real;
  WorkQueue queue(&real);
  Informer informer(store_.get(), type_, {}, &real);
  informer.AddHandler(
      [&](const ObjectPtr&, const ObjectPtr& object) { queue.Add(KeyOfObject(*object)); });
  absl::Mutex mutex;
  std::vector<std::string> done;
  int failures = 2;
  {
    ControllerLoop loop(
        "test", &queue, {&informer},
        [&](const std::string& key) -> StatusOr<absl::Duration> {
          absl::MutexLock lock(&mutex);
          if (failures-- > 0) return Unavailable("not yet");
          done.push_back(key);
          return absl::InfiniteDuration();
        },
        2);
    Put("a");
    absl::MutexLock lock(&mutex);
    const auto is_done = [&] { return !done.empty(); };
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&is_done), absl::Seconds(30)));
  }
  EXPECT_THAT(done, ElementsAre("default/a"));
  EXPECT_EQ(SplitKey("default/a"), (std::pair<std::string, std::string>("default", "a")));
}

}  // namespace
}  // namespace weft::platform
