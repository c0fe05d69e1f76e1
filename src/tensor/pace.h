/* pace.h: how often a host's garbage collector runs, as numbers: no collector and no clock.
 *
 * The collector does a step when the weight of tensors has grown by a batch, and at least a number
 * of boxes, the gap, has been created since the last step. Both numbers are learned from what the
 * steps cost and from what they leave. */
#ifndef LT_PACE_H
#define LT_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* How many boxes are created between two steps.
 *
 * A tensor that two steps of a generational collector find in use is old: dropped later, it stays
 * until a complete collection. So the weight after each step is watched: while it grows, the gap
 * becomes wider, until results are dropped before the second step. A tensor that was in use at one
 * step tells its age there when it is finalized. The gap becomes as narrow as the greatest such
 * age: then no tensor is in use at two steps, and the fewest blocks of memory are. */
typedef struct lt_Gap {
  uint32_t boxes;  /* least number of boxes between two steps */
  uint32_t next;   /* the same until the next step: in a check 1 to 4 more, as `former` allows */
  uint32_t count;  /* of steps in checks, modulo 2^32 */
  int steps;       /* since the window began */
  int64_t begin;   /* weight when the window began */
  int64_t grown;   /* sum of the growth before each step of the window */
  uint32_t oldest; /* greatest age since the last check, or since none was less than the gap */
  uint32_t former; /* the gap before the last check of a narrower one */
  int wait;        /* windows until the next check */
  int patience;    /* the next value of `wait` */
  bool checking;   /* the window checks a narrower gap: its steps come in no regular order */
  bool trying;     /* the window is the first one with a narrower gap */
} lt_Gap;

/* Starts with the smallest gap. */
void lt_gap_init(lt_Gap *g);
/* Starts a new window at this weight. */
void lt_gap_begin(lt_Gap *g, int64_t weight);
/* Counts a tensor that was in use at one step, when it was the `age`-th last one created. */
void lt_gap_age(lt_Gap *g, uint32_t age);
/* Counts a step that left this weight, after the weight had grown by `grown`. */
void lt_gap_count(lt_Gap *g, int64_t weight, int64_t grown);
/* Makes the gap wider: dropped results became old. */
void lt_gap_widen(lt_Gap *g);

/* What a step cost: all in nanoseconds and bytes of weight. */
typedef struct lt_StepCost {
  int64_t time;       /* since the end of the last step, with this one */
  int64_t step;       /* of that, in this step */
  int64_t finalizers; /* of that, usual for the boxes that it finalized */
  int64_t grown;      /* growth of the weight before this step */
} lt_StepCost;

/* How much the weight grows between two steps: as little as the cost of steps allows, so that
 * results reuse memory that is still in the processor's caches. */
typedef struct lt_Batch {
  int64_t size;    /* bytes; in the window of a try, the size that is tried */
  int steps;       /* since the window began */
  lt_StepCost sum; /* of the window */
  bool trying, up; /* the window tries a size; this try, or the next one, is of a larger size */
  double former;   /* nanoseconds of steps per byte before the try, besides finalizers */
  int wait;        /* windows until the next try */
  int patience;    /* the next value of `wait` */
} lt_Batch;

#define LT_SMALLEST_BATCH ((int64_t)1 << 19) /* fits into the caches of a core */

/* Starts with the smallest batch. */
void lt_batch_init(lt_Batch *b);
/* Counts a step. The size stays between LT_SMALLEST_BATCH and `most`. */
void lt_batch_count(lt_Batch *b, const lt_StepCost *cost, int64_t most);

#endif
