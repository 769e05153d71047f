// SPDX-License-Identifier: Apache-2.0
#include "base/shared_memory.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(SharedMemory, GivesNothingUntilEnabled) {
  SharedMemory memory;
  EXPECT_EQ(memory.Allocate(100), nullptr);
  ASSERT_TRUE(memory.Enable().ok());
  EXPECT_NE(memory.Allocate(100), nullptr);
}

TEST(SharedMemory, BlocksAreAlignedApartAndFound) {
  SharedMemory memory;
  ASSERT_TRUE(memory.Enable().ok());
  const size_t sizes[] = {0, 1, 64, 65, 4096, 100'000, size_t{70} << 20, 10};
  std::byte* previous_end = nullptr;
  for (const size_t size : sizes) {
    std::byte* const block = memory.Allocate(size);
    ASSERT_NE(block, nullptr) << size;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    EXPECT_NE(block, previous_end);
    std::memset(block, 0x5a, size);
    const auto place = memory.Find(block, size);
    ASSERT_TRUE(place.has_value()) << size;
    EXPECT_GE(place->file.bytes, place->offset + size);
    previous_end = block;
  }
  const std::byte stranger{};
  EXPECT_FALSE(memory.Find(&stranger, 1).has_value());
  std::byte* const block = memory.Allocate(64);
  EXPECT_FALSE(memory.Find(block, size_t{1} << 40).has_value()) << "it does not reach so far";
}

TEST(SharedMemory, InAFileOfAnEarlierProcessWhatIsTakenStays) {
  constexpr uint64_t kBytes = 64 * 4096;
  StatusOr<std::unique_ptr<SharedMapping>> earlier = SharedMapping::Create("earlier", kBytes);
  ASSERT_TRUE(earlier.ok());
  std::memset((*earlier)->data(), 'e', 8 * 4096);
  StatusOr<std::unique_ptr<SharedMapping>> adopted =
      SharedMapping::Adopt(OwnedFd(dup((*earlier)->file().fd)));
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  std::byte* const data = (*adopted)->data();
  SharedMemory memory;
  const auto rooms = memory.EnableIn(*std::move(adopted), {{3 * 4096 + 64, 100}, {4096, 5000}});
  ASSERT_TRUE(rooms.ok()) << rooms.status();
  // What is taken lies in pages 1, 2 and 3; the earlier process wrote pages 0 to 7.
  using Room = std::pair<std::byte*, size_t>;
  EXPECT_EQ(*rooms, (std::vector<Room>{{data, 4096}, {data + 4 * 4096, 4 * 4096}}));
  for (const auto& [begin, bytes] : *rooms) memory.Free(begin, bytes);
  std::vector<std::byte*> blocks;
  for (std::byte* block; (block = memory.Allocate(4096)) != nullptr && blocks.size() < 60;) {
    std::memset(block, 'n', 4096);
    blocks.push_back(block);
  }
  EXPECT_EQ(blocks.size(), 60u);
  for (uint64_t at = 4096; at < 4 * 4096; at += 512) EXPECT_EQ(static_cast<char>(data[at]), 'e');
  EXPECT_FALSE(memory.EnableIn(nullptr, {}).ok()) << "it is in use";
}

TEST(SharedMapping, AFileWhoseSizeMayChangeIsNotAdopted) {
  EXPECT_FALSE(SharedMapping::Adopt(OwnedFd(memfd_create("loose", MFD_CLOEXEC))).ok());
  EXPECT_FALSE(SharedMapping::Adopt(OwnedFd()).ok());
}

// Pages of the process that lie in memory, in bytes.
size_t Resident(const std::byte* data, size_t bytes) {
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  if (mincore(const_cast<std::byte*>(data), bytes, pages.data()) != 0) return SIZE_MAX;
  size_t resident = 0;
  for (const unsigned char page : pages) resident += (page & 1) * 4096u;
  return resident;
}

TEST(SharedMemory, WhatIsFreedGoesBackToTheSystemAndItsRoomIsGivenOutAgain) {
  SharedMemory memory;
  ASSERT_TRUE(memory.Enable().ok());
  constexpr size_t kBytes = size_t{8} << 20;
  std::byte* const first = memory.Allocate(kBytes);
  std::byte* const second = memory.Allocate(kBytes);
  std::memset(first, 1, kBytes);
  std::memset(second, 2, kBytes);
  EXPECT_EQ(Resident(first, kBytes), kBytes);
  memory.Free(first, kBytes);
  EXPECT_EQ(Resident(first, kBytes), 0u);
  EXPECT_EQ(second[kBytes - 1], std::byte{2});
  memory.Free(second, kBytes);
  // Neighbours are one again, so that another size fits.
  EXPECT_EQ(memory.Allocate(2 * kBytes), first);
  memory.Free(first, 2 * kBytes);
  std::byte* const piece = memory.Allocate(5000);
  EXPECT_EQ(piece, first);
  EXPECT_EQ(piece[0], std::byte{0});
  EXPECT_EQ(memory.Allocate(5000), first + 8192);
}

TEST(SharedMemory, AnotherProcessReadsItInPlaceAndCannotWrite) {
  SharedMemory memory;
  ASSERT_TRUE(memory.Enable().ok());
  std::byte* const block = memory.Allocate(5000);
  std::memcpy(block, "hello", 6);
  const auto place = memory.Find(block, 5000);
  ASSERT_TRUE(place.has_value());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const auto mapping = SharedMapping::Open(parent, place->file, false);
    if (!mapping.ok()) _exit(2);
    const bool same = std::memcmp((*mapping)->data() + place->offset, "hello", 6) == 0;
    if (!same) _exit(3);
    signal(SIGSEGV, SIG_DFL);                          // a sanitizer has a handler of its own
    (*mapping)->data()[place->offset] = std::byte{1};  // ends the child
    _exit(4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
  EXPECT_EQ(std::memcmp(block, "hello", 6), 0);
}

TEST(SharedMapping, OnlyTheFileThatWasMeantIsOpened) {
  const auto made = SharedMapping::Create("test", 8192);
  ASSERT_TRUE(made.ok()) << made.status();
  SharedFile file = (*made)->file();
  EXPECT_TRUE(SharedMapping::Open(getpid(), file, true).ok());
  SharedFile wrong = file;
  wrong.inode += 1;
  EXPECT_EQ(SharedMapping::Open(getpid(), wrong, true).status().code(),
            absl::StatusCode::kInvalidArgument);
  wrong = file;
  wrong.bytes = 1 << 20;
  EXPECT_EQ(SharedMapping::Open(getpid(), wrong, true).status().code(),
            absl::StatusCode::kInvalidArgument);
  wrong = file;
  wrong.fd = 0;  // some other file of this process
  EXPECT_FALSE(SharedMapping::Open(getpid(), wrong, true).ok());
  wrong.fd = 1 << 20;
  EXPECT_EQ(SharedMapping::Open(getpid(), wrong, true).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(SharedMapping, TheBytesOutliveTheirMaker) {
  auto made = SharedMapping::Create("test", 4096);
  ASSERT_TRUE(made.ok());
  (*made)->data()[7] = std::byte{42};
  const auto other = SharedMapping::Open(getpid(), (*made)->file(), false);
  ASSERT_TRUE(other.ok());
  made->reset();
  EXPECT_EQ((*other)->data()[7], std::byte{42});
}

}  // namespace
}  // namespace weft
