// SPDX-License-Identifier: Apache-2.0
// What happens around batches and epochs of Fit.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "weft/estimator/model.h"

namespace weft::estimator {

// Called in order by Fit, on its thread. All parts are optional; an error ends Fit.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual Status OnTrainBegin(Model&) { return absl::OkStatus(); }
  virtual Status OnEpochBegin(Model&, int /*epoch*/) { return absl::OkStatus(); }
  // Numbers so far in this epoch; the loss of this batch alone is `batch_loss`.
  virtual Status OnBatchEnd(Model&, int64_t /*batch*/, double /*batch_loss*/, const Logs&) {
    return absl::OkStatus();
  }
  // May add to the numbers that the history keeps.
  virtual Status OnEpochEnd(Model&, int /*epoch*/, Logs&) { return absl::OkStatus(); }
  virtual Status OnTrainEnd(Model&) { return absl::OkStatus(); }
};
using CallbackPtr = std::shared_ptr<Callback>;

// One line an epoch on stdout, "Epoch 1/5 loss 0.2314 accuracy 0.93 val_loss ...".
CallbackPtr Progress(std::function<void(const std::string&)> show = nullptr);

// What is watched: a number of the logs, and whether less or more of it is better ("auto": more for
// accuracies, AUC, precision, recall and F1).
struct Monitor {
  std::string name = "val_loss";
  std::string mode = "auto";  // "min", "max"
};

// Saves to `path`, in which {epoch} (from 1, two digits) and {name of a number} are filled in: a
// whole model for a name in .keras or .h5, weights for .weights.h5.
struct CheckpointOptions {
  Monitor monitor = {};
  bool save_best_only = false;
};
CallbackPtr ModelCheckpoint(const std::string& path, const CheckpointOptions& options = {});

// Ends Fit after `patience` epochs without getting better by more than `min_delta`.
struct EarlyStoppingOptions {
  Monitor monitor = {};
  double min_delta = 0;
  int patience = 0;
  double baseline = 0;
  bool has_baseline = false;
  bool restore_best_weights = false;
  int start_from_epoch = 0;
};
CallbackPtr EarlyStopping(const EarlyStoppingOptions& options = {});

// Ends Fit as soon as a loss is not finite.
CallbackPtr TerminateOnNaN();

// Event files in `folder`/train and `folder`/validation, "epoch_loss" and so on, as Keras writes.
CallbackPtr TensorBoard(const std::string& folder);

// The rate of each epoch, from 0, given the one before.
CallbackPtr LearningRateScheduler(std::function<double(int epoch, double rate)> schedule);

// Multiplies the rate by `factor` after `patience` epochs without getting better.
struct PlateauOptions {
  Monitor monitor = {};
  double factor = 0.1;
  int patience = 10;
  double min_delta = 1e-4;
  int cooldown = 0;
  double min_lr = 0;
};
CallbackPtr ReduceLROnPlateau(const PlateauOptions& options = {});

// One line an epoch in a file, values separated by commas.
CallbackPtr CSVLogger(const std::string& path);

}  // namespace weft::estimator
