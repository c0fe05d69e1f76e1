/* replace.c: saves a file atomically: the new file is written in the folder of the old one, synced
 * to disk, and renamed over it.
 *
 * Invariant: a regular file is either the old or the complete new one, and a failure leaves no
 * temporary file. Only pipes and character devices, which cannot be replaced, are written directly.
 *
 * A temporary file is called TARGET.PID-MACHINE-RANDOM.tmp. A process that is killed leaves its own
 * behind; the next process that saves the same target removes it. */
#define _GNU_SOURCE
#include "replace.h"

#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  MOST_LINKS = 40,     /* in a chain, as in Linux */
  LONGEST_LINK = 4096, /* bytes of the path in a link */
  LONGEST_BASE = 200,  /* bytes of the target's name in the temporary's, which has at most 255 */
  SUFFIX = 64,         /* bytes for the rest of that name */
  ATTEMPTS = 100,      /* to find an unused name */
  MOST_NAMES = 4096,   /* in a folder that are checked for old temporaries */
  FOREIGN_AGE = 86400  /* seconds without a write until another machine's temporary counts as old */
};

/* Sets the error "<writer>: <path>: <why>". */
static bool fail(const lt_Replacement *r, const char *why) {
  const char *writer = r->writer ? r->writer : "";
  if (!*writer) return lt_error_set("\"%s\": %s", r->path, why), false;
  return lt_error_set("%s: cannot write \"%s\": %s", writer, r->path, why), false;
}

/* ---- what a path means ----------------------------------------------------------------------- */

/* Returns the last component of a path. */
static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Returns true for a name of an open file, such as the target of /dev/stdout. Replacing it would
 * not reach that file. */
static bool is_descriptor(const char *path) {
  return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd/", 8) == 0;
}

/* Returns the path in a link, relative to the link's folder; malloc'ed. NULL with errno. */
static char *link_target(const char *link) {
  char text[LONGEST_LINK];
  ssize_t n = readlink(link, text, sizeof text);
  if (n < 0) return NULL;
  size_t folder = text[0] == '/' ? 0 : (size_t)(base_of(link) - link);
  char *path = malloc(folder + (size_t)n + 1);
  if (!path) return NULL;
  memcpy(path, link, folder);
  memcpy(path + folder, text, (size_t)n);
  path[folder + (size_t)n] = 0;
  return path;
}

/* Returns the path of the file to which a chain of links leads; malloc'ed. NULL with errno. */
static char *follow(const char *path) {
  struct stat s;
  char *at = strdup(path);
  for (int links = 0; at && !is_descriptor(at); links++) {
    if (lstat(at, &s) != 0 || !S_ISLNK(s.st_mode)) break;
    char *next = links < MOST_LINKS ? link_target(at) : NULL;
    if (links == MOST_LINKS) errno = ELOOP;
    free(at);
    at = next;
  }
  return at;
}

/* The file that exists at the target. */
typedef struct Found {
  bool there, direct; /* does it exist; is it to be written directly? */
  struct stat stat;   /* where it exists */
} Found;

/* Frees the strings of a replacement. */
static void forget(lt_Replacement *r) {
  free(r->path);
  free(r->target);
  free(r->temporary);
  *r = (lt_Replacement){0};
}

/* Finds the target. Fails when it cannot be saved to. */
static bool find(lt_Replacement *r, const char *writer, const char *path, Found *f) {
  *r = (lt_Replacement){.writer = writer, .path = strdup(path)};
  if (!r->path) return lt_error_set("cannot write \"%s\": out of memory", path), false;
  f->there = stat(path, &f->stat) == 0;
  if (!f->there && (errno != ENOENT || !*path)) return fail(r, strerror(errno));
  mode_t mode = f->there ? f->stat.st_mode : S_IFREG;
  if (S_ISDIR(mode)) return fail(r, "it is a directory");
  if (S_ISBLK(mode)) return fail(r, "it is a block device");
  if (S_ISSOCK(mode)) return fail(r, "it is a socket");
  r->target = follow(path);
  if (!r->target) return fail(r, strerror(errno));
  f->direct = !S_ISREG(mode) || (f->there && is_descriptor(r->target));
  return true;
}

/* ---- temporary files ------------------------------------------------------------------------- */

/* Returns a number that identifies this machine and its space of process ids. */
static uint32_t machine(void) {
  char text[600] = "";
  struct stat s;
  size_t n = 0;
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (f) {
    n = fread(text, 1, 100, f);
    fclose(f);
  }
  if (stat("/proc/self/ns/pid", &s) == 0)
    n += (size_t)snprintf(text + n, 100, " %llu", (unsigned long long)s.st_ino);
  if (gethostname(text + n, sizeof text - n - 1) == 0) n += strlen(text + n);
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  return hash;
}

/* Reads `digits` hexadecimal digits; NULL when there are fewer. */
static const char *read_hex(const char *s, int digits, unsigned long long *value) {
  *value = 0;
  for (int i = 0; i < digits; i++, s++) {
    const char *all = "0123456789abcdef", *digit = *s ? strchr(all, *s) : NULL;
    if (!digit) return NULL;
    *value = *value << 4 | (unsigned long long)(digit - all);
  }
  return s;
}

/* Returns true for a temporary file of the target whose process has ended. */
static bool is_left_over(int folder, const char *name, const char *base, uint32_t here) {
  unsigned long long other, number;
  size_t n = strlen(base);
  struct stat s;
  if (strncmp(name, base, n) != 0 || name[n] != '.' || name[n + 1] < '1' || name[n + 1] > '9')
    return false;
  char *end;
  errno = 0;
  long pid = strtol(name + n + 1, &end, 10);
  if (errno || pid > INT_MAX || *end != '-') return false;
  const char *rest = read_hex(end + 1, 8, &other);
  rest = rest && *rest == '-' ? read_hex(rest + 1, 16, &number) : NULL;
  if (!rest || strcmp(rest, ".tmp") != 0) return false;
  if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) return false;
  if (other == here) return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
  return time(NULL) - s.st_mtime > FOREIGN_AGE;
}

/* Opens the folder of a path; NULL when it cannot be read. */
static DIR *open_folder(const char *path) {
  char *folder = strdup(path);
  if (!folder) return NULL;
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0;
  DIR *directory = opendir(slash ? folder : ".");
  free(folder);
  return directory;
}

/* Removes temporary files of the same target that killed processes have left. If the target's name
 * is too long to be part of the temporary's name, nothing is removed. */
static void remove_left_over(const char *target) {
  const char *base = base_of(target);
  DIR *folder = strlen(base) <= LONGEST_BASE ? open_folder(target) : NULL;
  if (!folder) return;
  uint32_t here = machine();
  struct dirent *e;
  for (int i = 0; i < MOST_NAMES && (e = readdir(folder)); i++)
    if (is_left_over(dirfd(folder), e->d_name, base, here)) unlinkat(dirfd(folder), e->d_name, 0);
  closedir(folder);
}

/* Writes a name for the temporary file that cannot be guessed. */
static void name_temporary(lt_Replacement *r, size_t room) {
  const char *base = base_of(r->target);
  size_t n = strlen(base);
  if (n > LONGEST_BASE)
    for (n = LONGEST_BASE; n > 1 && (base[n] & 0xc0) == 0x80;) n--; /* characters stay whole */
  snprintf(r->temporary, room, "%.*s.%ld-%08x-%016llx.tmp", (int)(base - r->target + (long)n),
           r->target, (long)getpid(), machine(), (unsigned long long)lt_random_seed());
}

/* Gives the new file the owner and the permissions of the old one, as far as the system allows
 * it. */
static void inherit(int fd, const struct stat *old) {
  mode_t mode = old->st_mode & 07777;
  if (fchown(fd, old->st_uid, old->st_gid) != 0) {
    mode &= 0777; /* no program that runs as its owner becomes one that runs as another */
    if (fchown(fd, (uid_t)-1, old->st_gid) != 0) mode &= 0707;
  }
  if (fchmod(fd, mode) != 0) errno = 0; /* a strange file system: the usual permissions */
}

/* Creates the temporary file in the target's folder, so that the rename stays on one file
 * system. */
static bool open_beside(lt_Replacement *r, const Found *f) {
  size_t room = strlen(r->target) + SUFFIX;
  int fd = -1;
  remove_left_over(r->target);
  r->temporary = malloc(room);
  if (!r->temporary) return fail(r, "out of memory");
  for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
    name_temporary(r, room);
    fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
              f->there ? 0600 : 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return fail(r, strerror(errno));
  if (f->there) inherit(fd, &f->stat);
  r->file = fdopen(fd, "wb");
  if (r->file) return true;
  fail(r, strerror(errno));
  close(fd);
  unlink(r->temporary);
  return false;
}

/* ---- pipes and devices ----------------------------------------------------------------------- */

/* Opens a pipe when it has a reader, other files at once. -1 with errno. */
static int open_for_reader(const char *path, bool is_pipe) {
  const struct timespec pause = {0, 10 * 1000 * 1000};
  for (;;) {
    int fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 || errno != ENXIO || !is_pipe) return fd;
    (void)nanosleep(&pause, NULL); /* shorter when a signal comes, such as a window's new size */
    if (lt_stopped()) return errno = EINTR, -1;
  }
}

/* Opens a pipe or character device for writing. */
static bool open_directly(lt_Replacement *r, const Found *f) {
  struct stat s;
  int fd = open_for_reader(r->path, S_ISFIFO(f->stat.st_mode));
  if (fd < 0) return fail(r, strerror(errno));
  bool same = fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == (f->stat.st_mode & S_IFMT);
  errno = 0;
  if (same && fcntl(fd, F_SETFL, O_WRONLY) == 0 && (!S_ISREG(s.st_mode) || !ftruncate(fd, 0)))
    r->file = fdopen(fd, "wb");
  if (r->file) return true;
  fail(r, errno ? strerror(errno) : "it changed while it was opened");
  close(fd);
  return false;
}

/* Between hold_sigpipe and release_sigpipe, a pipe that loses its reader makes the write fail; it
 * does not end the process. For a regular file this does nothing. */
typedef struct Held {
  sigset_t before;
  bool held, pending;
} Held;

/* Returns true when a SIGPIPE is pending. */
static bool is_pending(void) {
  sigset_t waiting;
  return sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
}

static void hold_sigpipe(const lt_Replacement *r, Held *h) {
  sigset_t set;
  h->held = !r->temporary;
  if (!h->held) return;
  h->pending = is_pending();
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, &h->before);
}

static void release_sigpipe(const Held *h) {
  sigset_t set;
  int number, why = errno;
  if (!h->held) return;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  if (!h->pending && is_pending()) sigwait(&set, &number);
  pthread_sigmask(SIG_SETMASK, &h->before, NULL);
  errno = why;
}

/* ---- saving ---------------------------------------------------------------------------------- */

bool lt_replace_open(lt_Replacement *r, const char *writer, const char *path) {
  Found f;
  if (find(r, writer, path, &f) && (f.direct ? open_directly(r, &f) : open_beside(r, &f)))
    return true;
  forget(r);
  return false;
}

bool lt_replace_check(const char *writer, const char *path) {
  lt_Replacement r;
  Found f;
  bool ok = find(&r, writer, path, &f) && (f.direct || open_beside(&r, &f));
  if (r.file) {
    fclose(r.file);
    unlink(r.temporary);
  }
  forget(&r);
  return ok;
}

void lt_replace_write(lt_Replacement *r, const void *data, size_t n) {
  Held held;
  hold_sigpipe(r, &held);
  errno = 0;
  for (size_t at = 0, piece; at < n && !r->why; at += piece) {
    piece = n - at < LT_FILE_PIECE ? n - at : LT_FILE_PIECE;
    if (lt_stopped())
      r->why = EINTR;
    else if (fwrite((const char *)data + at, 1, piece, r->file) != piece)
      r->why = errno ? errno : EIO;
  }
  release_sigpipe(&held);
}

/* Syncs the folder's entry to disk as well. Failures are ignored, because some file systems do not
 * support it. */
static void sync_folder(const char *path) {
  DIR *folder = open_folder(path);
  if (!folder) return;
  if (fsync(dirfd(folder)) != 0) errno = 0;
  closedir(folder);
}

/* Flushes, syncs and closes the file. */
static bool finish(lt_Replacement *r, bool good) {
  Held held;
  hold_sigpipe(r, &held);
  errno = 0;
  bool written =
      good && !r->why && fflush(r->file) == 0 && (!r->temporary || fsync(fileno(r->file)) == 0);
  if (!r->why) r->why = errno;
  if (fclose(r->file) != 0 && written) {
    written = false;
    r->why = errno;
  }
  release_sigpipe(&held);
  return written;
}

bool lt_replace_commit(lt_Replacement *r, bool good) {
  bool written = finish(r, good);
  if (written && r->temporary && rename(r->temporary, r->target) != 0) {
    written = false;
    r->why = errno;
  }
  if (written && r->temporary) sync_folder(r->target);
  if (!written && r->temporary) unlink(r->temporary);
  if (!written && good) fail(r, r->why ? strerror(r->why) : "write error");
  forget(r);
  return written;
}
