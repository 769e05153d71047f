// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/process_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/subprocess.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ProcessWish Wish(const std::string& processes, const std::string& tf_config = "") {
  ProcessWish wish;
  wish.program = {"/bin/train", "--x"};
  wish.processes = processes;
  wish.tf_config = tf_config;
  return wish;
}

std::string VariableOf(const ProcessPlan& plan, const char* name) {
  return FindEnvironment(plan.environment, name).value_or("");
}

constexpr char kConfig[] =
    R"({"cluster":{"ps":["a:2222"],"worker":["b:2222","c:3000"]},"task":{"type":"worker","index":1},"environment":"cloud"})";

TEST(ProcessPlanTest, OneProgramKeepsItsConfig) {
  const auto plans = PlanProcesses(Wish("")).value();
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].name, "train");
  EXPECT_THAT(plans[0].argv, ElementsAre("/bin/train", "--x"));
  EXPECT_EQ(plans[0].restart, "ExitCode");
  const auto task = PlanProcesses(Wish("", kConfig)).value();
  EXPECT_EQ(task[0].name, "worker-1");
  EXPECT_EQ(VariableOf(task[0], "TF_CONFIG"), kConfig);
}

TEST(ProcessPlanTest, SpreadsTheHostsOfAType) {
  for (const char* processes : {R"({"worker":2})", R"({"worker": 2, "ps": 1})"}) {
    const auto plans = PlanProcesses(Wish(processes, kConfig)).value();
    ASSERT_EQ(plans.size(), 2u);
    EXPECT_EQ(plans[0].name, "worker-2");
    EXPECT_EQ(plans[1].name, "worker-3");
    EXPECT_EQ(VariableOf(plans[1], "WEFT_PROCESS_INDEX"), "1");
    EXPECT_EQ(VariableOf(plans[1], "WEFT_PROCESS_COUNT"), "2");
    EXPECT_EQ(VariableOf(plans[1], "TF_CONFIG"),
              R"({"cluster":{"ps":["a:2222"],"worker":["b:2222","b:2223","c:3000","c:3001"]},)"
              R"("task":{"type":"worker","index":3},"environment":"cloud"})");
  }
  // A plain number is for every type.
  const auto plans = PlanProcesses(Wish("2", kConfig)).value();
  EXPECT_THAT(VariableOf(plans[0], "TF_CONFIG"), HasSubstr(R"("ps":["a:2222","a:2223"])"));
}

TEST(ProcessPlanTest, SpreadsTheSparseFormOfDynamicWorkers) {
  const auto plans =
      PlanProcesses(Wish(R"({"worker":2})", R"({"cluster":{"worker":{"3":"w3:2222"},"ps":["p:1"]},)"
                                            R"("task":{"type":"worker","index":3}})"))
          .value();
  EXPECT_EQ(
      VariableOf(plans[1], "TF_CONFIG"),
      R"({"cluster":{"worker":{"6":"w3:2222","7":"w3:2223"},"ps":["p:1"]},"task":{"type":"worker","index":7}})");
}

TEST(ProcessPlanTest, ReadsAList) {
  const auto plans =
      PlanProcesses(
          Wish(R"([{"name":"ps","command":["weft","server"],"serves":true,"restart":"Always"},
      {"name":"worker","args":["--fast"],"env":{"A":"b","N":3},"workingDir":"/tmp"}])"))
          .value();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_THAT(plans[0].argv, ElementsAre("weft", "server"));
  EXPECT_TRUE(plans[0].serves);
  EXPECT_EQ(plans[0].restart, "Always");
  EXPECT_THAT(plans[1].argv, ElementsAre("/bin/train", "--x", "--fast"));
  EXPECT_THAT(plans[1].environment, ElementsAre("A=b", "N=3"));
  EXPECT_EQ(plans[1].working_directory, "/tmp");
}

TEST(ProcessPlanTest, SaysWhatIsWrong) {
  const struct {
    const char* processes;
    const char* message;
  } cases[] = {
      {"two", "WEFT_PROCESSES"},
      {"0", "holds 0 where 1 to 256 is allowed"},
      {R"({"worker":"many"})", "holds \"many\""},
      {"[]", "is an empty list"},
      {"[3]", "lists 3 where a mapping is expected"},
      {R"([{"comand":["x"]}])", "unknown field 'comand'"},
      {R"([{"command":"x"}])", "a command that is no list"},
      {R"([{"name":"a"},{"name":"a"}])", "two processes with the name 'a'"},
      {R"([{"name":"a","serves":true}])", "nothing would end them"},
      {R"([{"name":"a","restart":"Sometimes"}])", "Sometimes"},
  };
  for (const auto& test : cases) {
    const Status status = PlanProcesses(Wish(test.processes)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.processes;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message)) << test.processes;
  }
  EXPECT_THAT(std::string(PlanProcesses(Wish("2", "{")).status().message()),
              HasSubstr("TF_CONFIG"));
  EXPECT_THAT(
      std::string(PlanProcesses(Wish("2", R"({"cluster":{"ps":["host"]}})")).status().message()),
      HasSubstr("'host'"));
  EXPECT_THAT(
      std::string(PlanProcesses(Wish("2", R"({"cluster":{"ps":["h:65535"]}})")).status().message()),
      HasSubstr("'h:65535'"));
  ProcessWish nothing;
  EXPECT_THAT(std::string(PlanProcesses(nothing).status().message()), HasSubstr("weft exec -- "));
}

TEST(ProcessPlanTest, ProcessesShareTheGpusThatAreSeen) {
  ProcessWish wish =
      Wish(R"([{"name":"a","gpus":2},{"name":"ps","serves":true},{"name":"b","gpus":1}])");
  wish.visible_gpus = "3,5,6";
  const auto gpus_of = [&] {
    std::vector<std::string> gpus;
    const StatusOr<std::vector<ProcessPlan>> plans = PlanProcesses(wish);
    if (!plans.ok()) return std::vector<std::string>{std::string(plans.status().message())};
    for (const ProcessPlan& plan : *plans) {
      for (const std::string& line : plan.environment)
        if (line.rfind("CUDA_VISIBLE_DEVICES=", 0) == 0) gpus.push_back(line.substr(21));
    }
    return gpus;
  };
  EXPECT_THAT(gpus_of(), ::testing::ElementsAre("3,5", "", "6"));
  wish.visible_gpus = "";  // all that there are, counted from 0
  EXPECT_THAT(gpus_of(), ::testing::ElementsAre("0,1", "", "2"));
  wish.visible_gpus = "0,1";
  EXPECT_THAT(std::string(PlanProcesses(wish).status().message()),
              HasSubstr("asks for more GPUs than the 2 that are visible"));
  wish.processes = R"([{"name":"a","gpus":"many"}])";
  EXPECT_THAT(std::string(PlanProcesses(wish).status().message()), HasSubstr("no number of GPUs"));
  wish.processes = R"([{"name":"a"}])";
  EXPECT_THAT(gpus_of(), ::testing::IsEmpty());
}

TEST(ProcessPlanTest, TellsHowManyPortsATaskWants) {
  EXPECT_EQ(PortsOfATask(""), 1);
  EXPECT_EQ(PortsOfATask("4"), 4);
  EXPECT_EQ(PortsOfATask(R"({"worker":3,"ps":1})"), 3);
  EXPECT_EQ(PortsOfATask("[{}]"), 1);
  EXPECT_EQ(PortsOfATask("1000000"), 256);
}

}  // namespace
}  // namespace weft::platform
