// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "weft/api/ops.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/train/monitored_session.h"

namespace weft::train {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST(TraceHook, TracesTheFirstStepAndEveryThirdAfterIt) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "trace_hook_test");
  std::filesystem::remove_all(folder);
  Program program;
  GraphBuilder& b = program.builder();
  const Variable& step = program.GlobalStep();
  Node* grow = b.Op("AssignAddVariableOp", {step.handle, b.Scalar<int64_t>(1)}, {}, "grow").node;
  ASSERT_TRUE(b.ok()) << b.status();
  const std::unique_ptr<Hook> hook = WriteTraces(folder, 3);
  MonitoredOptions options;
  options.make_session = [] {
    return session::NewDirectSession(
        {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 1});
  };
  options.hooks = {hook.get()};
  StatusOr<std::unique_ptr<MonitoredSession>> session = MonitoredSession::Create(program, options);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 6; ++i) ASSERT_EQ((*session)->Run({}, {}, {grow}, nullptr), absl::OkStatus());
  RealFileSystem files;
  const StatusOr<std::vector<std::string>> written = files.List(folder);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(*written, UnorderedElementsAre("trace-1.json", "trace-4.json"));
  const StatusOr<std::string> trace = ReadFile(files, JoinPath(folder, "trace-4.json"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(*trace, HasSubstr(R"("name":"grow")"));
  EXPECT_THAT(*trace, HasSubstr(R"("traceEvents":[)"));
}

}  // namespace
}  // namespace weft::train
