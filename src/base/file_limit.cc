// SPDX-License-Identifier: Apache-2.0
#include "base/file_limit.h"

#include <atomic>

#include <sys/resource.h>

namespace weft {
namespace {

// Written once, before anybody reads it.
rlimit before_raise = {};
std::atomic<bool> is_raised{false};

}  // namespace

void RaiseFileLimit() {
  static const bool done = [] {
    rlimit limit = {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
    before_raise = limit;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) is_raised.store(true);
    return true;
  }();
  static_cast<void>(done);
}

void RestoreFileLimit() {
  if (is_raised.load()) ::setrlimit(RLIMIT_NOFILE, &before_raise);
}

}  // namespace weft
