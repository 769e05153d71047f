// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_files.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/posix_file.h"

namespace weft {
namespace {

class PosixMappable final : public MappableFile {
 public:
  PosixMappable(OwnedFd fd, std::unique_ptr<ReadableFile> plain)
      : fd_(std::move(fd)), plain_(std::move(plain)) {}

  StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> buffer) const override {
    return plain_->ReadAt(offset, buffer);
  }

  std::shared_ptr<char> Map(uint64_t offset, size_t size) const override {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t before = offset % page;
    const size_t length = size + before;
    if (size == 0) return nullptr;
    // All pages at once: one by one they cost more than what they hold. And for reading: those that
    // may be written would be copied at once.
    void* at = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd_.get(),
                      static_cast<off_t>(offset - before));
    if (at == MAP_FAILED) return nullptr;
    if (::mprotect(at, length, PROT_READ | PROT_WRITE) != 0) {
      ::munmap(at, length);
      return nullptr;
    }
    return {static_cast<char*>(at) + before, [at, length](char*) { ::munmap(at, length); }};
  }

 private:
  const OwnedFd fd_;
  const std::unique_ptr<ReadableFile> plain_;
};

}  // namespace

StatusOr<std::unique_ptr<ReadableFile>> MappingFileSystem::OpenRead(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> plain, RealFileSystem::OpenRead(path));
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return ErrnoStatus(errno, "open", path);
  return std::make_unique<PosixMappable>(std::move(fd), std::move(plain));
}

}  // namespace weft
