// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/process_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

TEST(ProcessReportTest, ReadsLinesOfProgress) {
  const Json progress =
      ParseProgressLine("step 120/1000  loss 0.2500  567 examples/s  12s left").value();
  EXPECT_EQ(IntField(progress, {"step"}), 120);
  EXPECT_EQ(IntField(progress, {"steps"}), 1000);
  EXPECT_EQ(progress.Find("loss")->AsDouble().value(), 0.25);
  EXPECT_EQ(ParseProgressLine("step 1/2 accuracy=0.5, loss 1")->Dump(),
            R"({"step":1,"steps":2,"accuracy":0.5,"loss":1.0})");
  EXPECT_EQ(ParseProgressLine("[worker-0] step 1/2")->Dump(), R"({"step":1,"steps":2})");
  for (const char* line :
       {"", "[worker-0]", "[] ", "step", "step one/two", "stepping 1/2", "step 5", "a step 1/2"}) {
    EXPECT_FALSE(ParseProgressLine(line).has_value()) << line;
  }
}

Json State(int processes, const std::string& state) {
  Json list = Json::MakeArray();
  for (int i = 0; i < processes; ++i) {
    Json process;
    process.Set("name", absl::StrCat("worker-", i));
    list.Append(std::move(process));
  }
  Json json;
  json.Set("state", state);
  json.Set("processes", std::move(list));
  return json;
}

TEST(ProcessReportTest, WritesChangesAtOnceAndNewsOnceASecond) {
  const std::string path = ::testing::TempDir() + "/weft-report.json";
  RealFileSystem files;
  ProcessReport report(path);
  const auto last_line = [&] {
    const Json written = Json::Parse(ReadFile(files, path).value()).value();
    return StringField(written.Find("processes")->items()[0], {"lastLine"});
  };
  report.Show(State(1, "Running"), absl::Seconds(10));
  EXPECT_EQ(last_line(), "");
  report.Hear("worker-0", "hello");
  report.Show(State(1, "Running"), absl::Seconds(10.5));
  EXPECT_EQ(last_line(), "");
  report.Show(State(1, "Running"), absl::Seconds(11));
  EXPECT_EQ(last_line(), "hello");
  report.Hear("worker-0", "bye");
  report.Show(State(1, "Succeeded"), absl::Seconds(11.1));
  EXPECT_EQ(last_line(), "bye");
  ASSERT_TRUE(files.Delete(path).ok());
}

TEST(ProcessReportTest, TheLastMessageIsOneThatAKubeletTakes) {
  ProcessReport report("");
  for (int i = 0; i < 200; ++i) report.Hear(absl::StrCat("worker-", i), std::string(1000, 'x'));
  report.Show(State(5, "Failed"), absl::ZeroDuration());
  EXPECT_THAT(report.TerminationMessage(), ::testing::HasSubstr("xxx"));
  for (const int processes : {5, 20, 200}) {
    report.Show(State(processes, "Failed"), absl::ZeroDuration());
    const std::string message = report.TerminationMessage();
    EXPECT_LE(message.size(), 4096u);
    EXPECT_TRUE(Json::Parse(message).ok());
    EXPECT_THAT(message, ::testing::HasSubstr("\"worker-0\""));
  }
}

}  // namespace
}  // namespace weft::platform
