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

/* Without growth, and without boxes in use at a step, the gap becomes the smallest again. */
static void it_narrows_when_nothing_is_left(void) {
  lt_Gap g;
  lt_gap_init(&g);
  for (int i = 0; i < 10; i++) lt_gap_widen(&g);
  CHECK_INT(g.boxes, 32);
  lt_gap_begin(&g, 0);
  for (int i = 0; i < 3 * 8; i++) lt_gap_count(&g, 0, MiB); /* the second window is a check */
  CHECK_INT(g.boxes, 1);
}

/* A program that creates boxes of 1 MiB in a loop, under a generational collector. */
typedef struct Program {
  lt_Gap gap;
  int created, stepped, interval;
  int64_t weight;
  int64_t old; /* boxes that two steps have found in use */
  struct {
    int end; /* the number of the box at whose creation it is dropped */
    int seen;
  } box[64]; /* the last ones; end 0: finalized or old */
} Program;

static void begin_program(Program *p) {
  *p = (Program){.created = 0};
  lt_gap_init(&p->gap);
}

static void step_of_program(Program *p) {
  int64_t grown = p->created - p->stepped;
  for (int i = p->created > 64 ? p->created - 63 : 1; i <= p->created; i++) {
    int *end = &p->box[i % 64].end;
    if (*end && *end <= p->created) {
      if (i <= p->stepped && i > p->stepped - p->interval)
        lt_gap_age(&p->gap, (uint32_t)(p->stepped - i + 1));
      *end = 0;
      p->weight -= MiB;
    } else if (*end && ++p->box[i % 64].seen == 2) {
      *end = 0;
      p->old++;
    }
  }
  lt_gap_count(&p->gap, p->weight, grown * MiB);
  p->interval = p->created - p->stepped;
  p->stepped = p->created;
}

/* Creates boxes in a loop of `count`, which are in use until so many others are created. */
static void run_program(Program *p, int boxes, int count, const int *ages) {
  for (int i = 0; i < boxes; i++) {
    if ((uint32_t)(p->created - p->stepped) >= p->gap.next) step_of_program(p);
    int k = ++p->created % 64;
    p->box[k].end = p->created + ages[i % count];
    p->box[k].seen = 0;
    p->weight += MiB;
  }
}

/* The gap becomes about the greatest age; few boxes become old. */
static void it_becomes_the_greatest_age(void) {
  static const int one[] = {1}, product[] = {2, 3, 1}, long_sum[] = {5, 4, 7, 1, 1};
  static const struct {
    int count;
    const int *ages;
    uint32_t gap;
  } loops[] = {{1, one, 1}, {3, product, 3}, {5, long_sum, 7}, {1, one, 1}, {3, product, 3}};
  Program p;
  begin_program(&p);
  for (int i = 0; i < 5; i++) {
    run_program(&p, 15000, loops[i].count, loops[i].ages);
    int64_t old = p.old, near = 0;
    for (int k = 0; k < 1000; k++) {
      run_program(&p, 15, loops[i].count, loops[i].ages);
      near += p.gap.boxes + 1 >= loops[i].gap && p.gap.boxes <= loops[i].gap + 1;
    }
    CHECK(near > 900);
    CHECK(p.old - old < 15000 / 16);
  }
}

/* Returns after how many boxes of a loop of sums, each dropped at the next, the gap is the smallest
 * or one more; before, this loop ran, from which `boxes` were created. */
static int boxes_until_narrow(int boxes, int count, const int *ages) {
  static const int one[] = {1};
  Program p;
  begin_program(&p);
  run_program(&p, boxes, count, ages);
  int n = 0;
  for (; p.gap.boxes > 2 && n < 1000; n++) run_program(&p, 1, 1, one);
  return n;
}

/* A loop whose results are dropped at once gets a narrow gap soon, whatever ran before. */
static void it_narrows_soon_after_another_loop(void) {
  static const int long_sum[] = {5, 4, 7, 1, 1}, list[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1},
                   function[] = {1, 1, 1, 1, 4, 1, 1, 2};
  static const struct {
    int count;
    const int *ages;
  } loops[] = {{5, long_sum}, {10, list}, {8, function}};
  for (int i = 0; i < 3; i++) {
    int sum = 0, tries = 40;
    for (int k = 0; k < tries; k++)
      sum += boxes_until_narrow(3000 + 37 * k, loops[i].count, loops[i].ages);
    CHECK(sum / tries < 100);
  }
}

int main(void) {
  RUN(cheap_steps_keep_the_batch_small);
  RUN(dear_steps_make_it_grow);
  RUN(finalizers_that_become_slower_do_not);
  RUN(it_returns_when_the_work_changes);
  RUN(growth_that_is_left_widens_the_gap);
  RUN(little_growth_widens_it_later);
  RUN(it_narrows_when_nothing_is_left);
  RUN(it_becomes_the_greatest_age);
  RUN(it_narrows_soon_after_another_loop);
  return check_end();
}
