// SPDX-License-Identifier: Apache-2.0
// What the file systems on POSIX calls share: descriptors, errno and open files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/files.h"
#include "base/status.h"

namespace weft {

// Owns a descriptor; -1 is none.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() { Reset(); }
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.Release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// "Cannot <verb> '<path>': <what the system says>" with the code that fits `error`, an errno.
Status ErrnoStatus(int error, absl::string_view verb, absl::string_view path);

// The files own `fd`; `path` is for messages.
std::unique_ptr<ReadableFile> AdoptReadable(OwnedFd fd, const std::string& path);
std::unique_ptr<WritableFile> AdoptWritable(OwnedFd fd, const std::string& path);
StatusOr<std::vector<std::string>> ListDescriptor(OwnedFd fd, const std::string& path);
StatusOr<FileStat> StatDescriptor(int fd, const std::string& path);

}  // namespace weft
