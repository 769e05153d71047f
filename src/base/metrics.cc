// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "base/log.h"

namespace weft {
namespace {

bool IsMetricName(absl::string_view name, bool may_have_colon) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           (may_have_colon && c == ':');
  });
}

std::string LabelText(const MetricLabels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=\"",
                    absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
                    "\"");
  }
  return text;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::string shortest = absl::StrCat(value);  // six digits
  double back = 0;
  if (absl::SimpleAtod(shortest, &back) && back == value) return shortest;
  return absl::StrFormat("%.17g", value);
}

void AppendSample(absl::string_view name, absl::string_view labels, absl::string_view value,
                  std::string* out) {
  absl::StrAppend(out, name, labels.empty() ? "" : "{", labels, labels.empty() ? "" : "}", " ",
                  value, "\n");
}

}  // namespace

size_t MetricShard() {
  static std::atomic<size_t> next{0};
  thread_local const size_t shard = next.fetch_add(1, std::memory_order_relaxed) % kMetricShards;
  return shard;
}

int64_t Counter::value() const {
  int64_t sum = 0;
  for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
  return sum;
}

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
  for (Shard& shard : shards_) {
    shard.counts = std::vector<std::atomic<int64_t>>(bounds_.size() + 1);
  }
}

void Histogram::Observe(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  Shard& shard = shards_[MetricShard()];
  shard.counts[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  shard.sum.fetch_add(value, std::memory_order_relaxed);
}

std::vector<int64_t> Histogram::Counts() const {
  std::vector<int64_t> counts(bounds_.size() + 1);
  for (const Shard& shard : shards_) {
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    }
  }
  return counts;
}

double Histogram::Sum() const {
  double sum = 0;
  for (const Shard& shard : shards_) sum += shard.sum.load(std::memory_order_relaxed);
  return sum;
}

std::vector<double> ExponentialBounds(double first, double factor, int count) {
  std::vector<double> bounds;
  for (int i = 0; i < count; ++i, first *= factor) bounds.push_back(first);
  return bounds;
}

MetricRegistry::Metric& MetricRegistry::Find(absl::string_view name, absl::string_view help,
                                             Kind kind, const MetricLabels& labels) {
  bool good = IsMetricName(name, /*may_have_colon=*/true);
  for (const auto& [label, value] : labels) {
    good = good && IsMetricName(label, /*may_have_colon=*/false);
  }
  const auto known = families_.find(std::string(name));
  good = good && (known == families_.end() || known->second.kind == kind);
  if (!good) {
    WEFT_LOG_EVERY(ERROR, absl::Minutes(1))
        << "A metric is not shown, its name or labels are bad or it is known as another kind: '"
        << name << "'";
  }
  std::string key = good ? std::string(name) : absl::StrCat(static_cast<int>(kind), name);
  auto& families = good ? families_ : refused_;
  Family& family =
      families.try_emplace(std::move(key), Family{kind, std::string(help), {}}).first->second;
  return family.by_labels[LabelText(labels)];
}

Counter& MetricRegistry::GetCounter(absl::string_view name, absl::string_view help,
                                    MetricLabels labels) {
  absl::MutexLock lock(&mutex_);
  Metric& metric = Find(name, help, Kind::kCounter, labels);
  if (metric.counter == nullptr) metric.counter = std::make_unique<Counter>();
  return *metric.counter;
}

Gauge& MetricRegistry::GetGauge(absl::string_view name, absl::string_view help,
                                MetricLabels labels) {
  absl::MutexLock lock(&mutex_);
  Metric& metric = Find(name, help, Kind::kGauge, labels);
  if (metric.gauge == nullptr) metric.gauge = std::make_unique<Gauge>();
  return *metric.gauge;
}

Histogram& MetricRegistry::GetHistogram(absl::string_view name, absl::string_view help,
                                        const std::vector<double>& bounds, MetricLabels labels) {
  absl::MutexLock lock(&mutex_);
  Metric& metric = Find(name, help, Kind::kHistogram, labels);
  if (metric.histogram == nullptr) metric.histogram = std::make_unique<Histogram>(bounds);
  return *metric.histogram;
}

void MetricRegistry::AppendHistogram(const std::string& name, const std::string& labels,
                                     const Histogram& histogram, std::string* out) {
  const std::vector<int64_t> counts = histogram.Counts();
  const std::string comma = labels.empty() ? "" : ",";
  int64_t cumulative = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    cumulative += counts[i];
    const std::string bound =
        i < histogram.bounds().size() ? Number(histogram.bounds()[i]) : "+Inf";
    AppendSample(absl::StrCat(name, "_bucket"), absl::StrCat(labels, comma, "le=\"", bound, "\""),
                 absl::StrCat(cumulative), out);
  }
  AppendSample(absl::StrCat(name, "_sum"), labels, Number(histogram.Sum()), out);
  AppendSample(absl::StrCat(name, "_count"), labels, absl::StrCat(cumulative), out);
}

std::string MetricRegistry::PrometheusText() const {
  absl::MutexLock lock(&mutex_);
  std::string text;
  for (const auto& [name, family] : families_) {
    const char* const kind = family.kind == Kind::kCounter ? "counter"
                             : family.kind == Kind::kGauge ? "gauge"
                                                           : "histogram";
    absl::StrAppend(&text, "# HELP ", name, " ",
                    absl::StrReplaceAll(family.help, {{"\\", "\\\\"}, {"\n", "\\n"}}), "\n# TYPE ",
                    name, " ", kind, "\n");
    for (const auto& [labels, metric] : family.by_labels) {
      if (metric.counter != nullptr) {
        AppendSample(name, labels, absl::StrCat(metric.counter->value()), &text);
      } else if (metric.gauge != nullptr) {
        AppendSample(name, labels, Number(metric.gauge->value()), &text);
      } else if (metric.histogram != nullptr) {
        AppendHistogram(name, labels, *metric.histogram, &text);
      }
    }
  }
  return text;
}

}  // namespace weft
