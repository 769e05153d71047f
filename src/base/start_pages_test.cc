// SPDX-License-Identifier: Apache-2.0
#include "base/start_pages.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft {
namespace {

constexpr size_t kPages = 64;

// A file of pages, each of one letter, mapped for this process alone.
class StartPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "start_pages_XXXXXX";
    const int file = ::mkstemp(name.data());
    ASSERT_GE(file, 0);
    ::unlink(name.c_str());
    const std::string text(bytes_, 'x');
    ASSERT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(bytes_));
    void* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    ::close(file);
    ASSERT_NE(at, MAP_FAILED);
    data_ = static_cast<char*>(at);
  }
  void TearDown() override { ::munmap(data_, bytes_); }

  // How many are in this process's own table of pages, as /proc/self/pagemap says.
  size_t HeldPages() const {
    std::vector<uint64_t> entries(kPages);
    const int file = ::open("/proc/self/pagemap", O_RDONLY);
    const off_t offset = static_cast<off_t>(reinterpret_cast<uintptr_t>(data_) / page_ * 8);
    EXPECT_EQ(::pread(file, entries.data(), kPages * 8, offset), static_cast<ssize_t>(kPages * 8));
    ::close(file);
    size_t held = 0;
    for (const uint64_t entry : entries) held += entry >> 63;
    return held;
  }
  void MakeReadOnly() { ASSERT_EQ(::mprotect(data_, bytes_, PROT_READ), 0); }

  const size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t bytes_ = kPages * page_;
  char* data_ = nullptr;
};

TEST_F(StartPagesTest, WhatIsOnlyReadIsGivenBackAndComesAgain) {
  MakeReadOnly();
  EXPECT_EQ(std::string(data_, bytes_), std::string(bytes_, 'x'));
  EXPECT_EQ(HeldPages(), kPages);
  ReleaseStartPages();
  EXPECT_EQ(HeldPages(), 0);
  EXPECT_EQ(std::string(data_, bytes_), std::string(bytes_, 'x'));
}

TEST_F(StartPagesTest, WhatWasWrittenStays) {
  data_[page_] = 'y';
  MakeReadOnly();
  ReleaseStartPages();
  EXPECT_EQ(data_[page_], 'y');
}

TEST_F(StartPagesTest, WhatMayBeWrittenStays) {
  EXPECT_EQ(std::string(data_, bytes_), std::string(bytes_, 'x'));
  ReleaseStartPages();
  EXPECT_EQ(HeldPages(), kPages);
}

}  // namespace
}  // namespace weft
