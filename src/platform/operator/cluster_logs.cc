// SPDX-License-Identifier: Apache-2.0
#include "platform/operator/cluster_logs.h"

#include <utility>

#include "absl/strings/str_split.h"

#include "base/cancellation.h"
#include "platform/object/fields.h"
#include "platform/object/update_staleness.h"
#include "platform/pods/process_report.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr int kLastLines = 50;
constexpr size_t kMostLastBytes = 64 << 10;
constexpr size_t kMostOutputBytes = size_t{64} << 20;

StatusOr<std::string> ReadLog(KubernetesStore* cluster, const ObjectName& pod,
                              const LogOptions& options, size_t most) {
  std::string text;
  Cancellation cancellation;
  WEFT_RETURN_IF_ERROR(cluster->StreamLog(
      pod, options,
      [&](absl::string_view piece) {
        if (text.size() + piece.size() > most)
          return ResourceExhausted("the output is longer than ", most, " bytes");
        text.append(piece.data(), piece.size());
        return absl::OkStatus();
      },
      &cancellation));
  return text;
}

}  // namespace

StatusOr<Json> ReadProgress(KubernetesStore* cluster, const ObjectName& pod) {
  LogOptions options;
  options.container = "tensorflow";
  options.tail_lines = kLastLines;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadLog(cluster, pod, options, kMostLastBytes));
  Json latest;
  ToldStaleness staleness;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (auto progress = ParseProgressLine(line)) latest = *std::move(progress);
    staleness.Hear(line);
  }
  if (!staleness.empty()) latest.Set("staleness", staleness.Describe());
  return latest;
}

TrialOutputReader ReadsClusterLogs(KubernetesStore* cluster) {
  return [cluster](const ObjectPtr& pod, const std::string& container) -> StatusOr<std::string> {
    LogOptions options;
    options.container = container;
    StatusOr<std::string> text =
        ReadLog(cluster, {NamespaceOf(*pod), NameOf(*pod)}, options, kMostOutputBytes);
    if (HttpCodeOf(text.status()) != 403) return text;
    return PermissionDenied(
        "the operator may not read the output of pods: kubectl apply -f deploy/rbac/tuning.yaml");
  };
}

}  // namespace weft::platform
