/* replace.h: saves files atomically: completely or not at all. Independent of tensors and devices,
 * so it is used for text files, too. */
#ifndef LT_IO_REPLACE_H
#define LT_IO_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A file that is being saved. */
typedef struct lt_Replacement {
  const char *writer; /* begins its messages; NULL: they begin with the path */
  char *path;         /* as the caller wrote it, for messages */
  char *target;       /* the path after symbolic links */
  char *temporary;    /* in the target's folder; NULL if the target is written directly */
  FILE *file;         /* written by lt_replace_write */
  int why;            /* errno of the first write that failed, otherwise 0 */
} lt_Replacement;

/* Starts to save a file. A symbolic link is followed, also to a file that does not exist yet. A
 * regular file is replaced and keeps its permissions. A pipe or a character device is written
 * directly; opening a pipe blocks until it has a reader. Folders, sockets and block devices are
 * refused. On failure returns false with the error "<writer>: <path>: <why>" and changes
 * nothing. */
bool lt_replace_open(lt_Replacement *r, const char *writer, const char *path);
/* Writes n bytes. A failure is reported by lt_replace_commit. */
void lt_replace_write(lt_Replacement *r, const void *data, size_t n);
/* Replaces the old file by the new one, if `good` and if all writes and the sync to disk succeeded;
 * otherwise removes the new file, and fails with an error (without one if `good` is false). Always
 * ends the replacement and frees its memory. */
bool lt_replace_commit(lt_Replacement *r, bool good);

/* Checks that lt_replace_open can save to this path. Changes nothing and opens no pipe. */
bool lt_replace_check(const char *writer, const char *path);

#endif
