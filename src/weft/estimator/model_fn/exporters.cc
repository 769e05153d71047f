// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "base/files.h"
#include "weft/estimator/model_fn/train_and_evaluate.h"
#include "weft/storage/object_files.h"

namespace weft::estimator {
namespace {

Status DeleteAll(FileSystem& files, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(path));
  if (stat.is_directory) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(path));
    for (const std::string& name : names) {
      WEFT_RETURN_IF_ERROR(DeleteAll(files, JoinPath(path, name)));
    }
  }
  return files.Delete(path);
}

enum class When { kAlways, kAtTheEnd, kWhenBetter };

class ExporterTo final : public Exporter {
 public:
  ExporterTo(std::string name, ServingInputFn serving, When when, std::string metric, int keep)
      : name_(std::move(name)),
        serving_(std::move(serving)),
        when_(when),
        metric_(std::move(metric)),
        keep_(keep) {}

  StatusOr<std::string> Export(Estimator& estimator, const std::string& checkpoint,
                               const EvalResult& result, bool is_final) override {
    if (when_ == When::kAtTheEnd && !is_final) return std::string();
    if (when_ != When::kAtTheEnd && checkpoint == last_) return std::string();
    if (when_ == When::kWhenBetter) {
      const auto found = result.find(metric_);
      if (found == result.end()) {
        return InvalidArgument(
            "Exporter '", name_, "': the evaluation has no '", metric_, "', but ",
            absl::StrJoin(result, ", ",
                          [](std::string* out, const auto& r) { absl::StrAppend(out, r.first); }));
      }
      if (!(found->second < best_)) return std::string();
      best_ = found->second;
    }
    last_ = checkpoint;
    const std::string base = JoinPath(JoinPath(estimator.model_dir(), "export"), name_);
    WEFT_ASSIGN_OR_RETURN(const std::string folder,
                          estimator.ExportSavedModel(base, serving_, checkpoint));
    WEFT_RETURN_IF_ERROR(DropOld(base));
    return folder;
  }

 private:
  // Folders whose names are times, the oldest first.
  Status DropOld(const std::string& base) const {
    if (keep_ <= 0) return absl::OkStatus();
    storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(base));
    std::vector<std::pair<int64_t, std::string>> exports;
    for (const std::string& name : names) {
      int64_t time = 0;
      if (absl::SimpleAtoi(name, &time)) exports.emplace_back(time, name);
    }
    std::sort(exports.begin(), exports.end());
    for (size_t i = 0; i + static_cast<size_t>(keep_) < exports.size(); ++i) {
      WEFT_RETURN_IF_ERROR(DeleteAll(files, JoinPath(base, exports[i].second)));
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const ServingInputFn serving_;
  const When when_;
  const std::string metric_;
  const int keep_;  // 0: all
  std::string last_;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::shared_ptr<Exporter> LatestExporter(const std::string& name, ServingInputFn serving,
                                         int keep) {
  return std::make_shared<ExporterTo>(name, std::move(serving), When::kAlways, "", keep);
}
std::shared_ptr<Exporter> FinalExporter(const std::string& name, ServingInputFn serving) {
  return std::make_shared<ExporterTo>(name, std::move(serving), When::kAtTheEnd, "", 0);
}
std::shared_ptr<Exporter> BestExporter(const std::string& name, ServingInputFn serving,
                                       const std::string& metric, int keep) {
  return std::make_shared<ExporterTo>(name, std::move(serving), When::kWhenBetter, metric, keep);
}

}  // namespace weft::estimator
