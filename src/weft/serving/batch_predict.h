// SPDX-License-Identifier: Apache-2.0
// Predictions for many records, by one process or the tasks of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/status.h"
#include "weft/serving/model_version.h"
#include "weft/serving/shard_leases.h"

namespace weft::serving {

struct BatchPredictOptions {
  LoadSettings load;
  std::string model;                // folder of a SavedModel, or of versions: the newest then
  std::vector<std::string> inputs;  // patterns of files: each file is a shard
  std::string output;               // folder, made if it is not there, that all tasks see
  std::string signature;            // empty: serving_default
  std::vector<std::string> output_filter;  // empty: all outputs
  int batch_size = 32;
  ShardLeaseOptions leases;
};

struct BatchPredictCounts {
  int64_t shards = 0;   // there are
  int64_t made = 0;     // by this process
  int64_t records = 0;  // in these
};

// Writes OUTPUT/part-00002-of-00010.jsonl for each file of inputs, in the order of their names: a
// line a record, as an element of "predictions" of the REST interface. A part appears whole or not
// at all, and one that is there is not made again: what was stopped goes on when it is called
// again, in any number of tasks. OUTPUT/manifest.json says what the parts are of, OUTPUT/done.json
// that all are there. Errors: FailedPrecondition if the folder holds parts of something else; for a
// record that does not fit those of Predict, with file and number.
StatusOr<BatchPredictCounts> BatchPredict(const BatchPredictOptions& options,
                                          Cancellation* cancellation);

}  // namespace weft::serving
