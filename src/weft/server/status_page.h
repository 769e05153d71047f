// SPDX-License-Identifier: Apache-2.0
// What a server tells over HTTP on loopback: /healthz, /metrics, /waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/waits.h"
#include "net/http_server.h"
#include "weft/worker/worker.h"

namespace weft::server {

// Sets gauges to what is true now; called while the server is ready or stopping.
using GaugeUpdate = std::function<void(MetricRegistry*)>;

// The gauges of what a task does, with the sessions that clients hold at it.
void TellWork(const worker::Worker::Counts& counts, size_t sessions, MetricRegistry* metrics);

// What a worker tells of the steps that change variables, as a histogram and, window by window, in
// the log (StalenessWindows). Borrows its arguments.
std::function<void(int64_t)> StalenessMetric(MetricRegistry* metrics, const Clock* clock);

// Thread-safe. /healthz answers 503 until SetReady and from SetStopping on; the others answer
// always.
class StatusPage {
 public:
  // Listens at 127.0.0.1:`port`, any free one for 0. Unavailable if it is taken. Borrows the rest.
  static StatusOr<std::unique_ptr<StatusPage>> Start(int port, MetricRegistry* metrics,
                                                     const WaitRegistry* waits, GaugeUpdate update);

  void SetReady() { state_ = State::kReady; }
  void SetStopping() { state_ = State::kStopping; }
  int port() const { return http_->port(); }

 private:
  enum class State { kStarting, kReady, kStopping };
  StatusPage(MetricRegistry* metrics, const WaitRegistry* waits, GaugeUpdate update)
      : metrics_(metrics), waits_(waits), update_(std::move(update)) {}
  HttpResponse Health() const;
  HttpResponse Metrics() const;
  HttpResponse Waits(const HttpRequest& request) const;

  MetricRegistry* const metrics_;
  const WaitRegistry* const waits_;
  const GaugeUpdate update_;
  std::atomic<State> state_{State::kStarting};
  std::unique_ptr<HttpServer> http_;
};

}  // namespace weft::server
