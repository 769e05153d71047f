// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

constexpr char kGlogPattern[] = "%L%m%d %H:%M:%S.%f %P %s:%#] %v";

std::atomic<ScopedLogCapture*> capture{nullptr};

// Writes each line with one write(2), so that lines of several processes on one terminal stay
// whole.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (ScopedLogCapture* target = capture.load(std::memory_order_acquire)) {
      target->Add(absl::string_view(line.data(), line.size()));
      return;
    }
    const char* data = line.data();
    size_t left = line.size();
    while (left > 0) {
      const ssize_t written = ::write(STDERR_FILENO, data, left);
      if (written <= 0) return;
      data += written;
      left -= static_cast<size_t>(written);
    }
  }
  void flush_() override {}
};

void AppendEscaped(absl::string_view text, std::string* out) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out->append("\\\"");
        break;
      case '\\':
        out->append("\\\\");
        break;
      case '\n':
        out->append("\\n");
        break;
      case '\t':
        out->append("\\t");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned>(c));
        } else {
          out->push_back(c);
        }
    }
  }
}

absl::string_view BaseName(const char* file) {
  const absl::string_view path(file);
  return path.substr(path.rfind('/') + 1);
}

class JsonFormatter : public spdlog::formatter {
 public:
  JsonFormatter(std::string job, int task) : job_(std::move(job)), task_(task) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const absl::Time time = absl::FromChrono(
        std::chrono::time_point_cast<std::chrono::system_clock::duration>(message.time));
    std::string line = absl::StrCat(
        R"({"ts":")", absl::FormatTime("%Y-%m-%dT%H:%M:%E6S", time, absl::UTCTimeZone()),
        R"(Z","level":")",
        message.level == spdlog::level::info   ? "info"
        : message.level == spdlog::level::warn ? "warning"
                                               : "error",
        R"(","msg":")");
    AppendEscaped(absl::string_view(message.payload.data(), message.payload.size()), &line);
    absl::StrAppend(&line, R"(","file":")");
    AppendEscaped(message.source.filename ? BaseName(message.source.filename) : "", &line);
    absl::StrAppend(&line, ":", message.source.line, R"(","pid":)", getpid());
    if (!job_.empty()) {
      absl::StrAppend(&line, R"(,"job":")");
      AppendEscaped(job_, &line);
      absl::StrAppend(&line, R"(")");
    }
    if (task_ >= 0) absl::StrAppend(&line, R"(,"task":)", task_);
    absl::StrAppend(&line, "}\n");
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(job_, task_);
  }

 private:
  const std::string job_;
  const int task_;
};

struct Log {
  std::atomic<int> min_level;
  StderrSink sink;

  explicit Log(const LogOptions& options) { Configure(options); }

  void Configure(const LogOptions& options) {
    if (options.form == LogForm::kJson) {
      sink.set_formatter(std::make_unique<JsonFormatter>(options.job, options.task));
    } else {
      sink.set_formatter(std::make_unique<spdlog::pattern_formatter>(kGlogPattern));
    }
    min_level.store(static_cast<int>(options.min_level), std::memory_order_relaxed);
  }
};

// Never destroyed: threads may log while the process exits.
Log& TheLog() {
  static Log* const log = new Log(LogOptionsFromEnvironment());
  return *log;
}

}  // namespace

LogOptions LogOptionsFromEnvironment() {
  LogOptions options;
  int level = 0;
  const char* value = std::getenv("TF_CPP_MIN_LOG_LEVEL");
  if (value != nullptr && absl::SimpleAtoi(value, &level)) {
    options.min_level = static_cast<LogLevel>(std::clamp(level, 0, 3));
  }
  return options;
}

void ConfigureLog(const LogOptions& options) { TheLog().Configure(options); }

bool LogEnabled(LogLevel level) {
  return static_cast<int>(level) >= TheLog().min_level.load(std::memory_order_relaxed);
}

LogMessage::LogMessage(LogLevel level, const char* file, int line, int64_t suppressed)
    : level_(level), file_(file), line_(line), suppressed_(suppressed) {}

LogMessage::~LogMessage() {
  if (suppressed_ > 0) stream_ << " (" << suppressed_ << " more like it were held back)";
  const std::string text = std::move(stream_).str();
  const spdlog::level::level_enum level = level_ == LogLevel::INFO      ? spdlog::level::info
                                          : level_ == LogLevel::WARNING ? spdlog::level::warn
                                                                        : spdlog::level::err;
  TheLog().sink.log(spdlog::details::log_msg(spdlog::source_loc(file_, line_, ""), "", level,
                                             spdlog::string_view_t(text.data(), text.size())));
}

std::optional<int64_t> LogThrottle::Admit(absl::Duration period, absl::Duration monotonic_now) {
  const int64_t now = absl::ToInt64Nanoseconds(monotonic_now);
  int64_t next = next_ns_.load(std::memory_order_relaxed);
  while (now >= next) {
    if (next_ns_.compare_exchange_weak(next, now + absl::ToInt64Nanoseconds(period),
                                       std::memory_order_relaxed)) {
      return suppressed_.exchange(0, std::memory_order_relaxed);
    }
  }
  suppressed_.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

std::optional<int64_t> LogThrottle::Admit(absl::Duration period) {
  return Admit(period, absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()));
}

ScopedLogCapture::ScopedLogCapture() { capture.store(this, std::memory_order_release); }
ScopedLogCapture::~ScopedLogCapture() { capture.store(nullptr, std::memory_order_release); }

std::vector<std::string> ScopedLogCapture::lines() const {
  absl::MutexLock lock(&mutex_);
  return lines_;
}

void ScopedLogCapture::Add(absl::string_view line) {
  absl::MutexLock lock(&mutex_);
  lines_.emplace_back(line);
}

}  // namespace weft
