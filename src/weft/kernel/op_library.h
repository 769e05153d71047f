// SPDX-License-Identifier: Apache-2.0
// Ops in a shared library that is loaded at run time.
#pragma once

#include <string>
#include <vector>

#include "absl/base/config.h"

#include "base/status.h"
#include "weft/kernel/build_id.h"
#include "weft/kernel/op_spec.h"

#define WEFT_TEXT_OF(x) #x
#define WEFT_TEXT_OF_VALUE(x) WEFT_TEXT_OF(x)
#ifdef __SANITIZE_ADDRESS__
#define WEFT_BUILD_SANITIZER ", address sanitizer"
#elif defined(__SANITIZE_THREAD__)
#define WEFT_BUILD_SANITIZER ", thread sanitizer"
#else
#define WEFT_BUILD_SANITIZER ""
#endif
// What a library and the program that loads it must have in common: weft's headers, the compiler,
// the C++ library's and Abseil's binary interface.
#define WEFT_BUILD                                                                      \
  "headers " WEFT_HEADERS_ID ", compiler " __VERSION__                                  \
  " (C++ ABI " WEFT_TEXT_OF_VALUE(__GXX_ABI_VERSION) "/" WEFT_TEXT_OF_VALUE(            \
      _GLIBCXX_USE_CXX11_ABI) "), Abseil " WEFT_TEXT_OF_VALUE(ABSL_LTS_RELEASE_VERSION) \
      WEFT_BUILD_SANITIZER

// Stands once in an op library, outside of namespaces: `register_ops` adds its ops to the
// weft::Catalogue& that it is given.
#define WEFT_OP_LIBRARY(register_ops)                                                       \
  extern "C" {                                                                              \
  __attribute__((visibility("default"), used)) extern const char weft_op_library_build[] =  \
      "weft op library: " WEFT_BUILD;                                                       \
  __attribute__((visibility("default"))) void weft_op_library_register(weft::Catalogue* c); \
  }                                                                                         \
  void weft_op_library_register(weft::Catalogue* c) { register_ops(*c); }

namespace weft {

// Adds the ops of the shared library at `path` to `catalogue` and gives their names. The library
// stays loaded as long as the process runs; its undefined names are weft's in this program, which
// exports them (link it with -rdynamic, or against libweft.so). Errors name the file and leave
// `catalogue` as it was:
// - NotFound, PermissionDenied: no such file, or it cannot be read
// - FailedPrecondition: built against other headers or by another compiler; nothing of it has run
// - InvalidArgument: no op library, an op that exists already, a signature or kernel that is wrong
// - Internal: it crashed or hung while it was loaded; a child process tries that first
// To be called before `catalogue` is used, and before other threads run.
StatusOr<std::vector<std::string>> LoadOpLibrary(const std::string& path, Catalogue* catalogue);

}  // namespace weft
