// SPDX-License-Identifier: Apache-2.0
// TensorFlow Serving's REST interface.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/metrics.h"
#include "base/status.h"
#include "net/http_server.h"
#include "net/json.h"
#include "proto/serving/inference.pb.h"
#include "weft/serving/metrics.h"
#include "weft/serving/model_set.h"

namespace weft::serving {

// What a request's method and path mean.
struct RestTarget {
  tensorflow::serving::ModelSpec spec;
  std::string verb;  // "predict", "classify", "regress"; "metadata"; "" asks for the status
};
// "POST /v1/models/NAME[/versions/N|/labels/L]:predict|classify|regress" and
// "GET /v1/models/NAME[/versions/N|/labels/L][/metadata]". InvalidArgument "Malformed request:
// ...".
StatusOr<RestTarget> ParseRestPath(const std::string& method, absl::string_view path);
// The status code of HTTP that an error is answered with.
int HttpStatusOf(const Status& status);

struct RestOptions {
  absl::Duration timeout = absl::Seconds(30);
  bool cors = false;                // pages of other hosts may ask
  std::string metrics_path;         // of Prometheus's page; empty: none
  std::vector<std::string> tokens;  // of which a request names one; none: anybody may ask
  std::function<bool()> is_ready;   // what /healthz answers
};

// Answers requests, on any thread; may block while a model runs. Thread-safe.
class RestApi {
 public:
  RestApi(const RestOptions& options, ModelSet* models, ServingMetrics* metrics)
      : options_(options), models_(*models), metrics_(*metrics) {}

  using Answer = std::function<void(HttpResponse)>;
  // `answer` is called once, maybe before this returns.
  void Handle(const HttpRequest& request, Answer answer);

 private:
  using Done = std::function<void(StatusOr<std::string>)>;
  void Ask(const RestTarget& target, const HttpRequest& request, const Done& done);
  void AskPredict(const RestTarget& target, const Json& body, const Done& done);
  void AskExamples(const RestTarget& target, const Json& body, const Done& done);
  StatusOr<std::string> Describe(const RestTarget& target);
  HttpResponse Finish(StatusOr<std::string> text) const;
  bool HandleAside(const HttpRequest& request, const Answer& answer);

  const RestOptions options_;
  ModelSet& models_;
  ServingMetrics& metrics_;
};

}  // namespace weft::serving
