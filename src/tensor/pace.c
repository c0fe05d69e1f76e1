/* pace.c: see pace.h. */
#include "pace.h"

enum {
  GAP_PATIENCE = 8,    /* most windows between two checks of a gap */
  BATCH_PATIENCE = 16, /* and of a batch */
  GAP_WINDOW = 32,     /* steps after which the gap may change */
  LEAST_STEPS = 8,     /* those where what they left is clear */
  LEAST_QUIET = 3,     /* those of a wide gap where it is clear that they left little */
  QUIET_BOXES = 24,    /* with so many boxes, too */
  MOST_GAP = 32,       /* boxes */
  BATCH_WINDOW = 8,    /* steps after which the batch may change */
};

static int doubled(int patience, int most) { return 2 * patience < most ? 2 * patience : most; }

void lt_gap_init(lt_Gap *g) { *g = (lt_Gap){.boxes = 1, .next = 1, .oldest = 1, .patience = 1}; }

void lt_gap_begin(lt_Gap *g, int64_t weight) {
  g->steps = 0;
  g->grown = 0;
  g->begin = weight;
}

void lt_gap_age(lt_Gap *g, uint32_t age) {
  if (age > g->oldest) g->oldest = age;
}

/* Puts the next check off. */
static void put_off(lt_Gap *g) {
  g->patience = doubled(g->patience, GAP_PATIENCE);
  g->wait = g->patience;
}

/* After a check or a try the former gap returns. */
void lt_gap_widen(lt_Gap *g) {
  if (g->trying || g->checking) {
    g->boxes = g->former;
    put_off(g);
  } else {
    g->boxes = (uint32_t)doubled((int)g->boxes, MOST_GAP);
    g->wait = g->patience;
  }
  g->trying = g->checking = false;
}

/* Ends a window in which little was left. A gap that is a multiple of a loop's boxes sees the same
 * part of the loop at each step. So an age is checked in a window of steps in no regular order,
 * about as near to each other as it says, before the gap becomes as narrow. */
static void may_narrow(lt_Gap *g) {
  if (g->trying) {
    g->trying = false;
    g->wait = g->patience = 1;
  }
  if (g->checking) {
    g->checking = false;
    g->trying = g->oldest < g->former;
    g->boxes = g->trying ? g->oldest : g->former;
    if (!g->trying) put_off(g);
  } else if (g->oldest >= g->boxes) {
    g->wait = g->patience;
  } else if (--g->wait <= 0) {
    g->former = g->boxes;
    g->boxes = g->oldest;
    g->checking = true;
  } else {
    return; /* the ages of all windows until the check count */
  }
  g->oldest = 1;
}

/* The gap becomes wider after a window in which more than a sixteenth of all growth was left. */
static void end_window(lt_Gap *g, int64_t weight) {
  if (16 * (weight - g->begin) > g->grown)
    lt_gap_widen(g);
  else
    may_narrow(g);
  lt_gap_begin(g, weight);
}

/* The window ends early when more than an eighth is left, or less than a 32nd: a gap that is too
 * wide wastes as much, so with a wide one it ends after fewer steps. */
static bool is_window(const lt_Gap *g, int64_t left) {
  int quiet = g->checking ? LEAST_STEPS : QUIET_BOXES / (int)g->boxes;
  if (quiet > LEAST_STEPS) quiet = LEAST_STEPS;
  if (quiet < LEAST_QUIET) quiet = LEAST_QUIET;
  if (32 * left <= g->grown) return g->steps >= quiet;
  return g->steps == GAP_WINDOW || (8 * left > g->grown && g->steps >= LEAST_STEPS);
}

void lt_gap_count(lt_Gap *g, int64_t weight, int64_t grown) {
  g->grown += grown;
  g->steps++;
  if (is_window(g, weight - g->begin)) end_window(g, weight);
  g->next = g->boxes;
  if (!g->checking) return;
  g->next += 1 + ((++g->count * 0x9E3779B9u) >> 30);
  if (g->next > g->former + g->former / 2) g->next = g->former + g->former / 2;
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
