// SPDX-License-Identifier: Apache-2.0
// The text file `checkpoint` of a folder: which checkpoints there are and which is the newest.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"

namespace weft::storage {

// Paths are prefixes of bundles, as this process opens them: read ones are joined to the folder.
struct CheckpointState {
  std::string model_checkpoint_path;                    // the newest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first
  // Seconds since 1970; one a path, or none.
  std::vector<double> all_model_checkpoint_timestamps;
  double last_preserved_timestamp = 0;
};

// Replaces the file in one step. Paths under `folder` are written relative to it, so that the
// folder may move. InvalidArgument unless there are as many timestamps as paths, or none.
Status WriteCheckpointState(FileSystem& files, const std::string& folder,
                            const CheckpointState& state,
                            const std::string& file_name = "checkpoint");

// NotFound if there is no such file, DataLoss if it is malformed.
StatusOr<CheckpointState> ReadCheckpointState(FileSystem& files, const std::string& folder,
                                              const std::string& file_name = "checkpoint");

// The prefix of the newest checkpoint whose index is there. NotFound if none.
StatusOr<std::string> LatestCheckpoint(FileSystem& files, const std::string& folder,
                                       const std::string& file_name = "checkpoint");

}  // namespace weft::storage
