// Files and folders: open(2), stat(2), read(2), fcntl(2), rename(2), directory(3), statvfs(3), flock(2).
#pragma once
#include <darwin/types.h>
#pragma clang assume_nonnull begin
#define O_RDONLY 0x0000
#define O_WRONLY 0x0001
#define O_RDWR 0x0002
#define O_NOCTTY 0x00020000
#define O_NONBLOCK 0x00000004
#define O_APPEND 0x00000008
#define O_SYNC 0x0080
#define O_NOFOLLOW 0x00000100
#define O_CREAT 0x00000200
#define O_TRUNC 0x00000400
#define O_EXCL 0x00000800
#define O_DIRECTORY 0x00100000
#define O_CLOEXEC 0x01000000
#define F_DUPFD 0
#define F_GETFD 1
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_GETLK 7
#define F_SETLK 8
#define F_SETLKW 9
#define F_PREALLOCATE 42
#define F_RDADVISE 44
#define F_NOCACHE 48
#define F_GETPATH 50
#define F_FULLFSYNC 51
#define F_DUPFD_CLOEXEC 67
#define F_RDLCK 1
#define F_UNLCK 2
#define F_WRLCK 3
#define FD_CLOEXEC 1
#define AT_FDCWD -2
#define AT_EACCESS 0x0010
#define AT_SYMLINK_NOFOLLOW 0x0020
#define AT_SYMLINK_FOLLOW 0x0040
#define AT_REMOVEDIR 0x0080
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define SEEK_HOLE 3
#define SEEK_DATA 4
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define PATH_MAX 1024
#define NAME_MAX 255
#define UTIME_NOW -1
#define UTIME_OMIT -2
#define LOCK_SH 0x01
#define LOCK_EX 0x02
#define LOCK_NB 0x04
#define LOCK_UN 0x08
#define RENAME_EXCL 0x00000004
#define RENAME_SWAP 0x00000002
#define DT_UNKNOWN 0
#define DT_FIFO 1
#define DT_CHR 2
#define DT_DIR 4
#define DT_BLK 6
#define DT_REG 8
#define DT_LNK 10
#define DT_SOCK 12
#define MNT_LOCAL 0x00001000
struct stat {
  dev_t st_dev; mode_t st_mode; nlink_t st_nlink; ino_t st_ino; uid_t st_uid; gid_t st_gid; dev_t st_rdev;
  struct timespec st_atimespec, st_mtimespec, st_ctimespec, st_birthtimespec;
  off_t st_size; blkcnt_t st_blocks; blksize_t st_blksize; uint32_t st_flags, st_gen; int32_t st_lspare; int64_t st_qspare[2];
};
struct flock { off_t l_start, l_len; pid_t l_pid; short l_type, l_whence; };
struct dirent { ino_t d_ino; uint64_t d_seekoff; uint16_t d_reclen, d_namlen; uint8_t d_type; char d_name[1024]; };
struct statvfs { unsigned long f_bsize, f_frsize; fsblkcnt_t f_blocks, f_bfree, f_bavail; fsfilcnt_t f_files, f_ffree, f_favail; unsigned long f_fsid, f_flag, f_namemax; };
typedef struct { int32_t val[2]; } fsid_t;
struct statfs {
  uint32_t f_bsize; int32_t f_iosize; uint64_t f_blocks, f_bfree, f_bavail, f_files, f_ffree; fsid_t f_fsid; uid_t f_owner;
  uint32_t f_type, f_flags, f_fssubtype; char f_fstypename[16]; char f_mntonname[1024]; char f_mntfromname[1024]; uint32_t f_flags_ext; uint32_t f_reserved[7];
};
struct iovec { void * _Nullable iov_base; size_t iov_len; };
typedef struct _dirdesc DIR;
typedef struct __sFILE FILE;
int close(int);
ssize_t read(int, void * _Nullable, size_t);
ssize_t write(int, const void * _Nullable, size_t);
ssize_t pread(int, void * _Nullable, size_t, off_t);
ssize_t pwrite(int, const void * _Nullable, size_t, off_t);
ssize_t readv(int, const struct iovec *, int);
ssize_t writev(int, const struct iovec *, int);
off_t lseek(int, off_t, int);
int ftruncate(int, off_t);
int fsync(int);
int dup(int);
int dup2(int, int);
int pipe(int * _Nonnull);
int isatty(int);
int stat(const char *, struct stat *);
int lstat(const char *, struct stat *);
int fstat(int, struct stat *);
int fstatat(int, const char *, struct stat *, int);
int statfs(const char *, struct statfs *);
int fstatfs(int, struct statfs *);
int statvfs(const char *, struct statvfs *);
int fstatvfs(int, struct statvfs *);
int access(const char *, int);
int faccessat(int, const char *, int, int);
int mkdir(const char *, mode_t);
int mkdirat(int, const char *, mode_t);
int rmdir(const char *);
int unlink(const char *);
int unlinkat(int, const char *, int);
int rename(const char *, const char *);
int renameat(int, const char *, int, const char *);
int renameatx_np(int, const char *, int, const char *, unsigned int);
int link(const char *, const char *);
int linkat(int, const char *, int, const char *, int);
int symlink(const char *, const char *);
ssize_t readlink(const char *, char *, size_t);
ssize_t readlinkat(int, const char *, char *, size_t);
int chmod(const char *, mode_t);
int fchmod(int, mode_t);
int futimens(int, const struct timespec * _Nullable);
int utimensat(int, const char *, const struct timespec * _Nullable, int);
int flock(int, int);
int mkstemp(char *);
char * _Nullable mkdtemp(char *);
char * _Nullable realpath(const char *, char * _Nullable);
char * _Nullable getcwd(char * _Nullable, size_t);
mode_t umask(mode_t);
DIR * _Nullable opendir(const char *);
DIR * _Nullable fdopendir(int);
struct dirent * _Nullable readdir(DIR *);
int closedir(DIR *);
int dirfd(DIR *);
void rewinddir(DIR *);
FILE * _Nullable fopen(const char *, const char *);
int fclose(FILE *);
size_t fread(void *, size_t, size_t, FILE *);
int ferror(FILE *);
#define FNM_PATHNAME 0x02
#define FNM_PERIOD 0x04
int fnmatch(const char *, const char *, int);
// termios(4), tcsetattr(3).
typedef unsigned long tcflag_t;
typedef unsigned char cc_t;
typedef unsigned long speed_t;
struct termios { tcflag_t c_iflag, c_oflag, c_cflag, c_lflag; cc_t c_cc[20]; speed_t c_ispeed, c_ospeed; };
#define ECHO 0x00000008
#define TCSAFLUSH 2
int tcgetattr(int, struct termios *);
pid_t tcgetpgrp(int);
int tcsetpgrp(int, pid_t);
int tcsetattr(int, int, const struct termios *);
struct winsize { unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel; };
int fcopyfile(int, int, void * _Nullable, uint32_t);
#pragma clang assume_nonnull end
