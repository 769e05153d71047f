// SPDX-License-Identifier: Apache-2.0
#include "weft/client/recorded_session.h"

#include <utility>

#include "absl/time/clock.h"

#include "weft/inspect/cost_recorder.h"

namespace weft::client {
namespace {

class RecordedSession final : public session::Session {
 public:
  RecordedSession(std::unique_ptr<session::Session> session, std::string cost_file)
      : session_(std::move(session)), recorder_(std::move(cost_file)) {}

  Status Extend(const GraphDef& graph) override { return session_->Extend(graph); }

  Status Run(const session::RunOptions& options, const std::vector<session::Feed>& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
             std::vector<Tensor>* results, session::RunMetadata* metadata) override {
    if (!recorder_.Wants())
      return session_->Run(options, feeds, fetches, targets, results, metadata);
    session::RunOptions traced = options;
    traced.trace = true;
    traced.partition_graphs = options.partition_graphs || recorder_.WantsGraphs();
    session::RunMetadata own;
    const absl::Time start = absl::Now();
    const Status status = session_->Run(traced, feeds, fetches, targets, results, &own);
    const absl::Duration taken = absl::Now() - start;
    if (status.ok()) {
      std::vector<executor::NodeTrace> trace = inspect::TracesOfFeeds(feeds);
      trace.insert(trace.end(), own.trace.begin(), own.trace.end());
      recorder_.Add(trace, own.partition_graphs, taken);
    }
    if (metadata != nullptr) {
      if (!options.trace) own.trace.clear();
      if (!options.partition_graphs) own.partition_graphs.clear();
      *metadata = std::move(own);
    }
    return status;
  }

  StatusOr<std::vector<DeviceAttributes>> ListDevices() override { return session_->ListDevices(); }
  Status Close() override { return session_->Close(); }

 private:
  const std::unique_ptr<session::Session> session_;
  inspect::CostRecorder recorder_;
};

}  // namespace

std::unique_ptr<session::Session> NewRecordedSession(std::unique_ptr<session::Session> session,
                                                     std::string cost_file) {
  return std::make_unique<RecordedSession>(std::move(session), std::move(cost_file));
}

}  // namespace weft::client
