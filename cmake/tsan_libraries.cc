// SPDX-License-Identifier: Apache-2.0
// The system's Abseil is built without ThreadSanitizer, which therefore does not see that
// absl::Mutex orders anything. The linker sends our calls through here (--wrap, cmake/tsan.cmake),
// where they are told. Conditions run on whichever thread holds the lock, inside Abseil: their
// reads are not checked.
#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {

void __tsan_acquire(void* at);
void __tsan_release(void* at);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);

}  // extern "C"

namespace {

class InsideAbseil {
 public:
  InsideAbseil() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~InsideAbseil() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

}  // namespace

// WEFT_TOLD(real name, result, parameters, arguments, what to release first, what to acquire after)
#define WEFT_TOLD(name, result, parameters, arguments, release, acquire) \
  extern "C" result __real_##name parameters;                            \
  extern "C" result __wrap_##name parameters {                           \
    release;                                                             \
    struct Acquire {                                                     \
      void* at;                                                          \
      ~Acquire() {                                                       \
        if (at != nullptr) __tsan_acquire(at);                           \
      }                                                                  \
    } acquire_after{acquire};                                            \
    InsideAbseil inside;                                                 \
    return __real_##name arguments;                                      \
  }

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

#define WEFT_LOCKS(name, result, parameters, arguments) \
  WEFT_TOLD(name, result, parameters, arguments, (void)0, mu)
#define WEFT_UNLOCKS(name) WEFT_TOLD(name, void, (Mutex * mu), (mu), __tsan_release(mu), nullptr)
#define WEFT_WAITS(name, result, parameters, arguments) \
  WEFT_TOLD(name, result, parameters, arguments, __tsan_release(mu), mu)

WEFT_LOCKS(_ZN4absl7debian35Mutex4LockEv, void, (Mutex * mu), (mu))
WEFT_LOCKS(_ZN4absl7debian35Mutex7TryLockEv, bool, (Mutex * mu), (mu))
WEFT_LOCKS(_ZN4absl7debian35Mutex10ReaderLockEv, void, (Mutex * mu), (mu))
WEFT_LOCKS(_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE, void,
           (Mutex * mu, const Condition& c), (mu, c))
WEFT_UNLOCKS(_ZN4absl7debian35Mutex6UnlockEv)
WEFT_UNLOCKS(_ZN4absl7debian35Mutex12ReaderUnlockEv)
WEFT_WAITS(_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE, void, (Mutex * mu, const Condition& c),
           (mu, c))
WEFT_WAITS(_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE, bool,
           (Mutex * mu, const Condition& c, Duration d), (mu, c, d))
WEFT_WAITS(_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, bool,
           (Mutex * mu, const Condition& c, Time t), (mu, c, t))
WEFT_WAITS(_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE, void, (CondVar * cv, Mutex* mu), (cv, mu))
WEFT_WAITS(_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE, bool,
           (CondVar * cv, Mutex* mu, Duration d), (cv, mu, d))
WEFT_WAITS(_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE, bool,
           (CondVar * cv, Mutex* mu, Time t), (cv, mu, t))
WEFT_TOLD(_ZN4absl7debian312Notification6NotifyEv, void, (Notification * mu), (mu),
          __tsan_release(mu), nullptr)
WEFT_LOCKS(_ZNK4absl7debian312Notification19WaitForNotificationEv, void, (Notification * mu), (mu))
WEFT_LOCKS(_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE, bool,
           (Notification * mu, Duration d), (mu, d))
WEFT_LOCKS(_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE, bool,
           (Notification * mu, Time t), (mu, t))

// Status counts its owners inside Abseil too: one at a time, so that the last one sees what the
// others read.
Mutex& StatusOwners() {
  static Mutex* const mutex = new Mutex;
  return *mutex;
}
WEFT_TOLD(_ZN4absl7debian36Status15UnrefNonInlinedEm, void, (uintptr_t rep), (rep),
          absl::MutexLock one(&StatusOwners()), nullptr)

// gRPC too is built without it: what its threads hand to one another looks unordered. Reports of
// accesses that it makes, or that its headers make for it, are left out.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libupb.so\n"
         "race:libgrpc.so\n"
         "race:libgrpc++.so\n"
         "race:libupb.so\n"
         "race:grpc::\n"
         "race:grpc_core::\n";
}
