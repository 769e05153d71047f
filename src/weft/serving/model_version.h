// SPDX-License-Identifier: Apache-2.0
// One version of a model: a loaded SavedModel that answers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "proto/serving/inference.pb.h"
#include "weft/kernel/op_spec.h"
#include "weft/serving/batcher.h"
#include "weft/serving/metrics.h"
#include "weft/session/session.h"
#include "weft/train/saved_model.h"

namespace weft::serving {

// What all versions are loaded with; what it points at outlives them.
struct LoadSettings {
  const Catalogue* catalogue = nullptr;
  DeviceFactory* devices = nullptr;
  FileSystem* files = nullptr;
  std::vector<std::string> tags = {"serve"};
  int num_threads = 0;  // of one version's session; 0: the cores
  // Calls are batched where `batch_pool` is not null.
  BatchingOptions batching;
  ThreadPool* batch_pool = nullptr;
  TimerQueue* timers = nullptr;
  ServingMetrics* metrics = nullptr;
};

// Thread-safe. Must not be destroyed on a thread that its answers come on.
class ModelVersion {
 public:
  // Errors name the folder.
  static StatusOr<std::unique_ptr<ModelVersion>> Load(const LoadSettings& settings,
                                                      const std::string& model, int64_t version,
                                                      const std::string& folder);

  const std::string& model() const { return model_; }
  int64_t version() const { return version_; }
  const std::map<std::string, train::Signature>& signatures() const { return loaded_.signatures; }
  ServingMetrics* metrics() const { return metrics_; }
  // All of them as clients ask for them.
  const tensorflow::serving::SignatureDefMap& metadata() const { return metadata_; }

  // Runs the call, in a batch with others if that was asked for. `done` runs once, maybe before
  // this returns.
  void Run(RunCall call, const std::string& api, RunDone done) const;

 private:
  ModelVersion(std::string model, int64_t version, const LoadSettings& settings)
      : model_(std::move(model)), version_(version), metrics_(settings.metrics) {}
  Status DescribeSignatures();
  Status RunNow(const RunCall& call, std::vector<Tensor>* results) const;

  const std::string model_;
  const int64_t version_;
  ServingMetrics* const metrics_;
  train::LoadedModel loaded_;
  tensorflow::serving::SignatureDefMap metadata_;
  std::unique_ptr<session::Session> session_;
  std::unique_ptr<Batcher> batcher_;  // null: calls run alone. Ends before the session.
};

}  // namespace weft::serving
