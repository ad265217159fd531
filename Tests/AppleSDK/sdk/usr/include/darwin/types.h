// Types, errors and clocks of the system, as their manual pages (man 2, man 3) and POSIX describe them.
#pragma once
typedef unsigned char UInt8; typedef int SInt32; typedef unsigned char Boolean;
typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t; typedef unsigned long long uint64_t;
typedef long intptr_t; typedef unsigned long uintptr_t; typedef unsigned long size_t; typedef long ssize_t;
typedef int32_t dev_t; typedef uint64_t ino_t; typedef uint16_t mode_t; typedef uint16_t nlink_t;
typedef uint32_t uid_t; typedef uint32_t gid_t; typedef int64_t off_t; typedef int64_t blkcnt_t; typedef int32_t blksize_t;
typedef int32_t pid_t; typedef long time_t; typedef int32_t suseconds_t; typedef uint32_t socklen_t; typedef uint32_t id_t;
typedef uint32_t fsblkcnt_t; typedef uint32_t fsfilcnt_t; typedef int clockid_t;
struct timespec { time_t tv_sec; long tv_nsec; };
struct timeval { time_t tv_sec; suseconds_t tv_usec; };

extern int * _Nonnull __error(void);
#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENXIO 6
#define E2BIG 7
#define EBADF 9
#define ECHILD 10
#define EDEADLK 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define EXDEV 18
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENFILE 23
#define EMFILE 24
#define ENOTTY 25
#define EFBIG 27
#define ENOSPC 28
#define ESPIPE 29
#define EROFS 30
#define EMLINK 31
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define EAGAIN 35
#define EWOULDBLOCK EAGAIN
#define EINPROGRESS 36
#define EALREADY 37
#define ENOTSOCK 38
#define EMSGSIZE 40
#define ENOPROTOOPT 42
#define ENOTSUP 45
#define EAFNOSUPPORT 47
#define EADDRINUSE 48
#define EADDRNOTAVAIL 49
#define ENETDOWN 50
#define ENETUNREACH 51
#define ENETRESET 52
#define ECONNABORTED 53
#define ECONNRESET 54
#define ENOBUFS 55
#define EISCONN 56
#define ENOTCONN 57
#define ESHUTDOWN 58
#define ETIMEDOUT 60
#define ECONNREFUSED 61
#define ELOOP 62
#define ENAMETOOLONG 63
#define EHOSTDOWN 64
#define EHOSTUNREACH 65
#define ENOTEMPTY 66
#define EDQUOT 69
#define ESTALE 70
#define ENOLCK 77
#define ENOSYS 78
#define EOVERFLOW 84
#define ECANCELED 89
#define EBADMSG 94
#define EPROTO 100
#define EOPNOTSUPP 102

#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 6
#define CLOCK_MONOTONIC_RAW 4
#define CLOCK_UPTIME_RAW 8
int clock_gettime(clockid_t, struct timespec * _Nonnull);
int nanosleep(const struct timespec * _Nonnull, struct timespec * _Nullable);
time_t time(time_t * _Nullable);
struct tm { int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst; long tm_gmtoff; char * _Nullable tm_zone; };
struct tm * _Nullable gmtime_r(const time_t * _Nonnull, struct tm * _Nonnull);
struct tm * _Nullable localtime_r(const time_t * _Nonnull, struct tm * _Nonnull);
time_t timegm(struct tm * _Nonnull);
time_t mktime(struct tm * _Nonnull);
size_t strftime(char * _Nonnull, size_t, const char * _Nonnull, const struct tm * _Nonnull);
