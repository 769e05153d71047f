// SPDX-License-Identifier: Apache-2.0
// Programs that save in the background and are killed at any moment.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/time/clock.h"

#include "base/files.h"
#include "base/subprocess.h"
#include "weft/api/ops.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/storage/checkpoint_state.h"
#include "weft/storage/tensor_bundle.h"
#include "weft/train/monitored_session.h"

namespace weft::train {
namespace {

constexpr char kFolder[] = "WEFT_TEST_SAVES_TO";
constexpr int kKills = 8;
constexpr int kVariables = 4;
constexpr int64_t kElements = 1 << 18;

// Adds one to all variables in each step, and saves as often as it can.
Status TrainUntilKilled(const std::string& folder) {
  Program program;
  GraphBuilder& b = program.builder();
  const Variable step = program.GlobalStep();
  std::vector<Node*> adds = {op::AssignAddVariableOp(b, step.handle, b.Scalar<int64_t>(1))};
  for (int k = 0; k < kVariables; ++k) {
    const Variable w =
        program.AddVariable(absl::StrCat("w", k), DType::kFloat, Shape{kElements}, Zeros());
    const Endpoint shape = b.Constant(Tensor::Vector<int32_t>({kElements}));
    adds.push_back(op::AssignAddVariableOp(b, w.handle, op::Fill(b, shape, b.Scalar<float>(1))));
  }
  Node* const train = program.Group(adds, "train");
  TrainingOptions options;
  options.make_session = [] {
    return session::NewDirectSession(
        {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 1});
  };
  options.checkpoint_folder = folder;
  options.save_checkpoint = Every::Steps(1);
  options.save_in_background = true;
  options.save_summaries = Every::Steps(0);
  options.log_step_count_steps = 0;
  options.train = train;
  WEFT_ASSIGN_OR_RETURN(const auto session, MonitoredSession::CreateTraining(program, options));
  for (const absl::Time end = absl::Now() + absl::Minutes(2); absl::Now() < end;) {
    WEFT_RETURN_IF_ERROR(session->Run({}, {}, {train}, nullptr));
  }
  return DeadlineExceeded("Nobody killed this program");
}

TEST(SaveKills, ProgramThatIsKilled) {
  const char* const folder = std::getenv(kFolder);
  if (folder == nullptr) GTEST_SKIP() << "Started by the other test alone";
  FAIL() << TrainUntilKilled(folder);
}

// The step that the newest checkpoint of a folder holds, all of which is read.
StatusOr<int64_t> NewestStep(const std::string& folder) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const storage::CheckpointState state,
                        storage::ReadCheckpointState(files, folder));
  WEFT_ASSIGN_OR_RETURN(const auto reader,
                        storage::BundleReader::Open(files, state.model_checkpoint_path));
  WEFT_ASSIGN_OR_RETURN(const Tensor step, reader->Read("global_step"));
  for (int k = 0; k < kVariables; ++k) {
    WEFT_ASSIGN_OR_RETURN(const Tensor w, reader->Read(absl::StrCat("w", k)));
    for (const float each : w.span<float>()) {
      if (each == static_cast<float>(step.scalar<int64_t>())) continue;
      return DataLoss("w", k, " holds ", each, " in step ", step.scalar<int64_t>());
    }
  }
  return step.scalar<int64_t>();
}

TEST(SaveKills, TheListNamesNoCheckpointThatIsNotWhole) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/weft-save-kills-", getpid());
  std::filesystem::create_directories(folder);
  SpawnOptions spawn;
  spawn.argv = {"/proc/self/exe", "--gtest_filter=SaveKills.ProgramThatIsKilled"};
  spawn.environment = CurrentEnvironment();
  SetEnvironment(&spawn.environment, kFolder, folder);
  std::mt19937 random(std::random_device{}());
  int64_t last = -1;
  for (int kill = 0; kill < kKills; ++kill) {
    auto program = Subprocess::Spawn(spawn);
    ASSERT_TRUE(program.ok()) << program.status();
    // From the first checkpoint on any moment is one to be killed at.
    while (!NewestStep(folder).ok() && !(*program)->TryWait()) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    absl::SleepFor(absl::Milliseconds(100 + random() % 200));
    ASSERT_FALSE((*program)->TryWait()) << "it ended by itself";
    (*program)->Signal(SIGKILL);
    ASSERT_TRUE((*program)->Wait(absl::Seconds(30)).ok());
    const StatusOr<int64_t> step = NewestStep(folder);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_GE(*step, last);
    last = *step;
  }
  EXPECT_GT(last, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft::train
