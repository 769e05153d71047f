// SPDX-License-Identifier: Apache-2.0
#include "weft/c_api/handles.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/serving/model_server.h"

struct weft_server {
  std::unique_ptr<weft::serving::ModelServer> server;
};

using weft::Status;
using weft::c_api::Answer;
using weft::c_api::NotNull;

weft_error* weft_server_start(const char* model, const char* base_path, int grpc_port,
                              int rest_port, weft_server** out) {
  return Answer([&]() -> Status {
    WEFT_RETURN_IF_ERROR(NotNull(model, "names"));
    WEFT_RETURN_IF_ERROR(NotNull(base_path, "names"));
    WEFT_RETURN_IF_ERROR(NotNull(out, "results"));
    weft::serving::ModelServerOptions options{.port = grpc_port, .rest_port = rest_port};
    options.models.load.catalogue = &weft::StandardCatalogue();
    options.models.load.devices = &weft::StandardDevices();
    auto* const config = options.config.mutable_model_config_list()->add_config();
    config->set_name(model);
    config->set_base_path(base_path);
    config->set_model_platform("tensorflow");
    auto made = std::make_unique<weft_server>();
    WEFT_ASSIGN_OR_RETURN(made->server, weft::serving::ModelServer::Start(std::move(options)));
    *out = made.release();
    return absl::OkStatus();
  });
}

int weft_server_grpc_port(const weft_server* server) {
  return server == nullptr ? -1 : server->server->port();
}
int weft_server_rest_port(const weft_server* server) {
  return server == nullptr ? -1 : server->server->rest_port();
}

void weft_server_free(weft_server* server, double grace_seconds) {
  if (server == nullptr) return;
  server->server->Shutdown(absl::Seconds(grace_seconds));
  delete server;
}
