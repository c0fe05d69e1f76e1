/* replace.h: files that are saved as a whole or not at all. Needs no tensor and no device, so that
 * texts are saved by it, too. */
#ifndef LT_IO_REPLACE_H
#define LT_IO_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A file that is being saved. */
typedef struct lt_Replacement {
  const char *writer; /* begins its messages; NULL: they begin with the path */
  char *path;         /* as the caller wrote it, for messages */
  char *target;       /* what the path means, through links */
  char *temporary;    /* beside the target; NULL where the target is written directly */
  FILE *file;         /* write here by lt_replace_write */
  int why;            /* errno of the first write that failed, else 0 */
} lt_Replacement;

/* Starts to save a file. The last link of the path is followed, also to a file that does not exist
 * yet. A regular file is replaced and keeps its permissions. A pipe or a character device is
 * written directly; opening a pipe blocks until it has a reader. Folders, sockets and block devices
 * are refused. False with "<writer>: <path>: <why>" in the error slot; nothing has changed then. */
bool lt_replace_open(lt_Replacement *r, const char *writer, const char *path);
/* Writes n bytes; a failure is kept for lt_replace_commit. */
void lt_replace_write(lt_Replacement *r, const void *data, size_t n);
/* Puts the new file in the place of the old one, if `good` and if everything reached the disk; else
 * removes it, with a message unless `good` was false. Always ends the replacement. */
bool lt_replace_commit(lt_Replacement *r, bool good);

/* Could lt_replace_open start to save this path? Changes nothing there, opens no pipe. */
bool lt_replace_check(const char *writer, const char *path);

#endif
