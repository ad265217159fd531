// Memory, strings, numbers, processes and threads: mmap(2), string(3), stdlib(3), math(3), pthread(3), getrlimit(2), signal(3).
#pragma once
#include <darwin/types.h>
#include <darwin/files.h>
#pragma clang assume_nonnull begin
#define PROT_READ 0x01
#define PROT_WRITE 0x02
#define MAP_SHARED 0x0001
#define MAP_PRIVATE 0x0002
#define MAP_ANON 0x1000
#define MS_ASYNC 0x0001
#define MS_SYNC 0x0010
#define MADV_NORMAL 0
#define MADV_SEQUENTIAL 2
#define MADV_WILLNEED 3
#define MADV_DONTNEED 4
#define MADV_FREE 5
void * _Nullable mmap(void * _Nullable, size_t, int, int, int, off_t);
int munmap(void *, size_t);
int msync(void *, size_t, int);
int madvise(void *, size_t, int);
int mlock(const void *, size_t);
int getpagesize(void);
void * _Nullable malloc(size_t);
void * _Nullable calloc(size_t, size_t);
void * _Nullable realloc(void * _Nullable, size_t);
void free(void * _Nullable);
int posix_memalign(void * _Nullable * _Nonnull, size_t, size_t);
size_t malloc_zone_pressure_relief(void * _Nullable, size_t);
void * memcpy(void *, const void *, size_t);
void * memmove(void *, const void *, size_t);
void * memset(void *, int, size_t);
int memset_s(void *, size_t, int, size_t);
int memcmp(const void * _Nullable, const void * _Nullable, size_t);
void * _Nullable memchr(const void * _Nullable, int, size_t);
void * _Nullable memmem(const void * _Nullable, size_t, const void * _Nullable, size_t);
size_t strlen(const char *);
char * _Nullable strdup(const char *);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
char * strerror(int);
int strerror_r(int, char *, size_t);
char * _Nullable getenv(const char *);
int setenv(const char *, const char *, int);
int unsetenv(const char *);
void exit(int) __attribute__((noreturn));
void _exit(int) __attribute__((noreturn));
void abort(void) __attribute__((noreturn));
int atexit(void (* _Nonnull)(void));
double pow(double, double);
double sqrt(double);
double log(double);
double log2(double);
double exp(double);
double sin(double);
double cos(double);
double atan2(double, double);
double floor(double);
double ceil(double);
double strtod(const char *, char * _Nullable * _Nullable);
long strtol(const char *, char * _Nullable * _Nullable, int);
void arc4random_buf(void * _Nullable, size_t);
uint32_t arc4random(void);
int getentropy(void *, size_t);

// dyld(3).
int _NSGetExecutablePath(char *, uint32_t *);
char * _Nullable * _Null_unspecified * _Null_unspecified _NSGetEnviron(void);
pid_t getpid(void);
pid_t getpgrp(void);
pid_t getppid(void);
uid_t getuid(void);
uid_t geteuid(void);
gid_t getgid(void);
pid_t waitpid(pid_t, int * _Nullable, int);
typedef enum { P_ALL, P_PID, P_PGID } idtype_t;
#define WEXITED 0x00000004
#define WNOWAIT 0x00000020
union sigval { int sival_int; void * _Nullable sival_ptr; };
typedef struct { int si_signo, si_errno, si_code; pid_t si_pid; uid_t si_uid; int si_status; void * _Nullable si_addr; union sigval si_value; long si_band; unsigned long __pad[7]; } siginfo_t;
int waitid(idtype_t, id_t, siginfo_t *, int);
int kill(pid_t, int);
int pause(void);
long sysconf(int);
unsigned int sleep(unsigned int);
int usleep(unsigned int);
int gethostname(char *, size_t);
int sysctlbyname(const char *, void * _Nullable, size_t * _Nullable, void * _Nullable, size_t);
#if defined(__ENVIRONMENT_MAC_OS_X_VERSION_MIN_REQUIRED__)
// libproc is in the SDK of macOS only.
#define PROC_PIDTBSDINFO 3
#define SZOMB 5
struct proc_bsdinfo {
  uint32_t pbi_flags, pbi_status, pbi_xstatus, pbi_pid, pbi_ppid; uid_t pbi_uid; gid_t pbi_gid; uid_t pbi_ruid; gid_t pbi_rgid;
  uid_t pbi_svuid; gid_t pbi_svgid; uint32_t rfu_1; char pbi_comm[16]; char pbi_name[32];
  uint32_t pbi_nfiles, pbi_pgid, pbi_pjobc, e_tdev, e_tpgid; int32_t pbi_nice; uint64_t pbi_start_tvsec, pbi_start_tvusec;
};
int proc_pidinfo(int, int, uint64_t, void * _Nullable, int);
#endif
#define WNOHANG 1
#define _SC_PAGESIZE 29
#define _SC_OPEN_MAX 5
#define _SC_NPROCESSORS_ONLN 58
#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGABRT 6
#define SIGFPE 8
#define SIGKILL 9
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGSTOP 17
#define SIGCONT 19
#define SIGTTOU 22
#define SIGCHLD 20
#define SIGIO 23
#define SIGXFSZ 25
#define SIGWINCH 28
#define SIGUSR1 30
#define SIGUSR2 31
typedef uint32_t sigset_t;
#define SIG_BLOCK 1
#define SIG_UNBLOCK 2
#define SIG_SETMASK 3
union __sigaction_u {
  void (* _Null_unspecified __sa_handler)(int);
  void (* _Null_unspecified __sa_sigaction)(int, siginfo_t * _Null_unspecified, void * _Null_unspecified);
};
struct sigaction { union __sigaction_u __sigaction_u; sigset_t sa_mask; int sa_flags; };
#define SA_RESTART 0x0002
int sigaction(int, const struct sigaction * _Nullable, struct sigaction * _Nullable);
int sigemptyset(sigset_t *);
int sigfillset(sigset_t *);
int sigaddset(sigset_t *, int);
int sigdelset(sigset_t *, int);
typedef uint64_t rlim_t;
struct rlimit { rlim_t rlim_cur, rlim_max; };
#define RLIMIT_CPU 0
#define RLIMIT_FSIZE 1
#define RLIMIT_STACK 3
#define RLIMIT_AS 5
#define RLIMIT_NPROC 7
#define RLIMIT_NOFILE 8
int getrlimit(int, struct rlimit *);
int setrlimit(int, const struct rlimit *);

struct _opaque_pthread_attr_t { long __sig; char __opaque[56]; };
struct _opaque_pthread_mutex_t { long __sig; char __opaque[56]; };
struct _opaque_pthread_cond_t { long __sig; char __opaque[40]; };
struct _opaque_pthread_condattr_t { long __sig; char __opaque[8]; };
struct _opaque_pthread_mutexattr_t { long __sig; char __opaque[8]; };
struct _opaque_pthread_t { long __sig; void * _Nullable __cleanup_stack; char __opaque[8176]; };
typedef struct _opaque_pthread_attr_t pthread_attr_t;
typedef struct _opaque_pthread_mutex_t pthread_mutex_t;
typedef struct _opaque_pthread_cond_t pthread_cond_t;
typedef struct _opaque_pthread_condattr_t pthread_condattr_t;
typedef struct _opaque_pthread_mutexattr_t pthread_mutexattr_t;
typedef struct _opaque_pthread_t * pthread_t;
struct _opaque_pthread_once_t { long __sig; char __opaque[8]; };
typedef struct _opaque_pthread_once_t pthread_once_t;
typedef unsigned long pthread_key_t;
int pthread_attr_init(pthread_attr_t *);
int pthread_attr_destroy(pthread_attr_t *);
int pthread_attr_setstacksize(pthread_attr_t *, size_t);
int pthread_attr_setdetachstate(pthread_attr_t *, int);
#define PTHREAD_CREATE_JOINABLE 1
#define PTHREAD_CREATE_DETACHED 2
int pthread_create(pthread_t _Nullable * _Nonnull, const pthread_attr_t * _Nullable, void * _Nullable (* _Nonnull)(void * _Nonnull), void * _Nullable);
int pthread_join(pthread_t, void * _Nullable * _Nullable);
int pthread_detach(pthread_t);
pthread_t pthread_self(void);
int pthread_equal(pthread_t _Nullable, pthread_t _Nullable);
int pthread_setname_np(const char *);
int pthread_threadid_np(pthread_t _Nullable, uint64_t * _Nullable);
int pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t * _Nullable);
int pthread_mutex_destroy(pthread_mutex_t *);
int pthread_mutex_lock(pthread_mutex_t *);
int pthread_mutex_unlock(pthread_mutex_t *);
int pthread_cond_init(pthread_cond_t *, const pthread_condattr_t * _Nullable);
int pthread_cond_destroy(pthread_cond_t *);
int pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec * _Nullable);
int pthread_cond_timedwait_relative_np(pthread_cond_t *, pthread_mutex_t *, const struct timespec * _Nullable);
int pthread_cond_signal(pthread_cond_t *);
int pthread_cond_broadcast(pthread_cond_t *);
int pthread_key_create(pthread_key_t *, void (* _Nullable)(void *));
int pthread_setspecific(pthread_key_t, const void * _Nullable);
void * _Nullable pthread_getspecific(pthread_key_t);
int pthread_sigmask(int, const sigset_t * _Nullable, sigset_t * _Nullable);
int pthread_main_np(void);
int sched_yield(void);
typedef void * posix_spawn_file_actions_t;
typedef void * posix_spawnattr_t;
#define POSIX_SPAWN_CLOEXEC_DEFAULT 0x4000
#define POSIX_SPAWN_SETSIGDEF 0x0004
#define POSIX_SPAWN_SETPGROUP 0x0002
#define POSIX_SPAWN_SETSIGMASK 0x0008
int posix_spawn(pid_t * _Nullable, const char *, const posix_spawn_file_actions_t _Nullable * _Nullable, const posix_spawnattr_t _Nullable * _Nullable, char * _Nullable const * _Nonnull, char * _Nullable const * _Nullable);
int posix_spawn_file_actions_init(posix_spawn_file_actions_t _Nullable * _Nonnull);
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t _Nullable * _Nonnull);
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t _Nullable * _Nonnull, int, int);
int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t _Nullable * _Nonnull, int);
int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t _Nullable * _Nonnull, int, const char *, int, mode_t);
int posix_spawn_file_actions_addinherit_np(posix_spawn_file_actions_t _Nullable * _Nonnull, int);
int posix_spawnattr_init(posix_spawnattr_t _Nullable * _Nonnull);
int posix_spawnattr_destroy(posix_spawnattr_t _Nullable * _Nonnull);
int posix_spawnattr_setflags(posix_spawnattr_t _Nullable * _Nonnull, short);
int posix_spawnattr_setpgroup(posix_spawnattr_t _Nullable * _Nonnull, pid_t);
int posix_spawnattr_setsigdefault(posix_spawnattr_t _Nullable * _Nonnull, const sigset_t *);
int posix_spawnattr_setsigmask(posix_spawnattr_t _Nullable * _Nonnull, const sigset_t *);
#pragma clang assume_nonnull end
