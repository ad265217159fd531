#pragma once
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

// glibc has no wrapper for openat2, and shows renameat2 only with _GNU_SOURCE, which the Glibc module is built without.
static inline int fb_openat2(int folder, const char *path, int flags, unsigned mode, unsigned long long resolve) {
  struct open_how how = {.flags = (unsigned long long)flags, .mode = mode, .resolve = resolve};
  return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}
static inline int fb_rename_noreplace(int from, const char *old_name, int to, const char *new_name) {
  return (int)syscall(SYS_renameat2, from, old_name, to, new_name, 1u /* RENAME_NOREPLACE */);
}
static inline unsigned long long fb_resolve_beneath(void) { return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS; }
static inline int fb_gettid(void) { return (int)syscall(SYS_gettid); }
static inline void fb_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
