// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "weft/estimator/callback.h"
#include "weft/estimator/keras_files.h"
#include "weft/storage/event_file.h"
#include "weft/storage/summary.h"

namespace weft::estimator {
namespace {

// Whether a number is better than the best so far.
class Best {
 public:
  explicit Best(const Monitor& monitor, double min_delta = 0)
      : monitor_(monitor), min_delta_(std::abs(min_delta)) {
    more_ = monitor.mode == "max";
    for (const char* name : {"acc", "auc", "precision", "recall", "f1", "r2"}) {
      if (monitor.mode == "auto" && absl::StrContains(monitor.name, name)) more_ = true;
    }
    Reset();
  }
  void Reset() {
    best_ =
        more_ ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  void set(double best) { best_ = best; }
  bool IsBetter(double value) const {
    return more_ ? value - min_delta_ > best_ : value + min_delta_ < best_;
  }
  bool Take(double value) {
    if (!IsBetter(value)) return false;
    best_ = value;
    return true;
  }
  // NaN, once told, where the logs have no such number.
  double Of(const Logs& logs) {
    const double value = LogOf(logs, monitor_.name);
    if (std::isnan(value) && !told_) {
      told_ = true;
      WEFT_LOG(WARNING) << "There is no number '" << monitor_.name << "' to watch";
    }
    return value;
  }

 private:
  const Monitor monitor_;
  const double min_delta_;
  bool more_ = false, told_ = false;
  double best_ = 0;
};

class ProgressCallback final : public Callback {
 public:
  explicit ProgressCallback(std::function<void(const std::string&)> show)
      : show_(std::move(show)) {}
  Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    std::string line = absl::StrCat("epoch ", epoch + 1);
    for (const auto& [name, value] : logs) absl::StrAppendFormat(&line, "  %s %.4g", name, value);
    if (show_ != nullptr) {
      show_(line);
    } else {
      std::printf("%s\n", line.c_str());
      std::fflush(stdout);
    }
    return absl::OkStatus();
  }

 private:
  const std::function<void(const std::string&)> show_;
};

class CheckpointCallback final : public Callback {
 public:
  CheckpointCallback(std::string path, const CheckpointOptions& options)
      : path_(std::move(path)), only_best_(options.save_best_only), best_(options.monitor) {}
  Status OnEpochEnd(Model& model, int epoch, Logs& logs) override {
    if (only_best_ && !best_.Take(best_.Of(logs))) return absl::OkStatus();
    std::string path =
        absl::StrReplaceAll(path_, {{"{epoch}", absl::StrFormat("%02d", epoch + 1)}});
    for (const auto& [name, value] : logs) {
      path = absl::StrReplaceAll(path,
                                 {{absl::StrCat("{", name, "}"), absl::StrFormat("%.4f", value)}});
    }
    if (absl::EndsWith(path, ".weights.h5")) return SaveWeights(model, path);
    return SaveModel(model, path);
  }

 private:
  const std::string path_;
  const bool only_best_;
  Best best_;
};

class EarlyStoppingCallback final : public Callback {
 public:
  explicit EarlyStoppingCallback(const EarlyStoppingOptions& options)
      : options_(options), best_(options.monitor, options.min_delta) {}
  Status OnTrainBegin(Model&) override {
    waited_ = 0;
    best_.Reset();
    if (options_.has_baseline) best_.set(options_.baseline);
    weights_.clear();
    return absl::OkStatus();
  }
  Status OnEpochEnd(Model& model, int epoch, Logs& logs) override {
    const double value = best_.Of(logs);
    if (std::isnan(value) || epoch < options_.start_from_epoch) return absl::OkStatus();
    if (options_.restore_best_weights && weights_.empty()) {
      WEFT_ASSIGN_OR_RETURN(weights_, model.GetWeights());
    }
    ++waited_;
    if (best_.Take(value)) {
      waited_ = 0;
      if (options_.restore_best_weights) {
        WEFT_ASSIGN_OR_RETURN(weights_, model.GetWeights());
      }
      return absl::OkStatus();
    }
    if (waited_ >= options_.patience && epoch > 0) model.StopTraining();
    return absl::OkStatus();
  }
  Status OnTrainEnd(Model& model) override {
    return weights_.empty() ? absl::OkStatus() : model.SetWeights(weights_);
  }

 private:
  const EarlyStoppingOptions options_;
  Best best_;
  int waited_ = 0;
  std::vector<NamedWeight> weights_;
};

class NaNCallback final : public Callback {
 public:
  Status OnBatchEnd(Model& model, int64_t batch, double loss, const Logs&) override {
    if (std::isfinite(loss)) return absl::OkStatus();
    WEFT_LOG(WARNING) << "Batch " << batch << ": the loss is " << loss << "; training ends";
    model.StopTraining();
    return absl::OkStatus();
  }
};

class TensorBoardCallback final : public Callback {
 public:
  explicit TensorBoardCallback(std::string folder) : folder_(std::move(folder)) {}
  Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    for (const auto& [name, value] : logs) {
      const bool validation = absl::StartsWith(name, "val_");
      const std::string tag = absl::StrCat("epoch_", validation ? name.substr(4) : name);
      WEFT_ASSIGN_OR_RETURN(storage::EventFileWriter * writer,
                            Writer(validation ? "validation" : "train"));
      WEFT_RETURN_IF_ERROR(
          writer->WriteSummary(epoch, storage::ScalarSummary(tag, static_cast<float>(value))));
    }
    for (auto& [name, writer] : writers_) WEFT_RETURN_IF_ERROR(writer->Flush());
    return absl::OkStatus();
  }
  Status OnTrainEnd(Model&) override {
    for (auto& [name, writer] : writers_) WEFT_RETURN_IF_ERROR(writer->Close());
    writers_.clear();
    return absl::OkStatus();
  }

 private:
  StatusOr<storage::EventFileWriter*> Writer(const std::string& name) {
    std::unique_ptr<storage::EventFileWriter>& writer = writers_[name];
    if (writer == nullptr) {
      WEFT_ASSIGN_OR_RETURN(
          writer, storage::EventFileWriter::Create(files_, clock_, JoinPath(folder_, name), {}));
    }
    return writer.get();
  }

  const std::string folder_;
  RealFileSystem files_;
  const RealClock clock_;
  std::map<std::string, std::unique_ptr<storage::EventFileWriter>> writers_;
};

class SchedulerCallback final : public Callback {
 public:
  explicit SchedulerCallback(std::function<double(int, double)> schedule)
      : schedule_(std::move(schedule)) {}
  Status OnEpochBegin(Model& model, int epoch) override {
    WEFT_ASSIGN_OR_RETURN(const double rate, model.LearningRate());
    return model.SetLearningRate(schedule_(epoch, rate));
  }
  Status OnEpochEnd(Model& model, int, Logs& logs) override {
    WEFT_ASSIGN_OR_RETURN(const double rate, model.LearningRate());
    logs.emplace_back("learning_rate", rate);
    return absl::OkStatus();
  }

 private:
  const std::function<double(int, double)> schedule_;
};

class PlateauCallback final : public Callback {
 public:
  explicit PlateauCallback(const PlateauOptions& options)
      : options_(options), best_(options.monitor, options.min_delta) {}
  Status OnTrainBegin(Model&) override {
    waited_ = cooling_ = 0;
    best_.Reset();
    return absl::OkStatus();
  }
  Status OnEpochEnd(Model& model, int, Logs& logs) override {
    WEFT_ASSIGN_OR_RETURN(const double rate, model.LearningRate());
    const double value = best_.Of(logs);
    logs.emplace_back("learning_rate", rate);
    if (std::isnan(value)) return absl::OkStatus();
    if (cooling_ > 0) {
      --cooling_;
      waited_ = 0;
    }
    if (best_.Take(value)) {
      waited_ = 0;
      return absl::OkStatus();
    }
    if (cooling_ > 0 || ++waited_ < options_.patience || rate <= options_.min_lr) {
      return absl::OkStatus();
    }
    cooling_ = options_.cooldown;
    waited_ = 0;
    return model.SetLearningRate(std::max(rate * options_.factor, options_.min_lr));
  }

 private:
  const PlateauOptions options_;
  Best best_;
  int waited_ = 0, cooling_ = 0;
};

class CsvCallback final : public Callback {
 public:
  explicit CsvCallback(std::string path) : path_(std::move(path)) {}
  Status OnTrainBegin(Model&) override {
    text_.clear();
    return absl::OkStatus();
  }
  Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    if (text_.empty()) {
      text_ = "epoch";
      for (const auto& [name, value] : logs) absl::StrAppend(&text_, ",", name);
      text_ += "\n";
    }
    absl::StrAppend(&text_, epoch);
    for (const auto& [name, value] : logs) absl::StrAppendFormat(&text_, ",%.9g", value);
    text_ += "\n";
    RealFileSystem files;
    return WriteFileAtomically(files, path_, text_);
  }

 private:
  const std::string path_;
  std::string text_;
};

}  // namespace

CallbackPtr Progress(std::function<void(const std::string&)> show) {
  return std::make_shared<ProgressCallback>(std::move(show));
}
CallbackPtr ModelCheckpoint(const std::string& path, const CheckpointOptions& options) {
  return std::make_shared<CheckpointCallback>(path, options);
}
CallbackPtr EarlyStopping(const EarlyStoppingOptions& options) {
  return std::make_shared<EarlyStoppingCallback>(options);
}
CallbackPtr TerminateOnNaN() { return std::make_shared<NaNCallback>(); }
CallbackPtr TensorBoard(const std::string& folder) {
  return std::make_shared<TensorBoardCallback>(folder);
}
CallbackPtr LearningRateScheduler(std::function<double(int, double)> schedule) {
  return std::make_shared<SchedulerCallback>(std::move(schedule));
}
CallbackPtr ReduceLROnPlateau(const PlateauOptions& options) {
  return std::make_shared<PlateauCallback>(options);
}
CallbackPtr CSVLogger(const std::string& path) { return std::make_shared<CsvCallback>(path); }

}  // namespace weft::estimator
