/* run.h: what devices share to run the bodies of rows LT_EACH (each.h). */
#ifndef LT_EACH_RUN_H
#define LT_EACH_RUN_H

#include "args.h"
#include "kernel.h"

#define LT_EACH_BYTES 256 /* an upper limit for the struct of a body */

/* A call, ready to run. */
typedef struct lt_EachRun {
  lt_Dtype compute; /* float32, float64 or int64: the type T of the body */
  int64_t n, cost;  /* elements of the first result; the work of one, in additions */
  int nin;
  lt_Tensor *in[LT_EACH_INPUTS]; /* contiguous */
  union {
    int64_t alignment;
    unsigned char bytes[LT_EACH_BYTES];
  } args;
  size_t size; /* of args */
} lt_EachRun;

/* Prepares a call of a row LT_EACH. Inputs get the dtype in which they are computed with `widen`,
 * otherwise they keep their own. Returns false on failure, with nothing to close. */
bool lt_each_open(const lt_Call *c, bool widen, lt_EachRun *run);
/* Releases what lt_each_open allocated. */
void lt_each_close(lt_EachRun *run);

#endif
