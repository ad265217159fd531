#pragma once
// A filter for system calls, which the kernel takes as a program of macros and call numbers: both exist in C alone.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CSECCOMP_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CSECCOMP_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef CSECCOMP_ARCH
#define CSECCOMP_LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
// The low half of an argument: the flags and small numbers that are looked at fit in it. Both are little-endian here.
#define CSECCOMP_LOAD_LOW(argument) CSECCOMP_LOAD(args[argument])
#define CSECCOMP_RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define CSECCOMP_ALLOW(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), CSECCOMP_RETURN(SECCOMP_RET_ALLOW)
#define CSECCOMP_ERROR(number) CSECCOMP_RETURN(SECCOMP_RET_ERRNO | (number))
// Allowed where the argument has this value.
#define CSECCOMP_ALLOW_IF(name, argument, value) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), CSECCOMP_LOAD_LOW(argument), \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), CSECCOMP_RETURN(SECCOMP_RET_ALLOW), CSECCOMP_ERROR(EPERM)
// Allowed where the argument has all bits of a power of two (with), or none of it (without).
#define CSECCOMP_ALLOW_WITH(name, argument, bit) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), CSECCOMP_LOAD_LOW(argument), \
  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bit), 0, 1), CSECCOMP_RETURN(SECCOMP_RET_ALLOW), CSECCOMP_ERROR(EPERM)
#define CSECCOMP_ALLOW_WITHOUT(name, argument, bit) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), CSECCOMP_LOAD_LOW(argument), \
  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bit), 1, 0), CSECCOMP_RETURN(SECCOMP_RET_ALLOW), CSECCOMP_ERROR(EPERM)
#endif

/// Allows all threads of this process, from now on, to work with the memory, the threads and the open descriptors that
/// they have, and nothing else: every other system call fails with EPERM. Returns 0, or an error number.
static inline int cseccomp_confine(void) {
#ifndef CSECCOMP_ARCH
  return ENOSYS;
#else
  const unsigned self = (unsigned)getpid();
  struct sock_filter filter[] = {
    CSECCOMP_LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CSECCOMP_ARCH, 1, 0),
    CSECCOMP_RETURN(SECCOMP_RET_KILL_PROCESS),
    CSECCOMP_LOAD(nr),
    // Descriptors that are open.
    CSECCOMP_ALLOW(read), CSECCOMP_ALLOW(write), CSECCOMP_ALLOW(readv), CSECCOMP_ALLOW(writev),
    CSECCOMP_ALLOW(pread64), CSECCOMP_ALLOW(lseek), CSECCOMP_ALLOW(fstat), CSECCOMP_ALLOW(close), CSECCOMP_ALLOW(dup),
    CSECCOMP_ALLOW(ppoll),
#ifdef SYS_poll
    CSECCOMP_ALLOW(poll),
#endif
    CSECCOMP_ALLOW(eventfd2),
    // Memory, none of which becomes code.
    CSECCOMP_ALLOW(brk), CSECCOMP_ALLOW(munmap), CSECCOMP_ALLOW(mremap), CSECCOMP_ALLOW(madvise),
    CSECCOMP_ALLOW_WITHOUT(mmap, 2, 4 /* PROT_EXEC */), CSECCOMP_ALLOW_WITHOUT(mprotect, 2, 4),
    // Threads. The arguments of clone3 cannot be looked at; without it clone is used.
    CSECCOMP_ALLOW(futex), CSECCOMP_ALLOW_WITH(clone, 0, 0x10000 /* CLONE_THREAD */),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1), CSECCOMP_ERROR(ENOSYS),
    CSECCOMP_ALLOW(set_robust_list), CSECCOMP_ALLOW(rseq), CSECCOMP_ALLOW(sched_yield), CSECCOMP_ALLOW(gettid),
    CSECCOMP_ALLOW(sched_getaffinity), CSECCOMP_ALLOW(getcpu), CSECCOMP_ALLOW_IF(prctl, 0, 15 /* PR_SET_NAME */),
    CSECCOMP_ALLOW(exit), CSECCOMP_ALLOW(exit_group),
    // Signals to itself.
    CSECCOMP_ALLOW(rt_sigaction), CSECCOMP_ALLOW(rt_sigprocmask), CSECCOMP_ALLOW(rt_sigreturn),
    CSECCOMP_ALLOW(sigaltstack), CSECCOMP_ALLOW(restart_syscall), CSECCOMP_ALLOW(getpid),
    CSECCOMP_ALLOW_IF(tgkill, 0, self),
    // Clocks, random numbers, and what the machine is like.
    CSECCOMP_ALLOW(clock_gettime), CSECCOMP_ALLOW(clock_getres), CSECCOMP_ALLOW(clock_nanosleep),
    CSECCOMP_ALLOW(nanosleep), CSECCOMP_ALLOW(gettimeofday), CSECCOMP_ALLOW(getrandom), CSECCOMP_ALLOW(getrusage),
    CSECCOMP_ALLOW(uname), CSECCOMP_ALLOW(sysinfo), CSECCOMP_ALLOW_IF(prlimit64, 0, 0),
    // glibc asks in this way what a descriptor is. A path cannot be told from none: sizes and times of files can be seen.
    CSECCOMP_ALLOW_WITH(newfstatat, 3, 0x1000 /* AT_EMPTY_PATH */),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5), CSECCOMP_LOAD_LOW(1),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, F_SETFL, 2, 0), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, F_GETFD, 0, 1),
    CSECCOMP_RETURN(SECCOMP_RET_ALLOW), CSECCOMP_ERROR(EPERM),
    CSECCOMP_ERROR(EPERM),
  };
  const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  // Also the threads that libraries have started.
  long failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  return failed < 0 ? errno : failed > 0 ? EBUSY : 0;
#endif
}

/// Tries the number `index` of what must not be possible: `error` is 0 where it was. Returns what it is, NULL at the end.
static inline const char *cseccomp_attempt(int index, int *error) {
  const char *name = NULL;
  long result = 0;
  errno = 0;
  switch (index) {
  case 0: name = "read a file", result = syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY); break;
  case 1: name = "read a file of this process", result = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY); break;
  case 2: name = "make a file", result = syscall(SYS_openat, AT_FDCWD, "/tmp", 020200000 | O_RDWR, 0600); break;
  case 3: name = "list a folder", result = syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY); break;
  case 4: name = "open a socket", result = syscall(SYS_socket, 2 /* AF_INET */, 1, 0); break;
  case 5: name = "open a local socket", result = syscall(SYS_socket, 1 /* AF_UNIX */, 1, 0); break;
  case 6:
    name = "start a process", result = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (result == 0) _exit(0);
    break;
  case 7: name = "signal another process", result = syscall(SYS_kill, getppid(), 0); break;
  case 8: name = "trace a process", result = syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, getppid(), 0, 0); break;
  case 9: name = "make memory executable", result = syscall(SYS_mmap, 0, 4096, 7, 0x22, -1, 0); break;
  case 10: name = "remove a file", result = syscall(SYS_unlinkat, AT_FDCWD, "/nonexistent/file", 0); break;
  case 11: {
    char *const words[] = {(char *)"true", NULL};
    name = "run a program", result = syscall(SYS_execve, "/bin/true", words, NULL);
    break;
  }
  default: return NULL;
  }
  *error = result < 0 ? errno : 0;
  return name;
}
