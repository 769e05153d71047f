// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/data_carrier.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/transport/rdma_adapters.h"
#include "weft/transport/ucx/endpoint.h"

namespace weft::cluster {
namespace {

CarrierChoice Tcp(absl::string_view why) {
  return {false, absl::StrCat("Tensors between tasks travel by TCP: ", why)};
}

CarrierChoice Ucx(absl::string_view why) {
  return {true, absl::StrCat("Tensors between tasks travel by UCX: ", why)};
}

}  // namespace

StatusOr<CarrierChoice> ChooseCarrier(const CarrierFacts& facts) {
  const std::string adapters = absl::StrJoin(facts.adapters, ", ");
  if (facts.wish == "tcp") return Tcp("--transport says so");
  if (facts.wish == "ucx") {
    if (facts.needs_tls) {
      return FailedPrecondition(
          "--transport ucx: UCX has no TLS, and the tasks of this job demand it; take --transport "
          "tcp, or --insecure on a network that only the job reaches");
    }
    WEFT_RETURN_IF_ERROR(Annotate(facts.ucx, "--transport ucx"));
    if (facts.adapters.empty()) {
      return Ucx(
          "--transport says so, though no RDMA adapter with an active port is here; what it "
          "takes instead, UCX_TLS decides");
    }
    return Ucx(absl::StrCat("--transport says so, adapters ", adapters));
  }
  if (!facts.wish.empty() && facts.wish != "auto") {
    return InvalidArgument("--transport is '", facts.wish, "', expected auto, tcp or ucx");
  }
  if (facts.adapters.empty()) return Tcp("no RDMA adapter with an active port is here");
  if (facts.needs_tls) {
    return Tcp(absl::StrCat("the tasks of this job demand TLS, which UCX does not have, so that ",
                            adapters, " is not used"));
  }
  if (!facts.ucx.ok()) {
    return Tcp(absl::StrCat(adapters, " is not used: ", facts.ucx.message()));
  }
  return Ucx(absl::StrCat("RDMA adapters ", adapters));
}

StatusOr<CarrierChoice> ChooseCarrier(const std::string& wish, bool needs_tls) {
  CarrierFacts facts{.wish = wish, .needs_tls = needs_tls};
  facts.adapters = transport::ActiveRdmaAdapters();
  // The library is loaded only where it may be used.
  const bool may_use = wish == "ucx" || (wish != "tcp" && !facts.adapters.empty());
  if (may_use && !needs_tls) facts.ucx = transport::ucx::IsThere();
  return ChooseCarrier(facts);
}

}  // namespace weft::cluster
