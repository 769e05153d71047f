// SPDX-License-Identifier: Apache-2.0
// UCX, loaded when it is first needed: it changes how a process takes signals and maps memory,
// which those that do not use it are spared.
#pragma once

#include <ucp/api/ucp.h>

#include "base/status.h"

namespace weft::transport::ucx {

struct Library {
  decltype(&ucp_init_version) init_version = nullptr;
  decltype(&ucp_cleanup) cleanup = nullptr;
  decltype(&ucp_config_read) config_read = nullptr;
  decltype(&ucp_config_modify) config_modify = nullptr;
  decltype(&ucp_config_release) config_release = nullptr;
  decltype(&ucp_worker_create) worker_create = nullptr;
  decltype(&ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&ucp_worker_query) worker_query = nullptr;
  decltype(&ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&ucp_worker_arm) worker_arm = nullptr;
  decltype(&ucp_worker_signal) worker_signal = nullptr;
  decltype(&ucp_worker_progress) worker_progress = nullptr;
  decltype(&ucp_worker_set_am_recv_handler) worker_set_am_recv_handler = nullptr;
  decltype(&ucp_ep_create) ep_create = nullptr;
  decltype(&ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&ucp_am_send_nbx) am_send_nbx = nullptr;
  decltype(&ucp_am_recv_data_nbx) am_recv_data_nbx = nullptr;
  decltype(&ucp_am_data_release) am_data_release = nullptr;
  decltype(&ucp_request_free) request_free = nullptr;
  decltype(&ucp_request_check_status) request_check_status = nullptr;
  decltype(&ucs_status_string) status_string = nullptr;
};

// Thread-safe. Unavailable where the library is missing or lacks one of these.
StatusOr<const Library*> LoadLibrary();

}  // namespace weft::transport::ucx
