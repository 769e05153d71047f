// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms, and their Prometheus text form (version 0.0.4).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"

namespace weft {

// Threads write to cells of their own, so that counting in a kernel costs an uncontended add.
inline constexpr size_t kMetricShards = 16;
size_t MetricShard();  // of the calling thread

// Only grows. Thread-safe.
class Counter {
 public:
  void Add(int64_t by = 1) { cells_[MetricShard()].value.fetch_add(by, std::memory_order_relaxed); }
  int64_t value() const;

 private:
  struct alignas(64) Cell {
    std::atomic<int64_t> value{0};
  };
  std::array<Cell, kMetricShards> cells_;
};

// Goes up and down. Thread-safe.
class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// How often values fell at or below each bound. Thread-safe.
class Histogram {
 public:
  // `bounds` ascend; a last bucket without bound is added.
  explicit Histogram(std::vector<double> bounds);
  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  // One more than bounds; not cumulative.
  std::vector<int64_t> Counts() const;
  double Sum() const;

 private:
  struct alignas(64) Shard {
    std::vector<std::atomic<int64_t>> counts;
    std::atomic<double> sum{0};
  };
  const std::vector<double> bounds_;
  std::array<Shard, kMetricShards> shards_;
};

// `count` bounds from `first`, each `factor` times the one before: seconds from 1e-6 by 4, say.
std::vector<double> ExponentialBounds(double first, double factor, int count);

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// All metrics of a process (or of one server in a test). Thread-safe. What it hands out lives as
// long as it does; the same name and labels give the same object. Names follow Prometheus' rules
// and carry their unit (`_seconds`, `_bytes`, `_total`); a bad name or a name used as another kind
// gives an object that counts but is not shown, and one log line: a metric never fails its caller.
class MetricRegistry {
 public:
  MetricRegistry() = default;
  MetricRegistry(const MetricRegistry&) = delete;
  MetricRegistry& operator=(const MetricRegistry&) = delete;

  Counter& GetCounter(absl::string_view name, absl::string_view help, MetricLabels labels = {});
  Gauge& GetGauge(absl::string_view name, absl::string_view help, MetricLabels labels = {});
  Histogram& GetHistogram(absl::string_view name, absl::string_view help,
                          const std::vector<double>& bounds, MetricLabels labels = {});

  std::string PrometheusText() const;

 private:
  enum class Kind { kCounter, kGauge, kHistogram };
  struct Metric {
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::unique_ptr<Histogram> histogram;
  };
  struct Family {
    Kind kind;
    std::string help;
    std::map<std::string, Metric> by_labels;  // key: the text between the braces
  };
  Metric& Find(absl::string_view name, absl::string_view help, Kind kind,
               const MetricLabels& labels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void AppendHistogram(const std::string& name, const std::string& labels,
                              const Histogram& histogram, std::string* out);

  mutable absl::Mutex mutex_;
  std::map<std::string, Family> families_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Family> refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
