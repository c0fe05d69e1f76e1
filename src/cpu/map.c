/* map.c: maps: one pass over the tensors of several lists, in one parallel region for any number of
 * tensors. The elements of all tensors are numbered consecutively, and each thread processes a
 * range.
 *
 * A range is processed in blocks: a dense tensor of the compute type is used in memory, and so are
 * rows, if those of all tensors are dense; elements of others are loaded to a block on the stack
 * and stored from it. So nothing is allocated for any layout or dtype, and an element's result does
 * not depend on the split. */
#include "cpu.h"
#include "kernel_support.h"
#include "vector.h"

#define BLOCK 1024 /* elements of a block on the stack */
#define FEW   32   /* up to this many tensors of a list need no allocation for their jobs */
#define SHORT 64   /* least elements of rows that are used in memory */

/* The tensors at one index of the lists. */
typedef struct Job {
  int64_t first; /* number of its first element among those of all jobs */
  bool dense;    /* no tensor needs blocks, and all lists or no optional ones are given */
  int64_t row;   /* elements of the rows that are used in memory, or 0 */
  lt_Dtype compute;
  char *data[LT_MAP_TENSORS]; /* NULL: this list is not given */
} Job;

typedef struct Plan {
  const lt_Call *call;
  int id, lists, jobs;
  unsigned written;
  bool uniform;  /* all of the optional lists are given, or none */
  int64_t numel; /* elements of all jobs */
  Job *job;
  double numbers[LT_MAP_NUMBERS];
} Plan;

static const lt_Vectors *vectors_of(const Job *j) { return lt_cpu_isa()->vectors[j->compute]; }

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Copies n elements of t, from element `from` in the order of its shape, to a block, or back. */
static void transfer(const Job *job, const lt_Tensor *t, char *data, int64_t from, int64_t n,
                     char *block, bool store) {
  const lt_Vectors *v = vectors_of(job);
  int64_t size = (int64_t)lt_dtype_size(t->dtype), at[LT_MAX_DIMS] = {0};
  int last = t->ndim - 1;
  bool dense = lt_tensor_is_contiguous(t);
  int64_t row = dense ? t->numel : t->shape[last], stride = dense ? size : t->strides[last] * size;
  int64_t outer = from / row, inner = from % row;
  for (int d = last - 1; d >= 0 && !dense; outer /= t->shape[d--]) at[d] = outer % t->shape[d];
  while (n > 0) {
    int64_t piece = row - inner < n ? row - inner : n;
    char *memory = data + inner * stride;
    for (int d = 0; d < last && !dense; d++) memory += at[d] * t->strides[d] * size;
    if (store)
      v->store[t->dtype](piece, memory, stride, block);
    else
      v->load[t->dtype](piece, block, memory, stride);
    block += piece * (int64_t)lt_dtype_size(job->compute);
    n -= piece;
    inner = 0;
    for (int d = last - 1; d >= 0 && !dense && ++at[d] == t->shape[d]; d--) at[d] = 0;
  }
}

/* Computes n <= BLOCK elements of job i, from element `from` on. A list that is not given reads as
 * zeros. */
static void run_block(const Plan *p, int i, int64_t from, int64_t n,
                      char block[LT_MAP_TENSORS][BLOCK * 8]) {
  const Job *job = &p->job[i];
  char *memory[LT_MAP_TENSORS];
  int64_t size = (int64_t)lt_dtype_size(job->compute);
  unsigned through = 0; /* lists whose tensors need blocks */
  for (int k = 0; k < p->lists; k++) {
    const lt_Tensor *t = lt_map_tensor(p->call, k, i);
    memory[k] = block[k];
    if (!t)
      memset(block[k], 0, (size_t)(n * size));
    else if (t->dtype == job->compute && lt_tensor_is_contiguous(t))
      memory[k] = job->data[k] + from * size;
    else
      through |= 1u << k;
    if (through >> k & 1) transfer(job, t, job->data[k], from, n, block[k], false);
  }
  vectors_of(job)->map[p->id](n, memory, p->written, p->numbers);
  for (unsigned left = through & p->written; left; left &= left - 1) {
    int k = __builtin_ctz(left);
    transfer(job, lt_map_tensor(p->call, k, i), job->data[k], from, n, block[k], true);
  }
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_dense(const Plan *p, const Job *job, int64_t from, int64_t n) {
  char *memory[LT_MAP_TENSORS];
  int64_t size = (int64_t)lt_dtype_size(job->compute);
  for (int k = 0; k < p->lists; k++) memory[k] = job->data[k] ? job->data[k] + from * size : NULL;
  vectors_of(job)->map[p->id](n, memory, p->written, p->numbers);
}

/* Returns the bytes from the first element of t to the first of row number `row`. */
static int64_t row_offset(const lt_Tensor *t, int64_t row, int64_t size) {
  int64_t offset = 0;
  for (int d = t->ndim - 2; d > 0; row /= t->shape[d--])
    offset += row % t->shape[d] * t->strides[d];
  return t->ndim > 1 ? (offset + row * t->strides[0]) * size : 0;
}

static void run_rows(const Plan *p, int i, int64_t from, int64_t end) {
  const Job *job = &p->job[i];
  char *memory[LT_MAP_TENSORS];
  int64_t size = (int64_t)lt_dtype_size(job->compute);
  for (int64_t n; from < end; from += n) {
    int64_t row = from / job->row, inner = from % job->row;
    n = job->row - inner < end - from ? job->row - inner : end - from;
    for (int k = 0; k < p->lists; k++) {
      const lt_Tensor *t = lt_map_tensor(p->call, k, i);
      memory[k] = t ? job->data[k] + row_offset(t, row, size) + inner * size : NULL;
    }
    vectors_of(job)->map[p->id](n, memory, p->written, p->numbers);
  }
}

static void run_blocks(const Plan *p, int i, int64_t from, int64_t end) {
  _Alignas(64) char block[LT_MAP_TENSORS][BLOCK * 8];
  for (int64_t n; from < end; from += n) {
    n = end - from < BLOCK ? end - from : BLOCK;
    run_block(p, i, from, n, block);
  }
}

static int64_t end_of(const Plan *p, int i) {
  return i + 1 < p->jobs ? p->job[i + 1].first : p->numel;
}

/* Processes elements begin <= e < end of all jobs. */
static void run(void *plan, int64_t begin, int64_t end) {
  const Plan *p = plan;
  int low = 0, high = p->jobs - 1;
  while (low < high) { /* find the last job that begins at or before `begin` */
    int middle = low + (high - low + 1) / 2;
    if (p->job[middle].first <= begin)
      low = middle;
    else
      high = middle - 1;
  }
  for (int i = low; i < p->jobs && p->job[i].first < end; i++) {
    int64_t first = p->job[i].first, stop = end_of(p, i) < end ? end_of(p, i) : end;
    int64_t from = (begin > first ? begin : first) - first;
    if (p->job[i].dense)
      run_dense(p, &p->job[i], from, stop - first - from);
    else if (p->job[i].row)
      run_rows(p, i, from, stop - first);
    else
      run_blocks(p, i, from, stop - first);
  }
}

/* Returns the elements of a row of job i, if rows of all its tensors are used in memory, else 0. */
static int64_t row_of(const Plan *p, const Job *job, int i) {
  const lt_Tensor *like = lt_map_tensor(p->call, 0, i);
  int last = like->ndim - 1;
  if (last < 0 || !p->uniform || like->shape[last] < SHORT) return 0;
  for (int k = 0; k < p->lists; k++) {
    const lt_Tensor *t = lt_map_tensor(p->call, k, i);
    if (t && (t->dtype != job->compute || t->strides[last] != 1)) return 0;
  }
  return like->shape[last];
}

/* Numbers the elements of all jobs and classifies their tensors. */
static void open_jobs(Plan *p) {
  for (int i = 0; i < p->jobs; i++) {
    Job *job = &p->job[i];
    job->first = p->numel;
    job->compute = lt_dtype_compute(lt_map_tensor(p->call, 0, i)->dtype);
    job->dense = p->uniform;
    for (int k = 0; k < p->lists; k++) {
      lt_Tensor *t = lt_map_tensor(p->call, k, i);
      job->data[k] = t ? lt_tensor_data(t) : NULL;
      job->dense &= !t || (t->dtype == job->compute && lt_tensor_is_contiguous(t));
    }
    job->row = job->dense ? 0 : row_of(p, job, i);
    p->numel += lt_map_tensor(p->call, 0, i)->numel;
  }
}

bool lt_cpu_map(lt_Call *c) {
  Job few[FEW];
  Plan p = {.call = c, .id = lt_map_id(c->op), .jobs = lt_map_count(c)};
  p.lists = lt_map_info(p.id)->tensors;
  p.written = lt_map_written(c);
  p.uniform = lt_map_uniform(c);
  p.job = p.jobs <= FEW ? few : malloc((size_t)p.jobs * sizeof *p.job);
  if (!p.job) return lt_fail_memory();
  lt_map_numbers(c, p.numbers);
  open_jobs(&p);
  int given = 0;
  for (int k = 0; k < p.lists; k++) given += c->arg[k].kind == LT_ARG_TENSORS;
  lt_share(2 * given * p.numel, p.numel, run, &p);
  if (p.job != few) free(p.job);
  return true;
}
