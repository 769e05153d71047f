// SPDX-License-Identifier: Apache-2.0
// The MasterService of TensorFlow's clients, over a Master.
#pragma once

#include "weft/cluster/grpc_service.h"
#include "weft/cluster/master.h"

namespace weft::cluster {

// Adds the ten methods under "/tensorflow.MasterService/". `master` must outlive the server.
void AddMasterMethods(Master* master, MethodTable* methods);

}  // namespace weft::cluster
