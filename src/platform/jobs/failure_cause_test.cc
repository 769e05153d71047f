// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/failure_cause.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "net/utf8.h"
#include "platform/jobs/controller_fixture_test.h"
#include "platform/jobs/kept_fields.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

// As it is told of a pod of which only the kept fields are known.
std::string Told(const std::string& status) {
  Json pod = Json::Parse(R"({"metadata":{"name":"p"}})").value();
  pod.Set("status", Json::Parse(status).value());
  EXPECT_EQ(DescribeFailure(pod), DescribeFailure(KeptOfPod(pod)));
  return DescribeFailure(KeptOfPod(pod));
}

TEST(FailureCauseTest, SaysWhoEndedAndWhy) {
  EXPECT_EQ(Told(R"({"phase":"Failed","containerStatuses":[
                {"name":"log","state":{"terminated":{"exitCode":1,"reason":"Error"}}},
                {"name":"tensorflow","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]})"),
            "Pod p exited with code 137 (OOMKilled)");
  EXPECT_EQ(Told(R"({"phase":"Failed","containerStatuses":[
                {"name":"log","state":{"terminated":{"exitCode":1,"reason":"Error"}}},
                {"name":"tensorflow","state":{"terminated":{"exitCode":0}}}]})"),
            "Pod p, container log, exited with code 1");
  EXPECT_EQ(Told(R"({"phase":"Failed","initContainerStatuses":[
                {"name":"a","state":{"terminated":{"exitCode":0}}},
                {"name":"fetch","state":{"terminated":{"exitCode":2}}}]})"),
            "Pod p, container fetch, exited with code 2");
  EXPECT_EQ(Told(R"({"phase":"Failed","reason":"Evicted","message":"low on memory"})"),
            "Pod p: Evicted, low on memory");
  EXPECT_EQ(Told(R"({"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True",
                "reason":"PreemptionByScheduler","message":"for a better one"}]})"),
            "Pod p: PreemptionByScheduler, for a better one");
  EXPECT_EQ(Told(R"({"phase":"Failed"})"), "Pod p failed");
  const std::string umlauts = absl::StrCat("x", std::string(100, 'x'), "\u00fc\u00fc");
  std::string message;
  while (message.size() < 400) message += umlauts;
  EXPECT_EQ(
      Told(absl::StrCat(R"({"phase":"Failed","reason":"Evicted","message":")", message, "\"}")),
      absl::StrCat("Pod p: Evicted, ", CutUtf8(message, 256)));
}

class FailureToldTest : public ControllerFixture {
 protected:
  std::string MessageOf(const std::string& type) {
    const Json job = JobNow();
    for (const Json& condition : FindField(job, {"status", "conditions"})->items()) {
      if (StringField(condition, {"type"}) == type) return StringField(condition, {"message"});
    }
    return "";
  }
};

TEST_F(FailureToldTest, TheJobSaysWhichPodFailed) {
  Submit(JobOf({{"Worker", Replica(2, "ExitCode")}}));
  Fate("job-worker-1", "Failed", 137);
  EXPECT_THAT(MessageOf("Restarting"),
              HasSubstr("replica(s) failed. Pod job-worker-1 exited with code 137."));
  Fate("job-worker-0", "Failed", 1);
  EXPECT_THAT(MessageOf("Failed"),
              HasSubstr("replica(s) failed. Pod job-worker-0 exited with code 1."));
}

TEST_F(FailureToldTest, OfManyTheFirstOnes) {
  options_.gather = absl::Seconds(1);
  MakeController();
  Submit(JobOf({{"Worker", Replica(5, "Never")}}));
  for (int i = 0; i < 5; ++i) Fate(absl::StrCat("job-worker-", i), "Failed", 10 + i);
  Advance(absl::Seconds(1));
  EXPECT_THAT(
      MessageOf("Failed"),
      HasSubstr("failed. Pod job-worker-0 exited with code 10. Pod job-worker-1 exited with "
                "code 11. Pod job-worker-2 exited with code 12. And 2 more."));
}

}  // namespace
}  // namespace weft::platform
