// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools share: windows along the axes between the batch and the channels.
#pragma once

#include <string>
#include <vector>

#include "weft/estimator/layer_call.h"

namespace weft::estimator {

// An attribute of an op over the batch, the sizes and the channels. Of one size it gets another 1
// before it, as 1-D windows run as 2-D ones.
std::vector<int64_t> WholeWindow(const std::vector<int64_t>& sizes);
// "VALID" or "SAME"; InvalidArgument for another padding.
StatusOr<std::string> PaddingAttr(const std::string& padding);
// [batch, steps, channels] as [batch, 1, steps, channels], and back.
Endpoint AddHeight(GraphBuilder& b, Endpoint x);
Endpoint DropHeight(GraphBuilder& b, Endpoint x);

}  // namespace weft::estimator
