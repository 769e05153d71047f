// SPDX-License-Identifier: Apache-2.0
#include "supervisor/kept_memory.h"

#include <cstring>
#include <string>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace weft::supervisor {
namespace {

constexpr uint64_t kData = uint64_t{1} << 20;

class KeptMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusOr<KeptFiles> files = MakeKeptFiles(kData);
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
    void* const data =
        mmap(nullptr, kData, PROT_READ | PROT_WRITE, MAP_SHARED, files_.data.get(), 0);
    ASSERT_NE(data, MAP_FAILED);
    data_ = static_cast<std::byte*>(data);
  }
  void TearDown() override { munmap(data_, kData); }

  // As the next process opens it.
  std::unique_ptr<KeptMemory> Open() {
    StatusOr<std::unique_ptr<KeptMemory>> memory =
        KeptMemory::Open(files_.control.get(), data_, kData);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return memory.ok() ? *std::move(memory) : nullptr;
  }
  void Write(uint64_t offset, char letter, size_t count) {
    std::memset(data_ + offset, letter, count);
  }
  char At(uint64_t offset) const { return static_cast<char>(data_[offset]); }

  static void CommitOne(KeptMemory& memory, uint32_t entry, KeptPlace place) {
    memory.Commit({{.entry = entry, .present = true, .place = std::move(place)}});
  }

  KeptFiles files_;
  std::byte* data_ = nullptr;
};

TEST_F(KeptMemoryTest, NothingIsFoundInNewFiles) { EXPECT_TRUE(Open()->found().empty()); }

TEST_F(KeptMemoryTest, FindsWhatWasCommittedLastAndForgetsWhatWasNot) {
  auto memory = Open();
  const uint32_t weights = *memory->EntryOf("weights");
  const uint32_t step = *memory->EntryOf("step");
  memory->Commit({{weights, true, {.offset = 64, .bytes = 8, .description = {1, 2}}},
                  {step, true, {.offset = 128, .bytes = 4, .description = {3}}}});
  CommitOne(*memory, weights, {.offset = 256, .bytes = 8, .description = {1, 2}});
  memory->Commit({{step, false, {}}});
  memory = Open();
  ASSERT_EQ(memory->found().size(), 1u);
  EXPECT_EQ(memory->found().at("weights").offset, 256u);
  EXPECT_EQ(memory->found().at("weights").description, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*memory->EntryOf("step"), step) << "a name keeps its number";
}

TEST_F(KeptMemoryTest, RowsThatWereNotedAreAsTheyWereUnlessACommitCame) {
  auto memory = Open();
  const uint32_t table = *memory->EntryOf("table");
  Write(0, 'a', 100);
  CommitOne(*memory, table, {.offset = 0, .bytes = 100});
  ASSERT_TRUE(memory->NoteOldBytes({{{10, 5}, {20, 5}}}));
  Write(10, 'b', 5);
  memory->Commit({});
  // The same row twice before a commit that does not come.
  ASSERT_TRUE(memory->NoteOldBytes({{{10, 5}}}));
  Write(10, 'c', 5);
  ASSERT_TRUE(memory->NoteOldBytes({{{10, 5}, {50, 1}}}));
  Write(10, 'd', 5);
  Write(50, 'd', 1);
  memory = Open();
  EXPECT_EQ(memory->rows_put_back(), 3);
  EXPECT_EQ(At(9), 'a');
  EXPECT_EQ(At(10), 'b');
  EXPECT_EQ(At(14), 'b');
  EXPECT_EQ(At(50), 'a');
  EXPECT_EQ(Open()->rows_put_back(), 0);
}

TEST_F(KeptMemoryTest, RefusesWhatDoesNotFit) {
  auto memory = Open();
  EXPECT_FALSE(memory->EntryOf(std::string(256, 'x')).ok());
  EXPECT_FALSE(memory->EntryOf("").ok());
  EXPECT_FALSE(memory->NoteOldBytes({{{kData, 1}}}));
  EXPECT_FALSE(memory->NoteOldBytes({{{0, kData}, {0, kData}}})) << "more than there is room";
}

TEST_F(KeptMemoryTest, FilesThatMakeNoSenseAreLostDataAndNoMore) {
  {
    auto memory = Open();
    const uint32_t entry = *memory->EntryOf("w");
    CommitOne(*memory, entry, {.offset = kData - 4, .bytes = 8});
  }
  EXPECT_EQ(KeptMemory::Open(files_.control.get(), data_, kData).status().code(),
            absl::StatusCode::kDataLoss);
  const uint64_t other = 12345;
  ASSERT_EQ(pwrite(files_.control.get(), &other, sizeof(other), 0), 8);
  EXPECT_EQ(KeptMemory::Open(files_.control.get(), data_, kData).status().code(),
            absl::StatusCode::kDataLoss);
}

// Two values that a process writes anew in each commit, and a table of which it writes a row: for
// as long as it lives. Ends only by a signal.
[[noreturn]] void WriteUntilKilled(KeptMemory& memory, std::byte* data) {
  const uint32_t entries[] = {*memory.EntryOf("a"), *memory.EntryOf("b"), *memory.EntryOf("table")};
  constexpr uint64_t kBytes = 4096;
  constexpr uint64_t kTable = uint64_t{1} << 18;
  char letter = 'A';
  uint64_t place = 0;  // of the last commit
  if (const auto found = memory.found().find("a"); found != memory.found().end()) {
    place = found->second.offset;
    letter = static_cast<char>(data[place]);
  } else {
    std::memset(data + kTable, letter, kBytes);
    memory.Commit({{entries[2], true, {.offset = kTable, .bytes = kBytes}}});
  }
  while (true) {
    letter = letter == 'Z' ? 'A' : static_cast<char>(letter + 1);
    place = 2 * kBytes - place;
    std::memset(data + place, letter, kBytes);
    std::memset(data + place + kBytes, letter, kBytes);
    if (!memory.NoteOldBytes({{{kTable, kBytes}}})) _exit(3);
    std::memset(data + kTable, letter, kBytes);
    memory.Commit({{entries[0], true, {.offset = place, .bytes = kBytes}},
                   {entries[1], true, {.offset = place + kBytes, .bytes = kBytes}}});
  }
}

TEST_F(KeptMemoryTest, AProcessThatIsKilledAtAnyMomentLeavesOneCommitWhole) {
  for (int kill_number = 0; kill_number < 60; ++kill_number) {
    const pid_t pid = fork();
    if (pid == 0) {
      StatusOr<std::unique_ptr<KeptMemory>> memory =
          KeptMemory::Open(files_.control.get(), data_, kData);
      if (!memory.ok()) _exit(2);
      WriteUntilKilled(**memory, data_);
    }
    usleep(500 + 137 * (kill_number % 16));
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
    const auto memory = Open();
    ASSERT_NE(memory, nullptr);
    if (memory->found().count("a") == 0) continue;
    const KeptPlace& a = memory->found().at("a");
    const KeptPlace& b = memory->found().at("b");
    const KeptPlace& table = memory->found().at("table");
    EXPECT_EQ(b.offset, a.offset + a.bytes) << "of one commit";
    const std::string expected(a.bytes, At(a.offset));
    for (const KeptPlace* place : {&a, &b, &table}) {
      EXPECT_EQ(std::memcmp(data_ + place->offset, expected.data(), expected.size()), 0)
          << "kill " << kill_number;
    }
  }
}

}  // namespace
}  // namespace weft::supervisor
