// SPDX-License-Identifier: Apache-2.0
// Templates as Go's text/template writes them, as far as those of experiments in version v1alpha3
// go: {{.Field}}, {{range}}, {{with}}, {{if}}, {{else}}, {{end}}, comments, and dashes that take
// white space away.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// `data` is what the dot stands for. InvalidArgument names the action that was not understood or
// the field that is not there.
StatusOr<std::string> RenderGoTemplate(absl::string_view text, const Json& data);

}  // namespace weft::platform
