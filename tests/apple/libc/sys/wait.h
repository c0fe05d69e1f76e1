/* wait.h: see lt_libc.h. */
#ifndef LT_APPLE_WAIT_H
#define LT_APPLE_WAIT_H

#include <lt_libc.h>

#define WIFEXITED(s)   (((s)&0177) == 0)
#define WEXITSTATUS(s) (((s) >> 8) & 0377)
#define WIFSIGNALED(s) (((s)&0177) != 0177 && ((s)&0177) != 0)
#define WTERMSIG(s)    ((s)&0177)
enum { WNOHANG = 1 };
pid_t waitpid(pid_t, int *, int);

#endif
