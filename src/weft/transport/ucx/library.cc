// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/ucx/library.h"

#include <csignal>
#include <string>
#include <type_traits>

#include <dlfcn.h>

namespace weft::transport::ucx {
namespace {

// The handlers that UCX sets as it is loaded write to the terminal and wait for a debugger.
void TakeBackSignals(void* handle) {
  const auto disable = reinterpret_cast<void (*)(int)>(dlsym(handle, "ucs_debug_disable_signal"));
  if (disable == nullptr) return;
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) disable(signal);
}

Status Load(Library* library) {
  void* const handle = dlopen(WEFT_UCP_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Unavailable("UCX is not on this machine (Debian: libucx0): ", dlerror());
  }
  TakeBackSignals(handle);
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(handle, name));
    if (*function == nullptr) missing = name;
  };
  find("ucp_init_version", &library->init_version);
  find("ucp_cleanup", &library->cleanup);
  find("ucp_config_read", &library->config_read);
  find("ucp_config_modify", &library->config_modify);
  find("ucp_config_release", &library->config_release);
  find("ucp_worker_create", &library->worker_create);
  find("ucp_worker_destroy", &library->worker_destroy);
  find("ucp_worker_query", &library->worker_query);
  find("ucp_worker_release_address", &library->worker_release_address);
  find("ucp_worker_get_efd", &library->worker_get_efd);
  find("ucp_worker_arm", &library->worker_arm);
  find("ucp_worker_signal", &library->worker_signal);
  find("ucp_worker_progress", &library->worker_progress);
  find("ucp_worker_set_am_recv_handler", &library->worker_set_am_recv_handler);
  find("ucp_ep_create", &library->ep_create);
  find("ucp_ep_close_nbx", &library->ep_close_nbx);
  find("ucp_am_send_nbx", &library->am_send_nbx);
  find("ucp_am_recv_data_nbx", &library->am_recv_data_nbx);
  find("ucp_am_data_release", &library->am_data_release);
  find("ucp_request_free", &library->request_free);
  find("ucp_request_check_status", &library->request_check_status);
  find("ucs_status_string", &library->status_string);
  if (missing.empty()) return absl::OkStatus();
  return Unavailable("UCX of this machine lacks ", missing, ", expected 1.13 or newer");
}

}  // namespace

StatusOr<const Library*> LoadLibrary() {
  static Library* const library = new Library();
  static const Status* const loaded = new Status(Load(library));
  WEFT_RETURN_IF_ERROR(*loaded);
  return library;
}

}  // namespace weft::transport::ucx
