// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/dnnl_library.h"

#include <type_traits>

#include <dlfcn.h>
#include <dnnl.h>

namespace weft {
namespace {

static_assert(std::is_same_v<dnnl_dim_t, int64_t>);

struct Library {
  DnnlSgemm sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  Library() {
    void* handle = dlopen(WEFT_DNNL_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
    sgemm = reinterpret_cast<DnnlSgemm>(dlsym(handle, "dnnl_sgemm"));
    // From the OpenMP runtime that came with it.
    set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
  }
};

}  // namespace

DnnlSgemm LoadDnnlSgemm() {
  static const Library* const library = new Library();
  thread_local const bool is_single = [] {
    if (library->set_threads != nullptr) library->set_threads(1);
    return true;
  }();
  return is_single ? library->sgemm : nullptr;
}

}  // namespace weft
