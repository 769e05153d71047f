// SPDX-License-Identifier: Apache-2.0
// All that a program needs to build, train, save and run graphs.
#pragma once

#include "base/status.h"
#include "weft/api/ops.h"
#include "weft/cluster/grpc_session.h"
#include "weft/cluster/server.h"
#include "weft/graph/import.h"
#include "weft/kernel/op_kernel.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/catalogue.h"
#include "weft/session/session.h"
#include "weft/train/embedding.h"
#include "weft/train/gradients.h"
#include "weft/train/hooks.h"
#include "weft/train/layers.h"
#include "weft/train/monitored_session.h"
#include "weft/train/optimizer.h"
#include "weft/train/program.h"
#include "weft/train/saver.h"
#include "weft/train/sync_replicas.h"
#include "weft/train/task.h"
