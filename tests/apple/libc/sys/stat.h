/* stat.h: see lt_libc.h. */
#ifndef LT_APPLE_STAT_H
#define LT_APPLE_STAT_H

#include <lt_libc.h>

struct stat {
  dev_t st_dev, st_rdev;
  mode_t st_mode;
  nlink_t st_nlink;
  ino_t st_ino;
  uid_t st_uid;
  gid_t st_gid;
  struct timespec st_atimespec, st_mtimespec, st_ctimespec;
  off_t st_size;
  long long st_blocks;
  int st_blksize;
};
#define st_mtime    st_mtimespec.tv_sec
#define S_ISDIR(m)  (((m)&0170000) == 0040000)
#define S_ISREG(m)  (((m)&0170000) == 0100000)
#define S_ISLNK(m)  (((m)&0170000) == 0120000)
#define S_ISFIFO(m) (((m)&0170000) == 0010000)
#define S_ISCHR(m)  (((m)&0170000) == 0020000)
#define S_ISBLK(m)  (((m)&0170000) == 0060000)
#define S_ISSOCK(m) (((m)&0170000) == 0140000)
enum { S_IFMT = 0170000, S_IFREG = 0100000, S_IFDIR = 0040000 };
enum { S_IRUSR = 0400, S_IWUSR = 0200, S_IRWXU = 0700, S_ISUID = 04000, S_ISGID = 02000 };
int stat(const char *, struct stat *), fstat(int, struct stat *),
    lstat(const char *, struct stat *);
int fstatat(int, const char *, struct stat *, int), mkdir(const char *, mode_t);
int chmod(const char *, mode_t), fchmod(int, mode_t);
mode_t umask(mode_t);

#endif
