// SPDX-License-Identifier: Apache-2.0
// Errors are values: absl::Status, whose codes are TensorFlow's and gRPC's.
//   InvalidArgument   the user's graph, feed or flag is wrong
//   FailedPrecondition  right, but not now (uninitialised variable, closed session)
//   Unavailable       a peer is away: retry        Aborted  restart the step or the session
//   DataLoss          bytes are bad                Internal our bug
// Messages put static text first and values last, and name the node, file or task.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace weft {

using absl::Status;
using absl::StatusOr;

// Puts `context` in front of the message and keeps code and payloads. OK stays OK.
Status Annotate(const Status& status, absl::string_view context);

// Makers that join their arguments with absl::StrCat.
template <typename... Args>
Status InvalidArgument(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}
template <typename... Args>
Status NotFound(const Args&... args) {
  return absl::NotFoundError(absl::StrCat(args...));
}
template <typename... Args>
Status AlreadyExists(const Args&... args) {
  return absl::AlreadyExistsError(absl::StrCat(args...));
}
template <typename... Args>
Status FailedPrecondition(const Args&... args) {
  return absl::FailedPreconditionError(absl::StrCat(args...));
}
template <typename... Args>
Status OutOfRange(const Args&... args) {
  return absl::OutOfRangeError(absl::StrCat(args...));
}
template <typename... Args>
Status Unimplemented(const Args&... args) {
  return absl::UnimplementedError(absl::StrCat(args...));
}
template <typename... Args>
Status Internal(const Args&... args) {
  return absl::InternalError(absl::StrCat(args...));
}
template <typename... Args>
Status Unavailable(const Args&... args) {
  return absl::UnavailableError(absl::StrCat(args...));
}
template <typename... Args>
Status Aborted(const Args&... args) {
  return absl::AbortedError(absl::StrCat(args...));
}
template <typename... Args>
Status Cancelled(const Args&... args) {
  return absl::CancelledError(absl::StrCat(args...));
}
template <typename... Args>
Status DataLoss(const Args&... args) {
  return absl::DataLossError(absl::StrCat(args...));
}
template <typename... Args>
Status DeadlineExceeded(const Args&... args) {
  return absl::DeadlineExceededError(absl::StrCat(args...));
}
template <typename... Args>
Status ResourceExhausted(const Args&... args) {
  return absl::ResourceExhaustedError(absl::StrCat(args...));
}
template <typename... Args>
Status PermissionDenied(const Args&... args) {
  return absl::PermissionDeniedError(absl::StrCat(args...));
}

}  // namespace weft

// Returns the status of `expression` from the enclosing function unless it is OK.
#define WEFT_RETURN_IF_ERROR(expression)        \
  do {                                          \
    ::absl::Status weft_status_ = (expression); \
    if (!weft_status_.ok()) [[unlikely]]        \
      return weft_status_;                      \
  } while (false)

#define WEFT_CONCATENATE_INNER(a, b) a##b
#define WEFT_CONCATENATE(a, b) WEFT_CONCATENATE_INNER(a, b)

// WEFT_ASSIGN_OR_RETURN(auto x, F()): x is F()'s value, or its status is returned. Counted, not
// numbered by line, so that two may stand on one line, as in a macro.
#define WEFT_ASSIGN_OR_RETURN(target, expression) \
  WEFT_ASSIGN_OR_RETURN_INNER(WEFT_CONCATENATE(weft_status_or_, __COUNTER__), target, expression)
#define WEFT_ASSIGN_OR_RETURN_INNER(status_or, target, expression) \
  auto status_or = (expression);                                   \
  if (!status_or.ok()) [[unlikely]]                                \
    return ::std::move(status_or).status();                        \
  target = *::std::move(status_or)
