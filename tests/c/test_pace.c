/* test_pace.c: how often a host's collector runs, with models of what its steps cost and leave. */
#include "check.h"
#include "pace.h"

#define MiB  ((int64_t)1 << 20)
#define MOST (64 * MiB)

/* A program whose boxes weigh 512 bytes and take 200 ns each, besides the collector. A step costs
 * `fixed` nanoseconds, and `warm` for each box while the batch is small; `cold` when it is not. */
typedef struct Model {
  double fixed, warm, cold;
} Model;

/* Runs so many steps of the model. */
static void run(lt_Batch *b, Model m, int steps) {
  for (int i = 0; i < steps; i++) {
    double boxes = (double)b->size / 512;
    double step = m.fixed + boxes * (b->size > LT_SMALLEST_BATCH ? m.cold : m.warm);
    lt_StepCost cost = {.time = (int64_t)(boxes * 200 + step),
                        .step = (int64_t)step,
                        .finalizers = (int64_t)(boxes * 150),
                        .grown = b->size};
    lt_batch_count(b, &cost, MOST);
    CHECK(b->size >= LT_SMALLEST_BATCH && b->size <= MOST);
  }
}

/* Returns the share of so many steps in which the batch was not the smallest. */
static double share_above_smallest(lt_Batch *b, Model m, int steps) {
  int above = 0;
  for (int i = 0; i < steps; i++) {
    run(b, m, 1);
    above += b->size > LT_SMALLEST_BATCH;
  }
  return (double)above / steps;
}

static const Model cheap = {.fixed = 1000, .warm = 100, .cold = 100};
static const Model dear = {.fixed = 4e6, .warm = 150, .cold = 150};
static const Model cold_finalizers = {.fixed = 1000, .warm = 180, .cold = 500};

static void cheap_steps_keep_the_batch_small(void) {
  lt_Batch b;
  lt_batch_init(&b);
  CHECK(share_above_smallest(&b, cheap, 10000) == 0);
}

/* 4 ms are less than a sixteenth of the time only from 80 MiB on: the most is reached. */
static void dear_steps_make_it_grow(void) {
  lt_Batch b;
  lt_batch_init(&b);
  run(&b, dear, 1000);
  CHECK_INT(b.size, MOST);
}

/* A batch that leaves the caches costs more for each byte, so larger ones are tried, but rarely. */
static void finalizers_that_become_slower_do_not(void) {
  lt_Batch b;
  lt_batch_init(&b);
  CHECK(share_above_smallest(&b, cold_finalizers, 10000) < 0.1);
}

/* The size that suited other work is given up: by halves when steps are cheap, else by tries. */
static void it_returns_when_the_work_changes(void) {
  const Model next[] = {cheap, cold_finalizers};
  for (int i = 0; i < 2; i++) {
    lt_Batch b;
    lt_batch_init(&b);
    run(&b, dear, 1000);
    CHECK_INT(b.size, MOST);
    run(&b, next[i], 600);
    CHECK(share_above_smallest(&b, next[i], 10000) < 0.1);
  }
}

/* Returns after how many steps the gap becomes wider, of results of 1 MiB of which one in `every`
 * is left, first at step `first` (from 0). */
static int steps_until_wider(int every, int first) {
  lt_Gap g;
  lt_gap_init(&g);
  CHECK_INT(g.boxes, 1);
  int64_t weight = 0;
  int steps = 0;
  lt_gap_begin(&g, weight);
  for (; g.boxes == 1 && steps < 64; steps++)
    lt_gap_count(&g, weight += steps % every == first ? MiB : 0, MiB);
  CHECK_INT(g.boxes, 2);
  return steps;
}

/* A third is left: not the whole window of 32 steps. */
static void growth_that_is_left_widens_the_gap(void) { CHECK_INT(steps_until_wider(3, 0), 8); }

/* A twelfth is left: less than an eighth, more than a sixteenth. */
static void little_growth_widens_it_later(void) { CHECK_INT(steps_until_wider(12, 7), 32); }

/* Without growth the gap becomes the smallest again. */
static void it_narrows_when_nothing_is_left(void) {
  lt_Gap g;
  lt_gap_init(&g);
  for (int i = 0; i < 10; i++) lt_gap_widen(&g);
  CHECK_INT(g.boxes, 32);
  lt_gap_begin(&g, 0);
  for (int i = 0; i < 8 * 10; i++) lt_gap_count(&g, 0, MiB); /* five tries, each after a window */
  CHECK_INT(g.boxes, 1);
}

int main(void) {
  RUN(cheap_steps_keep_the_batch_small);
  RUN(dear_steps_make_it_grow);
  RUN(finalizers_that_become_slower_do_not);
  RUN(it_returns_when_the_work_changes);
  RUN(growth_that_is_left_widens_the_gap);
  RUN(little_growth_widens_it_later);
  RUN(it_narrows_when_nothing_is_left);
  return check_end();
}
