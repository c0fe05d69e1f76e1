/* test_replace.c: files that are replaced atomically (src/tensor/io/replace.h). */
#include "check.h"
#include "core.h"
#include "io/replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<sys/sysmacros.h>) /* where <sys/types.h> has no makedev */
#include <sys/sysmacros.h>
#endif

static char folder[] = "/tmp/lutra-replace-XXXXXX";

/* Returns a path in the test's folder; valid for the next 64 calls. */
static const char *path_of(const char *name) {
  static char paths[64][600];
  static int next;
  char *path = paths[next++ % 64];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static bool save(const char *path, const char *text) {
  lt_Replacement r;
  if (!lt_replace_open(&r, "save", path)) return false;
  lt_replace_write(&r, text, strlen(text));
  return lt_replace_commit(&r, true);
}

/* Returns the content of a file, "" when there is none; valid until the next call. */
static const char *content(const char *path) {
  static char text[200];
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f) fclose(f);
  text[n] = 0;
  return text;
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "wb");
  REQUIRE(f);
  fputs(text, f);
  fclose(f);
}

/* Returns how many entries of the folder have `piece` in their name. */
static int count(const char *piece) {
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) n += strstr(e->d_name, piece) != NULL;
  if (d) closedir(d);
  return n;
}

/* ---- files that are replaced ----------------------------------------------------------------- */

static void files_are_replaced(void) {
  const char *path = path_of("plain");
  CHECK(save(path, "one"));
  CHECK_STR(content(path), "one");
  CHECK(save(path, "two"));
  CHECK_STR(content(path), "two");
  lt_Replacement r; /* the old file stays until the end */
  REQUIRE(lt_replace_open(&r, "save", path));
  lt_replace_write(&r, "three", 5);
  CHECK_STR(content(path), "two");
  CHECK(!lt_replace_commit(&r, false));
  CHECK_STR(content(path), "two");
  CHECK_INT(count(".tmp"), 0);
  CHECK(lt_replace_check("save", path));
  CHECK_STR(content(path), "two");
  CHECK_INT(count(".tmp"), 0);
}

static mode_t mode_of(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 ? s.st_mode & 07777 : 0;
}

static void permissions_are_kept(void) {
  const char *path = path_of("mode");
  mode_t before = umask(022);
  CHECK(save(path, "x"));
  CHECK_INT(mode_of(path), 0644);
  CHECK_INT(chmod(path, 0600), 0);
  lt_Replacement r;
  REQUIRE(lt_replace_open(&r, "save", path));
  CHECK_INT(mode_of(r.temporary), 0600); /* no other user can read it at any time */
  CHECK(lt_replace_commit(&r, true));
  CHECK_INT(mode_of(path), 0600);
  CHECK_INT(chmod(path, 0666), 0); /* more than the umask allows */
  CHECK(save(path, "y"));
  CHECK_INT(mode_of(path), 0666);
  umask(before);
}

static bool is_link(const char *path) {
  struct stat s;
  return lstat(path, &s) == 0 && S_ISLNK(s.st_mode);
}

static void links_are_followed(void) {
  const char *target = path_of("target"), *link = path_of("link"), *chain = path_of("chain");
  CHECK_INT(mkdir(path_of("below"), 0700), 0);
  CHECK_INT(symlink("target", link), 0); /* relative to the folder of the link; it does not exist
                                          * yet */
  CHECK(save(link, "one"));
  CHECK(is_link(link));
  CHECK(!is_link(target));
  CHECK_STR(content(target), "one");
  CHECK_INT(symlink("../link", path_of("below/up")), 0);
  CHECK_INT(symlink(path_of("below/up"), chain), 0);
  CHECK(save(chain, "two"));
  CHECK(is_link(chain) && is_link(path_of("below/up")) && is_link(link));
  CHECK_STR(content(target), "two");
  CHECK_INT(symlink("loop", path_of("loop")), 0);
  CHECK(!save(path_of("loop"), "x"));
  CHECK_CONTAINS(lt_error(), "loop\": ");
  CHECK(is_link(path_of("loop")));
  CHECK_INT(symlink("/no/such/folder/x", path_of("away")), 0);
  CHECK(!save(path_of("away"), "x"));
  CHECK_CONTAINS(lt_error(), "/away\": No such file or directory");
  CHECK_INT(count(".tmp"), 0);
}

static void long_names_are_saved(void) {
  char name[256];
  memset(name, 'n', 255);
  name[255] = 0;
  CHECK(save(path_of(name), "x"));
  CHECK_STR(content(path_of(name)), "x");
  for (int i = 0; i + 1 < 255; i += 2) memcpy(name + i, "\xc3\xa9", 2);
  name[254] = 0;
  CHECK(save(path_of(name), "y"));
  CHECK_STR(content(path_of(name)), "y");
  CHECK_INT(count(".tmp"), 0);
}

/* ---- files that are written in place --------------------------------------------------------- */

typedef struct Reader {
  const char *path;
  size_t most; /* bytes to read before it closes the pipe */
  char text[200];
} Reader;

static void *read_pipe(void *state) {
  Reader *r = state;
  size_t n = 0;
  int fd = open(r->path, O_RDONLY);
  for (ssize_t actual = 1; actual > 0 && n<r->most; n += actual> 0 ? (size_t)actual : 0)
    actual = read(fd, r->text + n, r->most - n);
  close(fd);
  return NULL;
}

static void pipes_are_written(void) {
  const char *path = path_of("pipe");
  struct stat s;
  CHECK_INT(mkfifo(path, 0600), 0);
  CHECK(lt_replace_check("save", path)); /* does not open it, so it does not block until there is a
                                          * reader */
  Reader all = {.path = path, .most = 100};
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, read_pipe, &all) == 0);
  CHECK(save(path, "through the pipe"));
  pthread_join(thread, NULL);
  CHECK_STR(all.text, "through the pipe");
  CHECK_INT(stat(path, &s), 0);
  CHECK(S_ISFIFO(s.st_mode));
  CHECK_INT(count(".tmp"), 0);
}

/* Ends after a megabyte when nothing is read: the pipe holds 64 KiB. */
static void a_closed_pipe_is_an_error(void) {
  const char *path = path_of("left");
  char *megabyte = calloc(1 << 20, 1);
  CHECK_INT(mkfifo(path, 0600), 0);
  Reader some = {.path = path, .most = 3};
  pthread_t thread;
  REQUIRE(megabyte && pthread_create(&thread, NULL, read_pipe, &some) == 0);
  lt_Replacement r;
  REQUIRE(lt_replace_open(&r, "save", path));
  lt_replace_write(&r, megabyte, 1 << 20);
  CHECK(!lt_replace_commit(&r, true));
  CHECK_CONTAINS(lt_error(), "left\": Broken pipe");
  pthread_join(thread, NULL);
  free(megabyte);
}

static void *interrupt_soon(void *state) {
  (void)state;
  const struct timespec pause = {0, 30 * 1000 * 1000};
  nanosleep(&pause, NULL);
  atomic_store(&lt_interrupt_flag, true);
  return NULL;
}

/* Opening a pipe without a reader blocks, but Ctrl-C interrupts it. */
static void opening_a_pipe_can_be_interrupted(void) {
  const char *path = path_of("nobody");
  CHECK_INT(mkfifo(path, 0600), 0);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, interrupt_soon, NULL) == 0);
  CHECK(!save(path, "x"));
  pthread_join(thread, NULL);
  CHECK_CONTAINS(lt_error(), "nobody\": Interrupted");
  atomic_store(&lt_interrupt_flag, false);
}

static void devices_are_written(void) {
  struct stat s;
  const char *path = path_of("null");
  if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) == 0) { /* for root only */
    int fd = open(path, O_WRONLY);
    if (fd >= 0) CHECK(save(path, "x")); /* some file systems have no devices */
    if (fd >= 0) close(fd);
    CHECK_INT(stat(path, &s), 0);
    CHECK(S_ISCHR(s.st_mode));
  } else {
    CHECK(save("/dev/null", "x"));
  }
  if (access("/dev/full", W_OK) == 0) {
    CHECK(!save("/dev/full", "x"));
    CHECK_STR(lt_error(), "save: cannot write \"/dev/full\": No space left on device");
  }
  CHECK_INT(count(".tmp"), 0);
}

static void other_file_types_are_refused(void) {
  CHECK(!save(folder, "x"));
  CHECK_CONTAINS(lt_error(), "it is a directory");
  CHECK(!lt_replace_check("save", folder));
  CHECK(!save("", "x"));
  CHECK(!save("/no/such/folder/x", "x"));
  CHECK_STR(lt_error(), "save: cannot write \"/no/such/folder/x\": No such file or directory");
  CHECK(!lt_replace_check(NULL, "/no/such/folder/x"));
  CHECK_STR(lt_error(), "\"/no/such/folder/x\": No such file or directory");
  const char *disk = path_of("disk");
  if (mknod(disk, S_IFBLK | 0600, makedev(7, 250)) == 0) {
    CHECK(!save(disk, "x"));
    CHECK_CONTAINS(lt_error(), "it is a block device");
  }
}

/* /dev/stdout refers to the open file, not to a name that could be given to another one. */
static void open_files_are_written(void) {
  char name[64];
  int fd = open(path_of("open"), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  if (access(name, W_OK) == 0) {
    struct stat before, after;
    CHECK_INT(write(fd, "a long text that goes", 21), 21);
    CHECK_INT(fstat(fd, &before), 0);
    CHECK(save(name, "short"));
    CHECK_STR(content(path_of("open")), "short");
    CHECK_INT(stat(path_of("open"), &after), 0);
    CHECK_INT(before.st_ino, after.st_ino);
  }
  close(fd);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* RLIMIT_FSIZE simulates a full disk. */
static void a_full_disk_leaves_the_old_file(void) {
  const char *path = path_of("full");
  char *megabyte = calloc(1 << 20, 1);
  struct rlimit before, small;
  CHECK(save(path, "old"));
  signal(SIGXFSZ, SIG_IGN);
  REQUIRE(megabyte && getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = 4096;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  lt_Replacement r;
  bool open = lt_replace_open(&r, "save", path);
  if (open) lt_replace_write(&r, megabyte, 1 << 20);
  bool committed = open && lt_replace_commit(&r, true);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  CHECK(open && !committed);
  CHECK_CONTAINS(lt_error(), "full\": File too large");
  CHECK_STR(content(path), "old");
  CHECK_INT(count(".tmp"), 0);
  free(megabyte);
}

/* ---- temporary files of killed processes ----------------------------------------------------- */

/* Begins to save in another process, which is killed. Returns its id. */
static pid_t kill_a_save(const char *path) {
  pid_t child = fork();
  if (child == 0) {
    lt_Replacement r;
    if (lt_replace_open(&r, "save", path)) lt_replace_write(&r, "half", 4);
    raise(SIGKILL);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  return child;
}

static void temporary_files_of_killed_processes_are_removed(void) {
  const char *path = path_of("killed"), *other = path_of("killed2");
  kill_a_save(path);
  kill_a_save(other);
  CHECK_INT(count("killed."), 1);
  CHECK_INT(count("killed2."), 1);
  CHECK(save(path, "whole"));
  CHECK_STR(content(path), "whole");
  CHECK_INT(count("killed."), 0);
  CHECK_INT(count("killed2."), 1); /* that of another target */
  CHECK(save(other, "whole"));
  CHECK_INT(count(".tmp"), 0);
}

/* Creates a file that was last written `age` seconds ago. */
static void make_aged(const char *path, long age) {
  struct timeval times[2];
  write_file(path, "");
  gettimeofday(&times[0], NULL);
  times[0].tv_sec -= age;
  times[1] = times[0];
  CHECK_INT(utimes(path, times), 0);
}

/* Only files that are certainly temporary files of this target, and that no process writes, are
 * removed. */
static void no_other_files_are_removed(void) {
  const char *path = path_of("k");
  char mine[100], name[100];
  lt_Replacement r;
  REQUIRE(lt_replace_open(&r, "save", path)); /* of a running process */
  snprintf(mine, sizeof mine, "%s", strrchr(r.temporary, '/') + 1);
  const char *machine = strchr(mine, '-') + 1;
  pid_t dead = kill_a_save(path_of("other"));
  CHECK(save(path_of("other"), ""));
  static const char *const forms[] = {
      "k.%ld-%.8s.tmp",
      "k.%ld-%.8s-0123456789abcde.tmp",
      "k.%ld-%.8s-0123456789abcdef.tmp~",
      "kk.%ld-%.8s-0123456789abcdef.tmp",
      "k.0%ld-%.8s-0123456789abcdef.tmp",
      "k.-%ld-%.8s-0123456789abcdef.tmp",
      "k.%ld-%.8s-0123456789ABCDEF.tmp",
  };
  enum { FORMS = sizeof forms / sizeof *forms };
  for (int i = 0; i < FORMS; i++) {
    snprintf(name, sizeof name, forms[i], (long)dead, machine);
    make_aged(path_of(name), 1000000);
  }
  char folder_name[100];
  snprintf(folder_name, sizeof folder_name, "k.%ld-%.8s-00000000000000f0.tmp", (long)dead, machine);
  CHECK_INT(mkdir(path_of(folder_name), 0700), 0);
  char young[100], old[100], gone[100];
  char foreign[9];
  snprintf(foreign, sizeof foreign, "%.8s", machine);
  foreign[0] = foreign[0] == '0' ? '1' : '0';
  snprintf(young, sizeof young, "k.%ld-%s-0000000000000001.tmp", (long)dead, foreign);
  snprintf(old, sizeof old, "k.%ld-%s-0000000000000002.tmp", (long)dead, foreign);
  snprintf(gone, sizeof gone, "k.%ld-%.8s-0000000000000003.tmp", (long)dead, machine);
  make_aged(path_of(young), 3600);
  make_aged(path_of(old), 100000);
  make_aged(path_of(gone), 0);
  CHECK(save(path, "x"));
  for (int i = 0; i < FORMS; i++) {
    snprintf(name, sizeof name, forms[i], (long)dead, machine);
    CHECK_INT(access(path_of(name), F_OK), 0);
    unlink(path_of(name));
  }
  CHECK_INT(access(path_of(folder_name), F_OK), 0);
  CHECK_INT(access(path_of(mine), F_OK), 0);
  CHECK_INT(access(path_of(young), F_OK), 0);
  CHECK(access(path_of(old), F_OK) != 0);
  CHECK(access(path_of(gone), F_OK) != 0);
  CHECK(lt_replace_commit(&r, true));
  CHECK_STR(content(path), "");
  rmdir(path_of(folder_name));
  unlink(path_of(young));
}

/* Names left by a process with the same id do not prevent a save. */
static void names_cannot_be_guessed(void) {
  lt_Replacement a, b;
  char name[600];
  for (int i = 0; i < 20; i++) {
    snprintf(name, sizeof name, "%s/n.%ld-%d.tmp", folder, (long)getpid(), i);
    write_file(name, "");
  }
  REQUIRE(lt_replace_open(&a, "save", path_of("n")));
  REQUIRE(lt_replace_open(&b, "save", path_of("n")));
  CHECK(strcmp(a.temporary, b.temporary) != 0);
  CHECK(lt_replace_commit(&a, true));
  CHECK(lt_replace_commit(&b, true));
  CHECK_INT(count("n."), 20);
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  RUN(files_are_replaced);
  RUN(permissions_are_kept);
  RUN(links_are_followed);
  RUN(long_names_are_saved);
  RUN(pipes_are_written);
  RUN(a_closed_pipe_is_an_error);
  RUN(opening_a_pipe_can_be_interrupted);
  RUN(devices_are_written);
  RUN(other_file_types_are_refused);
  RUN(open_files_are_written);
  RUN(a_full_disk_leaves_the_old_file);
  RUN(temporary_files_of_killed_processes_are_removed);
  RUN(no_other_files_are_removed);
  RUN(names_cannot_be_guessed);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) printf("could not remove %s\n", folder);
  return check_end();
}
