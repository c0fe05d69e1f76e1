/* lt_libc.h: declarations of the functions of macOS's C library that Lutra calls, for the syntax
 * check of tests/apple/check: a call of a function that macOS does not have is an error there. The
 * standard headers beside this file include it. Values and structs do not have Apple's layout: no
 * code is generated from them. Written from POSIX and from Apple's manual pages.
 */
#ifndef LT_APPLE_LIBC_H
#define LT_APPLE_LIBC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef long ssize_t, time_t, clock_t;
typedef long long off_t;
typedef int pid_t, clockid_t, dev_t, suseconds_t;
typedef unsigned uid_t, gid_t, useconds_t, nfds_t;
typedef unsigned short mode_t, nlink_t;
typedef unsigned long long ino_t;

/* ---- errno.h, string.h, strings.h, ctype.h --------------------------------------------------- */

int *__error(void);
#define errno (*__error())
enum {
  EPERM = 1,
  ENOENT,
  ESRCH,
  EINTR = 4,
  EIO,
  EBADF = 9,
  ECHILD,
  EAGAIN = 35,
  ENOMEM = 12,
  EACCES
};
enum { EEXIST = 17, ENOTDIR = 20, EISDIR, EINVAL, ENFILE, EMFILE, ENOTTY, EFBIG = 27, ENOSPC };
enum { ESPIPE = 29, EROFS, EPIPE = 32, ERANGE = 34, ELOOP = 62, ENAMETOOLONG, EXDEV = 18 };
enum {
  ENOTSUP = 45,
  EOPNOTSUPP = 102,
  EDQUOT = 69,
  ENODEV = 19,
  ENXIO = 6,
  EBUSY = 16,
  ETXTBSY = 26
};

void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memcpy(void *, const void *, size_t), *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
char *strcat(char *, const char *), *strchr(const char *, int), *strcpy(char *, const char *);
int strcmp(const char *, const char *), strncmp(const char *, const char *, size_t);
size_t strcspn(const char *, const char *), strspn(const char *, const char *);
size_t strlen(const char *), strnlen(const char *, size_t);
char *strdup(const char *), *strndup(const char *, size_t), *strerror(int);
char *strncat(char *, const char *, size_t), *strncpy(char *, const char *, size_t);
char *strrchr(const char *, int), *strstr(const char *, const char *);
char *strpbrk(const char *, const char *), *strtok_r(char *, const char *, char **);
int strcasecmp(const char *, const char *), strncasecmp(const char *, const char *, size_t);
int isalnum(int), isalpha(int), iscntrl(int), isdigit(int), isgraph(int), islower(int);
int isprint(int), ispunct(int), isspace(int), isupper(int), isxdigit(int);
int tolower(int), toupper(int);

/* ---- stdio.h --------------------------------------------------------------------------------- */

typedef struct lt_file FILE;
typedef off_t fpos_t;
extern FILE *__stdinp, *__stdoutp, *__stderrp;
#define stdin                __stdinp
#define stdout               __stdoutp
#define stderr               __stderrp
#define EOF                  (-1)
#define BUFSIZ               1024
#define SEEK_SET             0
#define SEEK_CUR             1
#define SEEK_END             2
#define _IONBF               2
#define _IOLBF               1
#define LT_PRINTF(at, first) __attribute__((format(printf, at, first)))
int fprintf(FILE *, const char *, ...) LT_PRINTF(2, 3), printf(const char *, ...) LT_PRINTF(1, 2);
int sprintf(char *, const char *, ...) LT_PRINTF(2, 3);
int snprintf(char *, size_t, const char *, ...) LT_PRINTF(3, 4);
int vsnprintf(char *, size_t, const char *, va_list) LT_PRINTF(3, 0);
int vfprintf(FILE *, const char *, va_list) LT_PRINTF(2, 0);
int sscanf(const char *, const char *, ...) __attribute__((format(scanf, 2, 3)));
int fclose(FILE *), ferror(FILE *), feof(FILE *), fflush(FILE *), fgetc(FILE *), fileno(FILE *);
int fputc(int, FILE *), fputs(const char *, FILE *), puts(const char *), getc(FILE *);
int putc(int, FILE *), putchar(int), ungetc(int, FILE *), remove(const char *);
int rename(const char *, const char *), fseeko(FILE *, off_t, int),
    setvbuf(FILE *, char *, int, size_t);
int fseek(FILE *, long, int);
long ftell(FILE *);
off_t ftello(FILE *);
char *fgets(char *, int, FILE *);
size_t fread(void *, size_t, size_t, FILE *), fwrite(const void *, size_t, size_t, FILE *);
FILE *fmemopen(void *, size_t, const char *);
FILE *funopen(const void *, int (*)(void *, char *, int), int (*)(void *, const char *, int),
              fpos_t (*)(void *, fpos_t, int), int (*)(void *));
FILE *fopen(const char *, const char *), *fdopen(int, const char *), *tmpfile(void);
ssize_t getline(char **, size_t *, FILE *);
void clearerr(FILE *), perror(const char *), rewind(FILE *);

/* ---- stdlib.h -------------------------------------------------------------------------------- */

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define MB_CUR_MAX   6
_Noreturn void abort(void);
_Noreturn void exit(int);
int atexit(void (*)(void)), abs(int), system(const char *), mkstemp(char *), atoi(const char *);
void *malloc(size_t), *calloc(size_t, size_t), *realloc(void *, size_t), free(void *);
void *aligned_alloc(size_t, size_t);
int posix_memalign(void **, size_t, size_t);
char *getenv(const char *), *realpath(const char *, char *), *mkdtemp(char *);
int setenv(const char *, const char *, int), unsetenv(const char *), putenv(char *);
double strtod(const char *, char **), atof(const char *);
float strtof(const char *, char **);
long strtol(const char *, char **, int), labs(long);
long long strtoll(const char *, char **, int), llabs(long long);
unsigned long strtoul(const char *, char **, int);
unsigned long long strtoull(const char *, char **, int);
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
void *bsearch(const void *, const void *, size_t, size_t, int (*)(const void *, const void *));

/* ---- math.h, complex.h ----------------------------------------------------------------------- */

#define HUGE_VAL    __builtin_huge_val()
#define HUGE_VALF   __builtin_huge_valf()
#define INFINITY    __builtin_inff()
#define NAN         __builtin_nanf("")
#define M_E         2.71828182845904523536
#define M_LN2       0.693147180559945309417
#define M_LN10      2.30258509299404568402
#define M_LOG2E     1.44269504088896340736
#define M_LOG10E    0.434294481903251827651
#define M_PI        3.14159265358979323846
#define M_PI_2      1.57079632679489661923
#define M_PI_4      0.785398163397448309616
#define M_1_PI      0.318309886183790671538
#define M_2_PI      0.636619772367581343076
#define M_2_SQRTPI  1.12837916709551257390
#define M_SQRT2     1.41421356237309504880
#define M_SQRT1_2   0.707106781186547524401
#define isnan(x)    __builtin_isnan(x)
#define isinf(x)    __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x)  __builtin_signbit(x)
#define LT_REAL1(name)                                                                             \
  double name(double);                                                                             \
  float name##f(float);
#define LT_REAL2(name)                                                                             \
  double name(double, double);                                                                     \
  float name##f(float, float);
double j0(double), j1(double), y0(double), y1(double);
LT_REAL1(acos)
LT_REAL1(acosh)
LT_REAL1(asin)
LT_REAL1(asinh)
LT_REAL1(atan)
LT_REAL1(atanh)
LT_REAL1(cbrt)
LT_REAL1(ceil)
LT_REAL1(cos)
LT_REAL1(cosh)
LT_REAL1(erf)
LT_REAL1(erfc)
LT_REAL1(exp)
LT_REAL1(exp2)
LT_REAL1(expm1)
LT_REAL1(fabs)
LT_REAL1(floor)
LT_REAL1(lgamma)
LT_REAL1(log)
LT_REAL1(log10)
LT_REAL1(log1p)
LT_REAL1(log2)
LT_REAL1(nearbyint)
LT_REAL1(rint)
LT_REAL1(round)
LT_REAL1(sin)
LT_REAL1(sinh)
LT_REAL1(sqrt)
LT_REAL1(tan)
LT_REAL1(tanh)
LT_REAL1(tgamma)
LT_REAL1(trunc)
LT_REAL2(atan2)
LT_REAL2(copysign)
LT_REAL2(fmax)
LT_REAL2(fmin)
LT_REAL2(fmod)
LT_REAL2(hypot)
LT_REAL2(nextafter)
LT_REAL2(pow)
LT_REAL2(remainder)
double fma(double, double, double), frexp(double, int *), ldexp(double, int),
    modf(double, double *);
float fmaf(float, float, float), frexpf(float, int *), ldexpf(float, int), modff(float, float *);
double scalbn(double, int);
float scalbnf(float, int);
long lround(double), lrint(double);
long long llround(double), llrint(double), llrintf(float), llroundf(float);
long lrintf(float), lroundf(float);

/* ---- time.h, sys/time.h ---------------------------------------------------------------------- */

struct timespec {
  time_t tv_sec;
  long tv_nsec;
};
struct timeval {
  time_t tv_sec;
  suseconds_t tv_usec;
};
struct tm {
  int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
};
enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 6, CLOCK_PROCESS_CPUTIME_ID = 12 };
enum { CLOCK_UPTIME_RAW = 8 };
int clock_gettime(clockid_t, struct timespec *),
    nanosleep(const struct timespec *, struct timespec *);
int gettimeofday(struct timeval *, void *);
time_t time(time_t *);
struct tm *localtime_r(const time_t *, struct tm *), *gmtime_r(const time_t *, struct tm *);
size_t strftime(char *, size_t, const char *, const struct tm *);

/* ---- pthread.h, sched.h ---------------------------------------------------------------------- */

typedef struct lt_thread *pthread_t;
typedef unsigned long pthread_key_t;
typedef struct {
  long opaque[8];
} pthread_mutex_t, pthread_cond_t, pthread_attr_t, pthread_once_t, pthread_rwlock_t;
typedef struct {
  long opaque[2];
} pthread_mutexattr_t, pthread_condattr_t;
#define PTHREAD_MUTEX_INITIALIZER                                                                  \
  {                                                                                                \
    { 0x32AAABA7 }                                                                                 \
  }
#define PTHREAD_COND_INITIALIZER                                                                   \
  {                                                                                                \
    { 0x3CB0B1BB }                                                                                 \
  }
#define PTHREAD_ONCE_INIT                                                                          \
  {                                                                                                \
    { 0x30B1BCBA }                                                                                 \
  }
#define PTHREAD_RWLOCK_INITIALIZER                                                                 \
  {                                                                                                \
    { 0x2DA8B3B4 }                                                                                 \
  }
enum { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE };
int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_join(pthread_t, void **), pthread_detach(pthread_t),
    pthread_equal(pthread_t, pthread_t);
pthread_t pthread_self(void);
int pthread_attr_init(pthread_attr_t *), pthread_attr_destroy(pthread_attr_t *);
int pthread_attr_getstacksize(const pthread_attr_t *, size_t *);
int pthread_attr_setstacksize(pthread_attr_t *, size_t);
int pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int pthread_mutex_destroy(pthread_mutex_t *), pthread_mutex_lock(pthread_mutex_t *);
int pthread_mutex_trylock(pthread_mutex_t *), pthread_mutex_unlock(pthread_mutex_t *);
int pthread_mutexattr_init(pthread_mutexattr_t *),
    pthread_mutexattr_settype(pthread_mutexattr_t *, int);
int pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int pthread_cond_destroy(pthread_cond_t *), pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int pthread_cond_signal(pthread_cond_t *), pthread_cond_broadcast(pthread_cond_t *);
int pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int pthread_rwlock_rdlock(pthread_rwlock_t *), pthread_rwlock_wrlock(pthread_rwlock_t *);
int pthread_rwlock_unlock(pthread_rwlock_t *);
int pthread_once(pthread_once_t *, void (*)(void));
int pthread_key_create(pthread_key_t *, void (*)(void *)),
    pthread_setspecific(pthread_key_t, const void *);
void *pthread_getspecific(pthread_key_t);
int pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
int sched_yield(void);

/* ---- signal.h, setjmp.h ---------------------------------------------------------------------- */

typedef unsigned sigset_t;
typedef int sig_atomic_t;
typedef struct {
  int si_signo, si_code;
  void *si_addr;
} siginfo_t;
struct sigaction {
  union {
    void (*sa_handler)(int);
    void (*sa_sigaction)(int, siginfo_t *, void *);
  };
  sigset_t sa_mask;
  int sa_flags;
};
#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define SIG_ERR ((void (*)(int)) - 1)
enum { SIG_BLOCK = 1, SIG_UNBLOCK, SIG_SETMASK };
enum { SA_RESTART = 2, SA_SIGINFO = 0x40, SA_ONSTACK = 1, SA_RESETHAND = 4, SA_NODEFER = 0x10 };
enum {
  SIGHUP = 1,
  SIGINT,
  SIGQUIT,
  SIGILL,
  SIGTRAP,
  SIGABRT,
  SIGFPE = 8,
  SIGKILL,
  SIGBUS,
  SIGSEGV
};
enum { SIGPIPE = 13, SIGALRM, SIGTERM, SIGSTOP = 17, SIGTSTP, SIGCONT, SIGCHLD, SIGTTIN, SIGTTOU };
enum { SIGXFSZ = 25, SIGWINCH = 28, SIGUSR1 = 30, SIGUSR2 };
int kill(pid_t, int), raise(int), sigaction(int, const struct sigaction *, struct sigaction *);
int sigaddset(sigset_t *, int), sigdelset(sigset_t *, int), sigemptyset(sigset_t *);
int sigfillset(sigset_t *), sigismember(const sigset_t *, int), sigpending(sigset_t *);
int sigprocmask(int, const sigset_t *, sigset_t *), sigwait(const sigset_t *, int *);
int pthread_kill(pthread_t, int), pthread_sigmask(int, const sigset_t *, sigset_t *);
void (*signal(int, void (*)(int)))(int);
typedef int jmp_buf[48], sigjmp_buf[49];
int setjmp(jmp_buf) __attribute__((returns_twice));
int sigsetjmp(sigjmp_buf, int) __attribute__((returns_twice));
_Noreturn void longjmp(jmp_buf, int);
_Noreturn void siglongjmp(sigjmp_buf, int);

/* ---- files: unistd.h, fcntl.h, dirent.h, sys/stat.h, sys/ioctl.h, sys/mman.h, poll.h --------- */

enum { F_OK = 0, X_OK = 1, W_OK = 2, R_OK = 4 };
enum { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
enum { _SC_PAGESIZE = 29, _SC_NPROCESSORS_ONLN = 58, _SC_PHYS_PAGES = 200 };
int access(const char *, int), chdir(const char *), close(int), dup(int), dup2(int, int);
int execv(const char *, char *const *), execvp(const char *, char *const *), fsync(int);
int fchown(int, uid_t, gid_t), ftruncate(int, off_t), gethostname(char *, size_t), isatty(int);
int link(const char *, const char *), pipe(int[2]), rmdir(const char *), unlink(const char *);
int unlinkat(int, const char *, int), usleep(useconds_t);
pid_t fork(void), getpid(void), getppid(void), getpgrp(void), tcgetpgrp(int);
uid_t getuid(void), geteuid(void);
gid_t getgid(void), getegid(void);
char *getcwd(char *, size_t);
ssize_t read(int, void *, size_t), write(int, const void *, size_t);
ssize_t readlink(const char *, char *, size_t);
off_t lseek(int, off_t, int);
long sysconf(int);
unsigned sleep(unsigned);
_Noreturn void _exit(int);
enum { O_RDONLY = 0, O_WRONLY, O_RDWR, O_NONBLOCK = 4, O_APPEND = 8, O_CREAT = 0x200 };
enum { O_TRUNC = 0x400, O_EXCL = 0x800, O_CLOEXEC = 0x1000000, O_DIRECTORY = 0x100000 };
enum {
  O_NOFOLLOW = 0x100,
  O_NOCTTY = 0x20000,
  F_GETFD = 1,
  F_SETFD,
  F_GETFL,
  F_SETFL,
  FD_CLOEXEC = 1,
  F_DUPFD_CLOEXEC = 67
};
enum { F_SETLK = 8, F_SETLKW, F_GETLK = 7, F_RDLCK = 1, F_UNLCK, F_WRLCK };
struct flock {
  off_t l_start, l_len;
  pid_t l_pid;
  short l_type, l_whence;
};
int open(const char *, int, ...), fcntl(int, int, ...);
enum { AT_FDCWD = -2, AT_SYMLINK_NOFOLLOW = 0x20 };
typedef struct lt_dir DIR;
struct dirent {
  ino_t d_ino;
  unsigned char d_type;
  char d_name[1024];
};
DIR *opendir(const char *), *fdopendir(int);
struct dirent *readdir(DIR *);
int closedir(DIR *), dirfd(DIR *);
struct winsize {
  unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
enum { TIOCGWINSZ = 0x40087468, FIONREAD = 0x4004667f };
int ioctl(int, unsigned long, ...);
enum { PROT_NONE, PROT_READ, PROT_WRITE, PROT_EXEC = 4, MAP_SHARED = 1, MAP_PRIVATE };
enum { MAP_FIXED = 0x10, MAP_NORESERVE = 0x40, MAP_ANON = 0x1000 };
#define MAP_ANONYMOUS MAP_ANON
#define MAP_FAILED    ((void *)-1)
enum { MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE };
void *mmap(void *, size_t, int, int, int, off_t);
int munmap(void *, size_t), madvise(void *, size_t, int), mprotect(void *, size_t, int);
struct pollfd {
  int fd;
  short events, revents;
};
enum { POLLIN = 1, POLLPRI, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32 };
int poll(struct pollfd *, nfds_t, int);
typedef struct {
  int fds_bits[32];
} fd_set;
void FD_ZERO(fd_set *), FD_SET(int, fd_set *);
int FD_ISSET(int, const fd_set *);
int select(int, fd_set *, fd_set *, fd_set *, struct timeval *);
int pselect(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);

/* ---- termios.h, locale.h, langinfo.h, wchar.h, dlfcn.h --------------------------------------- */

typedef unsigned long tcflag_t, speed_t;
typedef unsigned char cc_t;
struct termios {
  tcflag_t c_iflag, c_oflag, c_cflag, c_lflag;
  cc_t c_cc[20];
};
enum { VMIN = 16, VTIME, VINTR = 8, VQUIT, VEOF = 0, VERASE = 3, VSUSP = 10, VDSUSP, VLNEXT = 14 };
enum {
  ICRNL = 0x100,
  IXON = 0x200,
  BRKINT = 2,
  INPCK = 0x10,
  ISTRIP = 0x20,
  INLCR = 0x40,
  IGNCR = 0x80
};
enum { OPOST = 1, ECHO = 8, ICANON = 0x100, ISIG = 0x80, IEXTEN = 0x400, CS8 = 0x300 };
enum { TCSANOW, TCSADRAIN, TCSAFLUSH };
int tcgetattr(int, struct termios *), tcsetattr(int, int, const struct termios *);
enum { LC_ALL, LC_COLLATE, LC_CTYPE, LC_MONETARY, LC_NUMERIC, LC_TIME };
char *setlocale(int, const char *);
typedef int nl_item;
enum { CODESET };
char *nl_langinfo(nl_item);
typedef struct {
  long opaque[16];
} mbstate_t;
size_t mbrtowc(wchar_t *, const char *, size_t, mbstate_t *), wcrtomb(char *, wchar_t, mbstate_t *);
int wcwidth(wchar_t);
enum { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_LOCAL = 4, RTLD_GLOBAL = 8, RTLD_NOLOAD = 16 };
enum { RTLD_NODELETE = 0x80 };
#define RTLD_DEFAULT ((void *)-2)
#define RTLD_NEXT    ((void *)-1)
typedef struct dl_info {
  const char *dli_fname;
  void *dli_fbase;
  const char *dli_sname;
  void *dli_saddr;
} Dl_info;
void *dlopen(const char *, int), *dlsym(void *, const char *);
int dlclose(void *), dladdr(const void *, Dl_info *);
char *dlerror(void);

/* ---- only on macOS: sys/sysctl.h, mach-o/dyld.h, malloc/malloc.h ---------------------------- */

int sysctlbyname(const char *, void *, size_t *, void *, size_t);
int _NSGetExecutablePath(char *, uint32_t *);
size_t malloc_zone_pressure_relief(void *, size_t);

/* ---- other libraries: libomp, zlib ----------------------------------------------------------- */

int omp_get_max_threads(void), omp_get_num_threads(void), omp_get_thread_num(void);
int omp_get_thread_limit(void), omp_in_parallel(void), omp_get_num_procs(void),
    omp_get_dynamic(void);
void omp_set_num_threads(int), omp_set_dynamic(int);
typedef unsigned uInt;
typedef unsigned long uLong;
typedef unsigned char Bytef;
typedef struct z_stream_s {
  const unsigned char *next_in;
  unsigned avail_in;
  unsigned long total_in;
  unsigned char *next_out;
  unsigned avail_out;
  unsigned long total_out;
  const char *msg;
} z_stream;
enum {
  Z_OK,
  Z_STREAM_END,
  Z_NO_FLUSH = 0,
  Z_FINISH = 4,
  Z_DEFLATED = 8,
  Z_BUF_ERROR = -5,
  Z_MEM_ERROR = -4,
  Z_DATA_ERROR = -3
};
int inflate(z_stream *, int), inflateEnd(z_stream *), inflateInit2(z_stream *, int);
int inflateReset(z_stream *), deflate(z_stream *, int), deflateEnd(z_stream *);
int deflateInit2(z_stream *, int, int, int, int, int);
uLong crc32(uLong, const Bytef *, uInt);
const char *zlibVersion(void);

#endif
