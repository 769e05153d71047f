// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/metrics.h"

#include <algorithm>
#include <vector>

#include "absl/time/clock.h"

namespace weft::serving {
namespace {

// From 10 microseconds to about 20 minutes.
const std::vector<double>& LatencyBounds() {
  static const auto* const bounds = new std::vector<double>(ExponentialBounds(10, 1.8, 33));
  return *bounds;
}

const std::vector<double>& QueueingBounds() {
  static const auto* const bounds = new std::vector<double>(ExponentialBounds(100, 1.2, 52));
  return *bounds;
}

const std::vector<double>& SizeBounds() {
  static const auto* const bounds = new std::vector<double>(ExponentialBounds(1, 2, 14));
  return *bounds;
}

}  // namespace

void ServingMetrics::EndRequest(const std::string& model, const std::string& api,
                                const std::string& entrypoint, absl::Time begin,
                                const Status& status) {
  bool is_known = false;
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) known_.insert(model);
    is_known = known_.contains(model);
  }
  registry_
      .GetCounter(":tensorflow:serving:request_count", "The total number of requests.",
                  {{"model_name", is_known ? model : ""},
                   {"status", absl::StatusCodeToString(status.code())}})
      .Add();
  if (!status.ok()) return;
  registry_
      .GetHistogram(":tensorflow:serving:request_latency",
                    "Distribution of wall time (in microseconds) for a request.", LatencyBounds(),
                    {{"model_name", model}, {"API", api}, {"entrypoint", entrypoint}})
      .Observe(absl::ToDoubleMicroseconds(absl::Now() - begin));
}

void ServingMetrics::Know(const std::string& model) {
  absl::MutexLock lock(&mutex_);
  known_.insert(model);
}

void ServingMetrics::CountHere(int change) {
  Gauge& here = registry_.GetGauge("weft_serving_requests", "Requests that are here now");
  Counter& spent = registry_.GetCounter(
      "weft_serving_request_microseconds_total",
      "Time that requests spent here, all of them added up: what it grows in a second is how many "
      "there were, in millionths");
  absl::MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  const int64_t passed = std::max<int64_t>(0, absl::ToInt64Microseconds(now - counted_));
  // Parts of microseconds are left for the next time.
  if (here_ > 0) spent.Add(here_ * passed);
  counted_ = here_ > 0 ? counted_ + absl::Microseconds(passed) : now;
  here_ += change;
  here.Set(here_);
}

std::string ServingMetrics::PageText() {
  CountHere(0);
  return registry_.PrometheusText();
}

void ServingMetrics::ObserveRun(const std::string& model, const std::string& api,
                                absl::Duration latency) {
  registry_
      .GetHistogram(":tensorflow:serving:runtime_latency",
                    "Distribution of wall time (in microseconds) for the model's run.",
                    LatencyBounds(), {{"model_name", model}, {"API", api}, {"runtime", "weft"}})
      .Observe(absl::ToDoubleMicroseconds(latency));
}

void ServingMetrics::CountExamples(const std::string& model, int64_t count) {
  registry_
      .GetHistogram(":tensorflow:serving:request_example_counts",
                    "The distribution of the number of examples in a request.", SizeBounds(),
                    {{"model", model}})
      .Observe(static_cast<double>(count));
  registry_
      .GetCounter(":tensorflow:serving:request_example_count_total",
                  "The total number of tensorflow.Examples.", {{"model", model}})
      .Add(count);
}

void ServingMetrics::ObserveBatch(const std::string& model, int64_t rows, int64_t padding) {
  registry_
      .GetHistogram(":tensorflow:serving:batching_session:processed_batch_size",
                    "Rows of a batch as it ran.", SizeBounds(), {{"model_name", model}})
      .Observe(static_cast<double>(rows + padding));
  registry_
      .GetHistogram(":tensorflow:serving:batching_session:padding_size",
                    "Rows that filled a batch up to an allowed size.", SizeBounds(),
                    {{"model_name", model}})
      .Observe(static_cast<double>(padding));
  registry_
      .GetCounter(":tensorflow:serving:batching_session:wrapped_run_count",
                  "The total number of runs of batches.")
      .Add();
}

void ServingMetrics::ObserveQueueing(const std::string& model, absl::Duration waited) {
  registry_
      .GetHistogram(":tensorflow:serving:batching_session:queuing_latency",
                    "Distribution of wall time spent (in microseconds) in queuing",
                    QueueingBounds(), {{"model_name", model}})
      .Observe(absl::ToDoubleMicroseconds(waited));
}

void ServingMetrics::SetQueued(const std::string& model, double requests) {
  registry_
      .GetGauge("weft_serving_queued_requests", "Requests that wait for their batch to run",
                {{"model_name", model}})
      .Set(requests);
}

void ServingMetrics::CountLoad(const std::string& model, const Status& status,
                               absl::Duration took) {
  registry_
      .GetCounter(":tensorflow:cc:saved_model:load_attempt_count",
                  "The number of times a SavedModel was requested to be loaded.",
                  {{"model_path", model}, {"status", status.ok() ? "success" : "fail"}})
      .Add();
  registry_
      .GetCounter(":tensorflow:cc:saved_model:load_latency",
                  "Latency in microseconds for SavedModels that were successfully loaded.",
                  {{"model_path", model}})
      .Add(status.ok() ? absl::ToInt64Microseconds(took) : 0);
}

void ServingMetrics::CountWarmUp(const std::string& model, absl::Duration took) {
  registry_
      .GetHistogram(":tensorflow:serving:model_warmup_latency",
                    "Latency in microseconds for model warmup.", LatencyBounds(),
                    {{"model_path", model}, {"status", "OK"}})
      .Observe(absl::ToDoubleMicroseconds(took));
}

}  // namespace weft::serving
