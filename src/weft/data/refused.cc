// SPDX-License-Identifier: Apache-2.0
// Datasets that a server cannot have, each with the reason.
#include <string>
#include <utility>

#include "weft/data/dataset_op.h"

namespace weft::data::refused {
namespace {

StatusOr<DatasetRef> Service(KernelContext& c) {
  return Unimplemented(c.call().op(),
                       " is not supported: there is no tf.data service. Every task "
                       "reads its own dataset; use shard().");
}

StatusOr<DatasetRef> Library(KernelContext& c) {
  return Unimplemented(c.call().op(),
                       " is not supported: this server is built without the library "
                       "that reads such files. Convert them to TFRecord files.");
}

void RegisterService(Catalogue& catalogue) {
  AddDataset(
      catalogue,
      {.name = "DataServiceDataset",
       .doc = "Refused: there is no tf.data service.",
       .inputs = {"dataset_id: int64", "processing_mode: string", "address: string",
                  "protocol: string", "job_name: string", "max_outstanding_requests: int64",
                  "iteration_counter: resource"},
       .attrs = {"task_refresh_interval_hint_ms: int = -1", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "data_transfer_protocol: string = ''",
                 "target_workers: string = 'AUTO'", "cross_trainer_cache_options: string = ''"},
       .is_stateful = true,
       .make = Service});
  AddDataset(
      catalogue,
      {.name = "DataServiceDatasetV2",
       .doc = "Refused: there is no tf.data service.",
       .inputs = {"dataset_id: int64", "processing_mode: string", "address: string",
                  "protocol: string", "job_name: string", "consumer_index: int64",
                  "num_consumers: int64", "max_outstanding_requests: int64",
                  "iteration_counter: resource"},
       .attrs = {"task_refresh_interval_hint_ms: int = -1", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "data_transfer_protocol: string = ''",
                 "target_workers: string = 'AUTO'", "cross_trainer_cache_options: string = ''"},
       .is_stateful = true,
       .make = Service});
  AddDataset(catalogue,
             {.name = "DataServiceDatasetV3",
              .doc = "Refused: there is no tf.data service.",
              .inputs = {"dataset_id: int64", "processing_mode: string", "address: string",
                         "protocol: string", "job_name: string", "consumer_index: int64",
                         "num_consumers: int64", "max_outstanding_requests: int64",
                         "iteration_counter: resource"},
              .attrs = {"task_refresh_interval_hint_ms: int = -1", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "data_transfer_protocol: string = ''",
                        "target_workers: string = 'AUTO'", "uncompress: bool = false",
                        "uncompress_fn: func", "cross_trainer_cache_options: string = ''"},
              .is_stateful = true,
              .make = Service});
  AddDataset(catalogue,
             {.name = "DataServiceDatasetV4",
              .doc = "Refused: there is no tf.data service.",
              .inputs = {"dataset_id: string", "processing_mode: string", "address: string",
                         "protocol: string", "job_name: string", "consumer_index: int64",
                         "num_consumers: int64", "max_outstanding_requests: int64",
                         "iteration_counter: resource"},
              .attrs = {"task_refresh_interval_hint_ms: int = -1", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "data_transfer_protocol: string = ''",
                        "target_workers: string = 'AUTO'", "uncompress: bool = false",
                        "uncompress_fn: func", "cross_trainer_cache_options: string = ''"},
              .is_stateful = true,
              .make = Service});
}

void RegisterLibraries(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "LMDBDataset",
              .doc = "Refused: LMDB files are not read.",
              .inputs = {"filenames: string"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .is_stateful = true,
              .make = Library});
  AddDataset(catalogue,
             {.name = "ExperimentalLMDBDataset",
              .doc = "Refused: LMDB files are not read.",
              .inputs = {"filenames: string"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .is_stateful = true,
              .make = Library});
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterService(catalogue);
  RegisterLibraries(catalogue);
}

}  // namespace weft::data::refused
