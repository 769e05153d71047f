// SPDX-License-Identifier: Apache-2.0
// The folder that a trial leaves its checkpoints in, on a volume that all trials of an experiment
// share: one that goes on from another one finds a copy of that one's there.
#pragma once

#include <string>

#include "base/status.h"
#include "net/json.h"
#include "platform/object/experiment.h"
#include "platform/object/trial_template.h"

namespace weft::platform {

// Where programs of trials find it: Katib's setting suggestion_trial_dir. Empty: nowhere.
std::string CheckpointFolder(const ExperimentAlgorithm& algorithm);

// The claim of the volume, by Katib's name for it; one of that name that is there already serves as
// it is. Belongs to nobody.
Json CheckpointClaim(const std::string& experiment, const ExperimentAlgorithm& algorithm);

// Puts the folder into the primary container, and in front of it a container that copies what
// `parent` (a trial's name; empty: none) has left. InvalidArgument without such a container.
Status MountCheckpoints(const Experiment& experiment, const TrialIdentity& identity,
                        const std::string& parent, Json* object);

}  // namespace weft::platform
