/* pace.c: see pace.h. */
#include "pace.h"

enum {
  GAP_PATIENCE = 16,   /* most windows between two checks of a gap */
  BATCH_PATIENCE = 16, /* and of a batch */
  GAP_WINDOW = 32,     /* steps after which the gap may change */
  LEAST_STEPS = 8,     /* those where what they left is clear */
  MOST_GAP = 32,       /* boxes */
  BATCH_WINDOW = 8,    /* steps after which the batch may change */
};

static int doubled(int patience, int most) { return 2 * patience < most ? 2 * patience : most; }

void lt_gap_init(lt_Gap *g) {
  *g = (lt_Gap){.boxes = 1, .next = 1, .oldest = {1, 1}, .patience = 1};
}

void lt_gap_begin(lt_Gap *g, int64_t weight) {
  g->steps = 0;
  g->grown = 0;
  g->begin = weight;
}

void lt_gap_age(lt_Gap *g, uint32_t age) {
  if (age > g->oldest[0]) g->oldest[0] = age;
}

/* Puts the next check off. */
static void put_off(lt_Gap *g) {
  g->patience = doubled(g->patience, GAP_PATIENCE);
  g->wait = g->patience;
}

/* After a try the former gap returns. */
void lt_gap_widen(lt_Gap *g) {
  g->failed = g->trying;
  if (g->trying) {
    g->boxes = g->former;
    put_off(g);
  } else {
    g->boxes = (uint32_t)doubled((int)g->boxes, MOST_GAP);
  }
  g->trying = g->checking = false;
}

/* Ends a window in which little was left. A gap that is a multiple of a loop's boxes sees the same
 * part of the loop at each step, so ages are checked before they are believed. */
static void may_narrow(lt_Gap *g) {
  uint32_t oldest = g->oldest[g->oldest[1] > g->oldest[0]];
  bool checked = g->checking;
  g->checking = false;
  if (g->trying) {
    g->trying = g->failed = false;
    g->wait = g->patience = 1;
  }
  if (checked && oldest < g->boxes) {
    g->former = g->boxes;
    g->boxes = oldest;
    g->trying = true;
  } else if (checked) {
    put_off(g);
  } else if (oldest < g->boxes) {
    g->checking = --g->wait <= 0 || (!g->failed && 2 * oldest <= g->boxes);
  }
}

/* The gap becomes wider after a window in which more than a sixteenth of all growth was left. */
static void end_window(lt_Gap *g, int64_t weight) {
  if (16 * (weight - g->begin) > g->grown)
    lt_gap_widen(g);
  else
    may_narrow(g);
  g->oldest[1] = g->oldest[0];
  g->oldest[0] = 1;
  lt_gap_begin(g, weight);
}

/* The window ends early when more than an eighth is left, or less than a 32nd: a gap that is too
 * wide wastes as much. */
void lt_gap_count(lt_Gap *g, int64_t weight, int64_t grown) {
  int64_t left = weight - g->begin;
  g->grown += grown;
  bool clear = 8 * left > g->grown || 32 * left <= g->grown;
  if (++g->steps == GAP_WINDOW || (clear && g->steps >= LEAST_STEPS)) end_window(g, weight);
  g->next = g->boxes + (g->checking && (++g->count * 0x9E3779B9u) >> 31);
}

void lt_batch_init(lt_Batch *b) { *b = (lt_Batch){.size = LT_SMALLEST_BATCH, .patience = 1}; }

/* Ends a try in a window with this cost per byte: the larger size is kept, or returned to, if it
 * saves a quarter of the cost. It does not where finalizers become slower than usual, because so
 * much memory leaves the caches. */
static void end_try(lt_Batch *b, double cost) {
  double larger = b->up ? cost : b->former, smaller = b->up ? b->former : cost;
  bool kept = (4 * larger < 3 * smaller) == b->up;
  b->trying = false;
  b->wait = b->patience = kept ? 1 : doubled(b->patience, BATCH_PATIENCE);
  if (kept) return;
  b->size = b->up ? b->size / 2 : 2 * b->size;
  b->up = !b->up;
}

/* The batch becomes smaller after a window whose steps took less than a 64th of the time, besides
 * the finalizers. A size twice as large is tried from time to time while they take more than a
 * sixteenth. A size half as large is tried, too, because the same steps may have become cheaper. */
static void end_batch_window(lt_Batch *b) {
  const lt_StepCost *s = &b->sum;
  int64_t besides = s->step - s->finalizers;
  double cost = besides > 0 && s->grown > 0 ? (double)besides / (double)s->grown : 0;
  bool may_grow = 16 * besides > s->time;
  bool may_shrink = b->size > LT_SMALLEST_BATCH && 64 * s->step > s->time;
  if (b->trying) {
    end_try(b, cost);
  } else if (64 * besides < s->time) {
    b->size /= 2;
  } else if ((may_grow || may_shrink) && --b->wait <= 0) {
    b->up = may_grow && (b->up || !may_shrink);
    b->size = b->up ? 2 * b->size : b->size / 2;
    b->trying = true;
    b->former = cost;
  }
}

void lt_batch_count(lt_Batch *b, const lt_StepCost *cost, int64_t most) {
  lt_StepCost *s = &b->sum;
  s->time += cost->time;
  s->step += cost->step;
  s->finalizers += cost->finalizers;
  s->grown += cost->grown;
  if (++b->steps == BATCH_WINDOW) {
    end_batch_window(b);
    b->steps = 0;
    *s = (lt_StepCost){0};
  }
  if (b->size > most) b->size = most;
  if (b->size < LT_SMALLEST_BATCH) b->size = LT_SMALLEST_BATCH;
}
