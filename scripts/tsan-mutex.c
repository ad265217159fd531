// Tells the thread sanitizer about contended locks of Swift's `Mutex`.
//
// The fast path of the mutex is compiled into our code, so the sanitizer sees it. The slow path is in the runtime,
// which is not instrumented. There the kernel passes the lock from one thread to the next (FUTEX_LOCK_PI), and the
// sanitizer reports accesses after that as a race. This library is loaded before the runtime and replaces both
// functions of the slow path: each replacement calls the original and reports the synchronization. Nothing is
// suppressed. See Synchronization/Mutex/LinuxImpl.swift of Swift 6; for glibc.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// These are null in programs without the sanitizer, which inherit LD_PRELOAD.
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFT void lock_slow(uint32_t thread, SELF void *mutex) {
  SWIFT void (*next)(uint32_t, SELF void *) = dlsym(RTLD_NEXT, LOCK);
  next(thread, mutex);
  if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT void unlock_slow(SELF void *mutex) __asm__(UNLOCK);
SWIFT void unlock_slow(SELF void *mutex) {
  SWIFT void (*next)(SELF void *) = dlsym(RTLD_NEXT, UNLOCK);
  if (__tsan_release) __tsan_release(mutex);
  next(mutex);
}
