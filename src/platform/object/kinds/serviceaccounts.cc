// SPDX-License-Identifier: Apache-2.0
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::serviceaccounts {

KindSpec Spec() {
  return KindSpec("", "v1", "serviceaccounts", "ServiceAccount").ShortNames({"sa"});
}

}  // namespace weft::platform::kinds::serviceaccounts
