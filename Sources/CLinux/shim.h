#pragma once
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <linux/stat.h>

// glibc has no wrapper for openat2, and shows renameat2 only with _GNU_SOURCE, which the Glibc module is built without.
static inline int fb_openat2(int folder, const char *path, int flags, unsigned mode, unsigned long long resolve) {
  struct open_how how = {.flags = (unsigned long long)flags, .mode = mode, .resolve = resolve};
  return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}
static inline int fb_rename_noreplace(int from, const char *old_name, int to, const char *new_name) {
  return (int)syscall(SYS_renameat2, from, old_name, to, new_name, 1u /* RENAME_NOREPLACE */);
}
static inline unsigned long long fb_resolve_beneath(void) { return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS; }
// Moves bytes between a pipe and a file or socket; `offset` counts for a file only (-1: it has none).
static inline long fb_splice(int from, int to, long long offset, unsigned long count) {
  return syscall(SYS_splice, from, NULL, to, offset < 0 ? NULL : &offset, count, 1u /* MOVE */ | 2u /* NONBLOCK */);
}
static inline long fb_copy_file_range(int from, long long start, int to, long long offset, unsigned long count) {
  return syscall(SYS_copy_file_range, from, &start, to, &offset, count, 0u);
}
// When a file was made, by its name in a folder, or the open file itself where the name is empty. 0, or -1 where the file
// system does not tell.
static inline int fb_birth_time(int folder, const char *name, long *seconds, unsigned *nanoseconds) {
  struct statx told;
  int flags = 0x100 /* AT_SYMLINK_NOFOLLOW */ | 0x1000 /* AT_EMPTY_PATH */;
  if (syscall(SYS_statx, folder, name, flags, STATX_BTIME, &told) != 0 || !(told.stx_mask & STATX_BTIME)) return -1;
  *seconds = (long)told.stx_btime.tv_sec;
  *nanoseconds = told.stx_btime.tv_nsec;
  return 0;
}
static inline int fb_set_pipe_size(int pipe, int size) { return fcntl(pipe, 1031 /* F_SETPIPE_SZ */, size); }
// Bytes of a TCP socket that came in order, and those of ours that were acknowledged; -1 where the kernel does not tell.
// The beginning of struct tcp_info is Linux's interface; glibc's own header ends before these two.
static inline long long fb_tcp_moved(int socket) {
  struct { char before[120]; unsigned long long acknowledged, received; } info;
  unsigned size = sizeof info;
  if (syscall(SYS_getsockopt, socket, 6 /* IPPROTO_TCP */, 11 /* TCP_INFO */, &info, &size) != 0) return -1;
  if (size < sizeof info) return -1;
  return (long long)(info.acknowledged + info.received);
}
static inline int fb_gettid(void) { return (int)syscall(SYS_gettid); }
static inline void fb_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
static inline int fb_accept_cloexec(int listener) {
  return (int)syscall(SYS_accept4, listener, NULL, NULL, 02000000 /* SOCK_CLOEXEC */);
}
static inline int fb_accept_at_once(int listener) {
  return (int)syscall(SYS_accept4, listener, NULL, NULL, 02004000 /* SOCK_CLOEXEC | SOCK_NONBLOCK */);
}
// Kind and id of the file system that a descriptor, or a path where that is -1, is on. 0, or -1 where it is not told.
static inline int fb_file_system(int file, const char *path, unsigned long long *kind, unsigned long long *id) {
  struct statfs told;
  if ((file >= 0 ? fstatfs(file, &told) : statfs(path, &told)) != 0) return -1;
  const unsigned *halves = (const unsigned *)&told.f_fsid;
  *kind = (unsigned)told.f_type;
  *id = (unsigned long long)halves[1] << 32 | halves[0];
  return 0;
}
static inline int fb_o_tmpfile(void) { return __O_TMPFILE; }
static inline int fb_punch_hole(int file, long long start, long long length) {
  return (int)syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, length);
}
static inline int fb_has_no_lease(int file, int kind) {
  fcntl(file, 10 /* F_SETSIG */, 23 /* SIGURG */);
  if (fcntl(file, 1024 /* F_SETLEASE */, kind) != 0) return errno == EAGAIN ? 1 : -1;
  fcntl(file, 1024, F_UNLCK);
  return 0;
}
// Whether someone has the file open for writing, or mapped: then the kernel gives no lease on it. 1: yes; 0: no; -1: the
// kernel does not tell, as of the files of other users. The lease is given back at once. Whoever opens the file for
// writing in between has the kernel send SIGURG, which does nothing, instead of SIGIO, which would end the program.
static inline int fb_is_written(int file) { return fb_has_no_lease(file, F_RDLCK); }
// The same, whether someone has the file open for whatever purpose, besides this one descriptor.
static inline int fb_is_open_elsewhere(int file) { return fb_has_no_lease(file, F_WRLCK); }
// Has the kernel write back what is dirty in a range of a file and wait for that, also what was dirtied through a
// mapping. 0, or an errno.
static inline int fb_write_back(int file, long long start, long long length) {
  // WAIT_BEFORE, WRITE, WAIT_AFTER
  return syscall(SYS_sync_file_range, file, start, length, 7u) == 0 ? 0 : errno;
}
// Swift 6 does not allow the use of a C variable that can change. No thread of this package changes the environment.
extern char **__environ;
static inline char **fb_environment(void) { return __environ; }
