// SPDX-License-Identifier: Apache-2.0
#include "apps/trial_output.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"

#include "base/cancellation.h"
#include "base/files.h"
#include "platform/object/fields.h"
#include "platform/pods/pod_executor.h"
#include "platform/store/api_error.h"

namespace weft::apps {
namespace {

constexpr size_t kMostOutputBytes = size_t{64} << 20;

StatusOr<std::string> ReadClusterLog(platform::KubernetesStore* cluster, const Json& pod,
                                     const std::string& container) {
  platform::LogOptions options;
  options.container = container;
  std::string text;
  Cancellation cancellation;
  const Status status = cluster->StreamLog(
      {platform::NamespaceOf(pod), platform::NameOf(pod)}, options,
      [&text](absl::string_view piece) {
        if (text.size() + piece.size() > kMostOutputBytes)
          return ResourceExhausted("the output is longer than ", kMostOutputBytes, " bytes");
        text.append(piece.data(), piece.size());
        return absl::OkStatus();
      },
      &cancellation);
  if (platform::HttpCodeOf(status) == 403) {
    return PermissionDenied(
        "the operator may not read the output of pods: kubectl apply -f deploy/rbac/tuning.yaml");
  }
  WEFT_RETURN_IF_ERROR(status);
  return text;
}

}  // namespace

platform::TrialOutputReader ReadsLogFolder(std::string folder) {
  return [folder = std::move(folder)](const platform::ObjectPtr& pod,
                                      const std::string& container) -> StatusOr<std::string> {
    WEFT_ASSIGN_OR_RETURN(const std::string path,
                          platform::PodExecutor::LogPath(folder, *pod, container, false));
    RealFileSystem files;
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostOutputBytes));
    std::string lines;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      // Behind its time.
      line.remove_prefix(std::min(line.size(), line.find(' ') + 1));
      absl::StrAppend(&lines, line, "\n");
    }
    return lines;
  };
}

platform::TrialOutputReader ReadsClusterLogs(platform::KubernetesStore* cluster) {
  return [cluster](const platform::ObjectPtr& pod, const std::string& container) {
    return ReadClusterLog(cluster, *pod, container);
  };
}

}  // namespace weft::apps
