// SPDX-License-Identifier: Apache-2.0
// ModelServers as a Kind of the frame.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "platform/model_servers/autoscale.h"
#include "platform/model_servers/load_book.h"
#include "platform/reconcile/controller.h"
#include "platform/store/resource.h"

namespace weft::platform {

const ResourceType& ModelServers();

// A pod's page for Prometheus.
using ServerPageReader = std::function<StatusOr<std::string>(const Json& pod)>;
// From its address, at the port of metrics.
StatusOr<std::string> FetchServerPage(const Json& pod);

// Thread-safe; borrows the store.
class ModelServerKind : public Kind {
 public:
  ModelServerKind(ObjectStore* store, ServerPageReader read_page);

  const ResourceType& type() const override { return ModelServers(); }
  std::string ControllerName() const override { return "modelserver-controller"; }
  std::vector<Owned> Owns() const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
  void OnChange(const ObjectPtr& previous, const ObjectPtr& object) override;

 private:
  // What was seen of one ModelServer; of the thread that looks at it.
  struct Sight {
    LoadBook book;
    ScalingMemory scaling;
    absl::Time read = absl::InfinitePast();    // when the pages were
    absl::Time scaled = absl::InfinitePast();  // when the number was decided
    std::vector<std::optional<double>> loads;  // of the ready servers
  };
  std::shared_ptr<Sight> SightOf(const std::string& uid);
  Status ReadPages(const Json& object, absl::Time now, Sight* sight) const;
  Status Scale(const Observation& observation, const ModelServerSpec& server, int64_t* replicas,
               Sight* sight, Plan* plan) const;

  ObjectStore* const store_;
  const ServerPageReader read_page_;
  absl::Mutex mutex_;
  // By uid; shared with a look that is under way when the object goes.
  std::map<std::string, std::shared_ptr<Sight>> sights_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::platform
