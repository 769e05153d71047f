// SPDX-License-Identifier: Apache-2.0
// Jobs as people write them, by chance.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/simulation/random.h"
#include "platform/simulation/setting.h"
#include "platform/store/resource.h"

namespace weft::platform::simulation {

// The kind that a job of that name has.
const ResourceType& TypeOfJob(const std::string& name, const Setting& setting);

// A TFJob of either API version, or a Tensorflow. `may_jump`: with limits of time, which need
// leaps.
Json DrawJob(const std::string& name, const Setting& setting, bool may_jump, Random* random);

// Of any kind, as the job says them.
int64_t WorkersOf(const Json& job);
int64_t ServersOf(const Json& job);
bool IsSuspended(const Json& job);
// The first API version knows no suspension.
bool MaySuspend(const Json& job);
void SetWorkers(int64_t count, Json* job);
void SetServers(int64_t count, Json* job);  // 0: the job has no parameter server
void SetSuspended(bool is_suspended, Json* job);

}  // namespace weft::platform::simulation
