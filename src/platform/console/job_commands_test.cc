// SPDX-License-Identifier: Apache-2.0
#include "platform/console/job_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/console/wait_condition.h"
#include "platform/object/fields.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

class JobCommandsTest : public ::testing::Test {
 protected:
  JobCommandsTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    console_.store = store_.get();
    console_.clock = &clock_;
    console_.print = [this](absl::string_view text) { out_.append(text.data(), text.size()); };
  }
  void Make(const ResourceType& type, const char* text) {
    const StatusOr<ObjectPtr> made = store_->Create(type, "default", Json::Parse(text).value(), {});
    ASSERT_TRUE(made.ok()) << made.status();
  }
  Json Get(const ResourceType& type, const std::string& name) {
    return *store_->Get(type, {"default", name}).value();
  }
  Selection Words(std::vector<std::string> words) {
    Selection selection;
    selection.words = std::move(words);
    return selection;
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
  Console console_;
  std::string out_;
};

constexpr char kTfJob[] =
    R"({"metadata":{"name":"job"},"spec":{"tfReplicaSpecs":{"worker":{"replicas":2,"template":{"spec":
       {"containers":[{"name":"tensorflow","image":"i"}]}}},"PS":{"replicas":1,"template":{"spec":
       {"containers":[{"name":"tensorflow","image":"i"}]}}}}}})";
constexpr char kCompact[] =
    R"({"metadata":{"name":"small"},"spec":{"image":"i","ps_count":1,"worker_count":2}})";

TEST_F(JobCommandsTest, ScalesReplicasOfAnyType) {
  Make(TfJobs(), kTfJob);
  Make(Tensorflows(), kCompact);
  const auto count = [&](const char* type) {
    return IntField(Get(TfJobs(), "job"), {"spec", "tfReplicaSpecs", type, "replicas"}, -1);
  };
  ASSERT_TRUE(ScaleObjects(console_, Words({"tfjob", "job"}), 5, "").ok());
  ASSERT_TRUE(ScaleObjects(console_, Words({"tfjob/job"}), 3, "ps").ok());
  EXPECT_EQ(count("worker"), 5);
  EXPECT_EQ(count("PS"), 3);
  EXPECT_EQ(count("Worker"), -1);
  ASSERT_TRUE(ScaleObjects(console_, Words({"tensorflow", "small"}), 4, "").ok());
  ASSERT_TRUE(ScaleObjects(console_, Words({"tensorflow", "small"}), 2, "PS").ok());
  EXPECT_EQ(IntField(Get(Tensorflows(), "small"), {"spec", "worker_count"}), 4);
  EXPECT_EQ(IntField(Get(Tensorflows(), "small"), {"spec", "ps_count"}), 2);
  EXPECT_THAT(out_, HasSubstr("tfjob.kubeflow.org/job scaled\n"));
  const Status chief = ScaleObjects(console_, Words({"tfjob", "job"}), 1, "Chief");
  EXPECT_THAT(std::string(chief.message()), HasSubstr("no replicas of type Chief"));
  const Status pod = ScaleObjects(console_, Words({"pod", "x"}), 1, "");
  EXPECT_THAT(std::string(pod.message()), HasSubstr("A pod has no replicas to scale"));
}

TEST_F(JobCommandsTest, SuspendsAndResumes) {
  Make(TfJobs(), kTfJob);
  Make(Tensorflows(), kCompact);
  Selection all = Words({"tfjobs,tensorflows"});
  all.is_all = true;
  for (const bool is_suspended : {true, false}) {
    ASSERT_TRUE(SuspendJobs(console_, all, is_suspended).ok());
    EXPECT_EQ(BoolField(Get(TfJobs(), "job"), {"spec", "runPolicy", "suspend"}), is_suspended);
    EXPECT_EQ(BoolField(Get(Tensorflows(), "small"), {"spec", "suspend"}), is_suspended);
  }
  EXPECT_THAT(out_, HasSubstr("tfjob.kubeflow.org/job suspended\n"));
  EXPECT_THAT(out_, HasSubstr("tensorflow.krallistic.github.com/small resumed\n"));
  const Status wrong = SuspendJobs(console_, Words({"deployment", "x"}), true);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("jobs can"));
}

TEST(WaitConditionTest, ReadsPaths) {
  const Json object =
      Json::Parse(R"({"status":{"phase":"Running","ready":true,"count":3,"a.b":"c","nothing":null,
                     "list":[{"name":"x"},{"name":"y"}]}})")
          .value();
  const std::pair<const char*, bool> cases[] = {{"jsonpath={.status.phase}=Running", true},
                                                {"jsonpath={.status.phase}='Running'", true},
                                                {"jsonpath={.status.phase}=Pending", false},
                                                {"jsonpath={.status.phase}", true},
                                                {"jsonpath=.status.phase=Running", true},
                                                {"jsonpath={.status.ready}=true", true},
                                                {"jsonpath={.status.count}=3", true},
                                                {"jsonpath={.status['a.b']}=c", true},
                                                {"jsonpath={.status.list[1].name}=y", true},
                                                {"jsonpath={.status.list[-1].name}=y", true},
                                                {"jsonpath={.status.list[2].name}", false},
                                                {"jsonpath={.status.nothing}", false},
                                                {"jsonpath={.spec}", false},
                                                {"delete", false}};
  for (const auto& [text, is_met] : cases) {
    const StatusOr<WaitCondition> condition = WaitCondition::Parse(text);
    ASSERT_TRUE(condition.ok()) << condition.status();
    EXPECT_EQ(condition->IsMet(&object), is_met) << text;
    EXPECT_EQ(condition->IsMet(nullptr), std::string(text) == "delete") << text;
  }
}

TEST(WaitConditionTest, SaysWhatCannotBeRead) {
  const std::pair<const char*, const char*> cases[] = {
      {"jsonpath={.a", "no closing brace"},   {"jsonpath={a}", "begins with a dot"},
      {"jsonpath={}", "it is empty"},         {"jsonpath={..a}", "a name is missing"},
      {"jsonpath={.a[*]}", "only an index"},  {"jsonpath={.a[0}", "not closed"},
      {"Succeeded", "--for takes condition="}};
  for (const auto& [text, why] : cases) {
    const StatusOr<WaitCondition> condition = WaitCondition::Parse(text);
    ASSERT_FALSE(condition.ok()) << text;
    EXPECT_THAT(std::string(condition.status().message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace weft::platform
