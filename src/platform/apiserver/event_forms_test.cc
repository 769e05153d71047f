// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/event_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

class EventFormsTest : public ::testing::Test {
 protected:
  EventFormsTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    forms_ = std::make_unique<EventForms>(store_.get());
  }
  static Json Newer() {
    return Json::Parse(
               R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e","namespace":"default"},
        "regarding":{"kind":"Pod","name":"p","namespace":"default"},"note":"it ran","reason":"Ran","type":"Normal",
        "action":"Run","eventTime":"2023-11-14T22:13:20.000000Z","reportingController":"example.com/c",
        "reportingInstance":"c-0"})")
        .value();
  }
  StatusOr<ObjectPtr> Create(const Json& event) {
    return forms_->Create(newer_, "default", event, {});
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  const ResourceType& newer_ = *FindResource("events.k8s.io", "events");
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<EventForms> forms_;
};

TEST_F(EventFormsTest, OneEventHasBothForms) {
  const StatusOr<ObjectPtr> created = Create(Newer());
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(StringField(**created, {"apiVersion"}), "events.k8s.io/v1");
  EXPECT_EQ(StringField(**created, {"regarding", "name"}), "p");
  const ObjectPtr core = forms_->Get(Events(), {"default", "e"}).value();
  EXPECT_EQ(StringField(*core, {"apiVersion"}), "v1");
  EXPECT_EQ(StringField(*core, {"involvedObject", "name"}), "p");
  EXPECT_EQ(StringField(*core, {"message"}), "it ran");
  EXPECT_EQ(StringField(*core, {"reportingComponent"}), "example.com/c");
  // And what the core group was given.
  const Json old = Json::Parse(R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"old"},
      "involvedObject":{"kind":"Pod","name":"q","namespace":"default"},"message":"m","count":3,
      "source":{"component":"kubelet"},"firstTimestamp":"2023-11-14T22:13:20Z",
      "lastTimestamp":"2023-11-14T22:13:20Z"})")
                       .value();
  ASSERT_TRUE(forms_->Create(Events(), "default", old, {}).ok());
  const ObjectPtr newer = forms_->Get(newer_, {"default", "old"}).value();
  EXPECT_EQ(IntField(*newer, {"deprecatedCount"}), 3);
  EXPECT_EQ(StringField(*newer, {"deprecatedSource", "component"}), "kubelet");
  EXPECT_EQ(StringField(*newer, {"note"}), "m");
  for (const auto& [type, event] : {std::pair{&Events(), old}, std::pair{&newer_, *newer}}) {
    EXPECT_EQ(Json(Json::Array(CellsOf(*type, event, clock_.Now() + absl::Seconds(10)))).Dump(),
              R"(["10s","","","pod/q","kubelet","m","10s",3,"old"])");
  }
}

TEST_F(EventFormsTest, ListsAndWatchesAskByEitherName) {
  ASSERT_TRUE(Create(Newer()).ok());
  Json other = Newer();
  SetField(&other, {"metadata", "name"}, "f");
  SetField(&other, {"regarding", "name"}, "q");
  ASSERT_TRUE(Create(other).ok());
  ListOptions options;
  options.field_selector = "regarding.kind=Pod,regarding.name!=q,reportingController=example.com/c";
  const ObjectList list = forms_->List(newer_, options).value();
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(StringField(*list.items[0], {"regarding", "name"}), "p");
  std::vector<std::string> seen;
  WatchOptions watched;
  watched.field_selector = "regarding.name=q";
  const auto watch = forms_->StartWatch(newer_, watched, [&](const WatchEvent& event) {
    seen.push_back(StringField(*event.object, {"note"}));
  });
  ASSERT_TRUE(watch.ok()) << watch.status();
  const Json patch = Json::Parse(R"({"note":"again"})").value();
  ASSERT_TRUE(forms_->Patch(newer_, {"default", "f"}, PatchKind::kMerge, patch, {}).ok());
  const Json operations =
      Json::Parse(R"([{"op":"replace","path":"/note","value":"and again"}])").value();
  ASSERT_TRUE(forms_->Patch(newer_, {"default", "f"}, PatchKind::kJson, operations, {}).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre("it ran", "again", "and again"));
}

TEST_F(EventFormsTest, WhatIsNotThereIsMissedByTheNameThatWasAsked) {
  EXPECT_THAT(forms_->Get(newer_, {"default", "x"}).status().message(),
              HasSubstr("events.events.k8s.io \"x\" not found"));
  ASSERT_TRUE(Create(Newer()).ok());
  ASSERT_TRUE(forms_->Delete(newer_, {"default", "e"}, {}).ok());
  EXPECT_TRUE(IsObjectNotFound(forms_->Get(Events(), {"default", "e"}).status()));
}

TEST_F(EventFormsTest, ANewEventOfThisFormSaysAll) {
  for (const char* name :
       {"eventTime", "action", "reason", "reportingController", "reportingInstance", "type"}) {
    Json event = Newer();
    event.Erase(name);
    const Status refused = Create(event).status();
    EXPECT_EQ(HttpCodeOf(refused), 422) << name;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(name));
  }
  Json old = Newer();
  old.Set("deprecatedCount", 2);
  EXPECT_THAT(std::string(Create(old).status().message()), HasSubstr("needs to be unset"));
  Json wordy = Newer();
  wordy.Set("note", std::string(1025, 'x'));
  EXPECT_EQ(HttpCodeOf(Create(wordy).status()), 422);
}

}  // namespace
}  // namespace weft::platform
