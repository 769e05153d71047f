// SPDX-License-Identifier: Apache-2.0
// The one log of a process, to stderr, in the glog form
//   I1121 09:12:07.123456 4711 file.cc:123] message
// or as one JSON object a line. All functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace weft {

enum class LogLevel { INFO = 0, WARNING = 1, ERROR = 2, OFF = 3 };
enum class LogForm { kText, kJson };

struct LogOptions {
  LogForm form = LogForm::kText;
  LogLevel min_level = LogLevel::INFO;
  std::string job;  // in JSON lines when not empty
  int task = -1;    // in JSON lines when not negative
};

// The default until ConfigureLog: text, and the level that TF_CPP_MIN_LOG_LEVEL names (0 to 3).
LogOptions LogOptionsFromEnvironment();
void ConfigureLog(const LogOptions& options);

bool LogEnabled(LogLevel level);

// One line in the making; its destructor writes it.
class LogMessage {
 public:
  LogMessage(LogLevel level, const char* file, int line, int64_t suppressed = 0);
  ~LogMessage();
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  const LogLevel level_;
  const char* const file_;
  const int line_;
  const int64_t suppressed_;
  std::ostringstream stream_;
};

// Lets one message pass a period. Thread-safe, lock-free.
class LogThrottle {
 public:
  // Number of messages held back since the last one that passed, or nothing: hold this one back.
  std::optional<int64_t> Admit(absl::Duration period, absl::Duration monotonic_now);
  std::optional<int64_t> Admit(absl::Duration period);

 private:
  std::atomic<int64_t> next_ns_{INT64_MIN};
  std::atomic<int64_t> suppressed_{0};
};

// While it lives, finished lines go here instead of stderr. One at a time; for tests.
class ScopedLogCapture {
 public:
  ScopedLogCapture();
  ~ScopedLogCapture();
  ScopedLogCapture(const ScopedLogCapture&) = delete;
  ScopedLogCapture& operator=(const ScopedLogCapture&) = delete;
  std::vector<std::string> lines() const;
  void Add(absl::string_view line);

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

namespace log_internal {
struct Voidify {
  void operator&(std::ostream&) const {}
};
}  // namespace log_internal

}  // namespace weft

// WEFT_LOG(INFO) << "restored step " << step;   severities INFO, WARNING, ERROR
#define WEFT_LOG(severity)                        \
  !::weft::LogEnabled(::weft::LogLevel::severity) \
      ? (void)0                                   \
      : ::weft::log_internal::Voidify() &         \
            ::weft::LogMessage(::weft::LogLevel::severity, __FILE__, __LINE__).stream()

// At most one line a `period` from this place; the next one says how many were held back.
#define WEFT_LOG_EVERY(severity, period)                                    \
  for (auto weft_admitted_ = ::weft::LogEnabled(::weft::LogLevel::severity) \
       ? []() -> ::weft::LogThrottle& {                                     \
         static ::weft::LogThrottle weft_throttle_;                         \
         return weft_throttle_;                                             \
       }()                                                                  \
                     .Admit(period)                                         \
       : ::std::optional<int64_t>();                                        \
       weft_admitted_.has_value(); weft_admitted_.reset())                  \
  ::weft::LogMessage(::weft::LogLevel::severity, __FILE__, __LINE__, *weft_admitted_).stream()
