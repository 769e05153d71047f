// SPDX-License-Identifier: Apache-2.0
// All that a program needs to run ops one at a time, with gradients and functions that are traced;
// weft.h has what lies below.
#pragma once

#include "base/status.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/imperative/array.h"
#include "weft/imperative/runtime.h"
#include "weft/imperative/tape.h"
#include "weft/imperative/traced_function.h"
#include "weft/ops/catalogue.h"
