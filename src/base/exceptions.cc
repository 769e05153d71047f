// SPDX-License-Identifier: Apache-2.0
#include "base/exceptions.h"

#include <exception>
#include <new>
#include <stdexcept>

namespace weft {

Status StatusOfException() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("Out of memory: more was asked for than there is");
  } catch (const std::length_error& e) {
    return ResourceExhausted("Out of memory: more was asked for than can be (", e.what(), ")");
  } catch (const std::exception& e) {
    return Internal("An exception was thrown: ", e.what());
  } catch (...) {
    return Internal("An exception of an unknown type was thrown");
  }
}

}  // namespace weft
