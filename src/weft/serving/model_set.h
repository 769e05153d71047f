// SPDX-License-Identifier: Apache-2.0
// The models of a server: which versions are there, loading, serving and going.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/status.h"
#include "base/threads.h"
#include "proto/serving/config.pb.h"
#include "proto/serving/inference.pb.h"
#include "weft/serving/model_version.h"
#include "weft/serving/version_folder.h"

namespace weft::serving {

struct ModelSetOptions {
  LoadSettings load;
  absl::Duration poll = absl::Seconds(1);  // between looks at the folders; zero: never again
  int load_threads = 1;                    // versions that are loaded beside each other
  int max_load_retries = 5;
  absl::Duration retry_interval = absl::Minutes(1);
  bool warm_up = true;
  int warm_up_rounds = 1;
  bool allow_labels_for_unavailable = false;
  // A folder in which something was written later than so long ago is not loaded yet.
  absl::Duration settle = absl::Seconds(1);
};

using VersionState = tensorflow::serving::ModelVersionStatus::State;

// Thread-safe.
class ModelSet {
 public:
  explicit ModelSet(const ModelSetOptions& options);
  // There must be no answer under way.
  ~ModelSet();
  ModelSet(const ModelSet&) = delete;
  ModelSet& operator=(const ModelSet&) = delete;

  // Serves these models and no others; comes back when the versions that there are have been loaded
  // or failed. InvalidArgument or FailedPrecondition, and nothing changes, where the list is no
  // good; Unknown names the new models of which no version could be loaded; the others are served.
  Status Configure(const tensorflow::serving::ModelServerConfig& config);
  // Watches the folders from now on.
  void Start();

  // InvalidArgument for a specification without a name or with an unknown label; NotFound where no
  // such version is served.
  StatusOr<std::shared_ptr<const ModelVersion>> Find(
      const tensorflow::serving::ModelSpec& spec) const;
  // The newest first. NotFound as TensorFlow Serving words it.
  Status Describe(const tensorflow::serving::ModelSpec& spec,
                  tensorflow::serving::GetModelStatusResponse* response) const;
  // Each configured model has a version that answers.
  bool IsReady() const;

 private:
  struct Entry {
    VersionState state = tensorflow::serving::ModelVersionStatus::START;
    std::string folder;
    Status status;
    std::shared_ptr<const ModelVersion> loaded;  // while AVAILABLE
    FolderState seen;                            // at the last look
    FolderState attempted;                       // when it was last loaded
    int attempts = 0;
    absl::Time next_attempt = absl::InfinitePast();
    bool wanted = true;
  };
  struct Model {
    tensorflow::serving::ModelConfig config;
    std::map<int64_t, Entry> versions;
    bool is_listed = true;  // its folder could be listed
  };
  struct Retiring {
    std::string model;
    int64_t version = 0;
    std::shared_ptr<const ModelVersion> loaded;  // the last to hold it frees it: this thread
  };
  struct Load {
    std::string model;
    int64_t version = 0;
    std::string folder;
  };

  void Watch();
  // One look at all folders; loads, replaces and retires.
  void Poll(bool is_first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(poll_mutex_);
  void Look(Model* model, std::vector<Load>* loads, bool* is_young)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(poll_mutex_, mutex_);
  // Adds to `wanted` the newest earlier version that may be whole, where nothing of the model is
  // served and nothing of `wanted` can be.
  void AddEarlier(const Model& model, std::map<int64_t, std::string>* wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(poll_mutex_, mutex_);
  // Whether a version cannot be served as it is now: it has no graph yet, or failed to load.
  bool IsHopeless(const Model& model, int64_t version, const std::string& folder) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(poll_mutex_, mutex_);
  bool IsDue(Entry* entry, bool* is_young) ABSL_EXCLUSIVE_LOCKS_REQUIRED(poll_mutex_, mutex_);
  void LoadOne(const Load& load);
  void Finish(const Load& load, StatusOr<std::shared_ptr<const ModelVersion>> loaded);
  void Retire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetireEntry(const std::string& model, int64_t version, Entry* entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees what nobody uses any more; true while there is more.
  bool FreeRetired();
  Status SetLabels(const tensorflow::serving::ModelConfigList& list);

  const ModelSetOptions options_;
  ThreadPool load_pool_;
  // Held while folders are looked at and versions loaded; never by requests.
  absl::Mutex poll_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<std::string, int64_t>> labels_ ABSL_GUARDED_BY(mutex_);
  std::vector<Retiring> retiring_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace weft::serving
