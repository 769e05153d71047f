// SPDX-License-Identifier: Apache-2.0
#include "weft/server/status_page.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/process_stats.h"
#include "net/json.h"
#include "weft/server/staleness.h"
#include "weft/tensor/pool_allocator.h"

namespace weft::server {
namespace {

void UpdateProcess(MetricRegistry* metrics) {
  const ProcessStats stats = ReadProcessStats();
  const auto set = [&](const char* name, const char* help, double value) {
    metrics->GetGauge(name, help).Set(value);
  };
  set("process_resident_memory_bytes", "Memory of this process that is in RAM",
      static_cast<double>(stats.resident_bytes));
  set("process_threads", "Threads of this process", static_cast<double>(stats.threads));
  set("process_open_fds", "Files and sockets that this process holds open",
      static_cast<double>(stats.open_files));
  set("process_cpu_seconds", "User and system time so far", absl::ToDoubleSeconds(stats.cpu_time));
  set("process_uptime_seconds", "Since this process started", absl::ToDoubleSeconds(stats.uptime));
}

Json WaitJson(const WaitRecord& wait) {
  Json json = Json::MakeObject();
  json.Set("waiter", wait.subject->waiter);
  json.Set("what", wait.subject->what);
  json.Set("on", wait.subject->on);
  if (wait.step >= 0) json.Set("step", wait.step);
  json.Set("seconds", absl::ToDoubleSeconds(wait.duration));
  return json;
}

}  // namespace

void TellWork(const worker::Worker::Counts& counts, size_t sessions, MetricRegistry* metrics) {
  const auto set = [&](const char* name, const char* help, size_t value) {
    metrics->GetGauge(name, help).Set(static_cast<double>(value));
  };
  set("weft_sessions", "Sessions that clients hold here", sessions);
  set("weft_task_sessions", "Sessions of any task's master that use this task", counts.sessions);
  set("weft_graphs", "Compiled graphs that are registered here", counts.graphs);
  set("weft_running_parts", "Parts of steps that exchange tensors and run here now",
      counts.running);
  set("weft_open_steps", "Steps that hold tensors here now", counts.open_steps);
  const PoolStatistics memory = HostPoolStatistics();
  set("weft_tensor_memory_bytes", "Host memory that tensors hold", memory.bytes_in_use);
  set("weft_tensor_memory_peak_bytes", "The most that they held at a time",
      memory.peak_bytes_in_use);
  set("weft_tensor_pool_bytes", "Host memory kept for the next tensors, for some seconds",
      memory.bytes_cached);
  set("weft_tensor_memory_limit_bytes", "The most that both may take together", HostMemoryLimit());
}

std::function<void(int64_t)> StalenessMetric(MetricRegistry* metrics, const Clock* clock) {
  std::vector<double> bounds = ExponentialBounds(1, 2, 11);
  bounds.insert(bounds.begin(), 0);
  Histogram& staleness = metrics->GetHistogram(
      "weft_update_staleness",
      "Updates of other steps here between a step's read of variables and its own update", bounds);
  // Shared by the copies of the function.
  const auto windows = std::make_shared<StalenessWindows>(clock);
  return [&staleness, windows](int64_t updates) {
    staleness.Observe(static_cast<double>(updates));
    if (const std::string line = windows->Observe(updates); !line.empty()) WEFT_LOG(INFO) << line;
  };
}

StatusOr<std::unique_ptr<StatusPage>> StatusPage::Start(int port, MetricRegistry* metrics,
                                                        const WaitRegistry* waits,
                                                        GaugeUpdate update) {
  std::unique_ptr<StatusPage> page(new StatusPage(metrics, waits, std::move(update)));
  std::map<std::string, HttpHandler> routes;
  routes["/healthz"] = [page = page.get()](const HttpRequest&) { return page->Health(); };
  routes["/metrics"] = [page = page.get()](const HttpRequest&) { return page->Metrics(); };
  routes["/waits"] = [page = page.get()](const HttpRequest& request) {
    return page->Waits(request);
  };
  HttpServer::Options options;
  options.address.port = static_cast<uint16_t>(port);
  WEFT_ASSIGN_OR_RETURN(page->http_, HttpServer::Start(std::move(options), std::move(routes)));
  return page;
}

HttpResponse StatusPage::Health() const {
  switch (state_.load()) {
    case State::kStarting:
      return {.status = 503, .body = "starting\n"};
    case State::kReady:
      return {.status = 200, .body = "ok\n"};
    case State::kStopping:
      break;
  }
  return {.status = 503, .body = "stopping\n"};
}

HttpResponse StatusPage::Metrics() const {
  UpdateProcess(metrics_);
  metrics_->GetGauge("weft_waits", "Waits for tasks and tensors that go on now")
      .Set(static_cast<double>(waits_->Snapshot().size()));
  if (state_.load() != State::kStarting) update_(metrics_);
  return {.content_type = "text/plain; version=0.0.4", .body = metrics_->PrometheusText()};
}

// A line a wait, the longest first; "?json" as a list of objects.
HttpResponse StatusPage::Waits(const HttpRequest& request) const {
  const std::vector<WaitRecord> waits = waits_->Snapshot();
  HttpResponse response;
  if (request.query == "json") {
    Json list = Json::MakeArray();
    for (const WaitRecord& wait : waits) list.Append(WaitJson(wait));
    response.content_type = "application/json";
    response.body = list.Dump() + "\n";
    return response;
  }
  for (const WaitRecord& wait : waits) absl::StrAppend(&response.body, DescribeWait(wait), "\n");
  return response;
}

}  // namespace weft::server
