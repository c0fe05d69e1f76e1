/* elementwise.c: runs elementwise ops on any layout and dtype, with loops for dense memory of one
 * type.
 *
 * The work is split into blocks. In each block an operand is either used in memory, or gathered and
 * converted to a block on the stack; the result is converted and scattered to memory likewise. An
 * element's result depends on its inputs alone, so the work may be split anywhere: among threads,
 * and between blocks for a check for interrupts. */
#include "cpu.h"
#include "opids.h"
#include "positions.h"
#include "kernel_support.h"
#include "vector.h"

#include <omp.h>

/* Elements in a block if they have up to 8 bytes, half as many if they have 16: the blocks of four
 * operands fit the first cache. */
#define BLOCK 1024
#define ROW_LIMIT                                                                                  \
  64 /* rows of at least this length have their own blocks; shorter ones share a block */

typedef enum Place {
  LINEAR,   /* dense in the loop's order over all dimensions */
  CONSTANT, /* the same element everywhere */
  PERIODIC, /* the same row everywhere */
  STRIDED
} Place;

typedef struct Port { /* an operand */
  const lt_Operand *operand;
  Place place;
  bool direct;        /* its dtype is the compute type */
  bool dense;         /* its innermost dimension is dense */
  int64_t size;       /* bytes of an element in memory */
  int64_t block_size; /* bytes of an element in a block */
} Port;

typedef struct Plan {
  const lt_Loop *loop;
  lt_VectorFn fn;             /* NULL: values are only converted */
  const lt_Vectors *in, *out; /* loads of inputs, and stores of the result */
  int inputs, last;           /* last: the innermost dimension */
  bool rows;                  /* blocks end at the ends of rows */
  int64_t block;              /* elements of a block */
  Port port[4];
  lt_Numbers numbers;
} Plan;

/* ---- operands -------------------------------------------------------------------------------- */

/* Loads n elements from coordinates `from` on into a block, row by row, or stores them from it. */
static void transfer(const Plan *p, const Port *port, const int64_t *from, int64_t n, char *block,
                     bool store) {
  const lt_Loop *l = p->loop;
  const lt_Operand *o = port->operand;
  int64_t at[LT_MAX_DIMS], row = l->shape[p->last], stride = o->strides[p->last];
  memcpy(at, from, sizeof *at * (size_t)l->ndim);
  while (n > 0) {
    int64_t piece = row - at[p->last] < n ? row - at[p->last] : n;
    char *memory = lt_position_address(l->ndim, o, at);
    if (store)
      p->out->store[o->dtype](piece, memory, stride, block);
    else
      p->in->load[o->dtype](piece, block, memory, stride);
    block += piece * port->block_size;
    n -= piece;
    if (n > 0) lt_position_advance(l->ndim, l->shape, at, piece);
  }
}

/* Returns the memory of this operand's n elements if the loop can use it directly, else NULL. */
static char *in_place(const Plan *p, const Port *port, int64_t position, const int64_t *at) {
  if (!port->direct) return NULL;
  if (port->place == LINEAR) return port->operand->data + position * port->size;
  return p->rows && port->dense ? lt_position_address(p->loop->ndim, port->operand, at) : NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Computes one block: n elements from linear index `position`, with coordinates `at`. */
static void run_block(const Plan *p, int64_t position, const int64_t *at, int64_t n,
                      char block[4][BLOCK * 8]) {
  const void *in[3] = {NULL, NULL, NULL};
  char *out = in_place(p, &p->port[0], position, at);
  for (int k = 1; k <= p->inputs; k++) {
    bool ready = p->port[k].place == CONSTANT || (p->port[k].place == PERIODIC && !p->rows);
    char *values = ready ? block[k] : in_place(p, &p->port[k], position, at);
    if (!values) {
      values = !p->fn && out ? out : block[k];
      transfer(p, &p->port[k], at, n, values, false);
    }
    in[k - 1] = values;
  }
  char *values = out ? out : block[0];
  if (p->fn)
    p->fn(n, values, in[0], in[1], in[2], &p->numbers);
  else
    values = (char *)in[0];
  if (values != out) transfer(p, &p->port[0], at, n, values, true);
}

/* Fills the blocks of operands that are the same in every block. Blocks of short rows contain whole
 * rows. */
static void prepare(const Plan *p, int64_t n, char block[4][BLOCK * 8]) {
  static const int64_t origin[LT_MAX_DIMS];
  for (int k = 1; k <= p->inputs; k++) {
    const Port *port = &p->port[k];
    if (port->place == CONSTANT)
      p->in->load[port->operand->dtype](n, block[k], port->operand->data, 0);
    else if (port->place == PERIODIC && !p->rows)
      transfer(p, port, origin, n, block[k], false);
  }
}

/* Processes elements begin <= i < end; with short rows, begin must be the start of a row. */
static void run(Plan *p, int64_t begin, int64_t end) {
  _Alignas(64) char block[4][BLOCK * 8];
  const lt_Loop *l = p->loop;
  int64_t at[LT_MAX_DIMS], row = l->shape[p->last], left = LT_CHUNK;
  int64_t size = p->rows ? p->block : p->block / row * row;
  prepare(p, end - begin < size ? end - begin : size, block);
  lt_position_at(l->ndim, l->shape, begin, at);
  for (int64_t position = begin, n; position < end; position += n) {
    n = end - position < size ? end - position : size;
    if (p->rows && row - at[p->last] < n) n = row - at[p->last];
    run_block(p, position, at, n, block);
    lt_position_advance(l->ndim, l->shape, at, n);
    if ((left -= n) > 0) continue;
    left = LT_CHUNK;
    if (lt_stopped()) return;
  }
}

/* Processes a range when all operands are dense and of the compute type, without blocks. */
static void run_dense(Plan *p, int64_t begin, int64_t end) {
  const Port *port = p->port;
  for (int64_t i = begin; i < end; i += LT_CHUNK) {
    if (i > begin && lt_stopped()) return;
    char *in[3] = {NULL, NULL, NULL};
    for (int k = 1; k <= p->inputs; k++) in[k - 1] = port[k].operand->data + i * port[k].size;
    p->fn(end - i < LT_CHUNK ? end - i : LT_CHUNK, port[0].operand->data + i * port[0].size, in[0],
          in[1], in[2], &p->numbers);
  }
}

/* Runs `part` over all elements, on several threads if there are many. Returns false after an
 * interrupt. */
static bool run_all(Plan *p, void (*part)(Plan *, int64_t, int64_t)) {
  int64_t n = p->loop->numel;
  int team = lt_team(n, n);
  int64_t unit =
      /* ranges of threads start at multiples */
      part == run && !p->rows ? p->loop->shape[p->last] : 64;
  if (team == 1) {
    part(p, 0, n);
  } else {
#pragma omp parallel num_threads(team)
    {
      int64_t share = (n / omp_get_num_threads() / unit + 1) * unit;
      int64_t begin = share * omp_get_thread_num();
      if (begin < n) part(p, begin, n - begin < share ? n : begin + share);
    }
  }
  return lt_check_interrupt();
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Classifies the layout of operand k. */
static Port open_port(const lt_Loop *l, int k, lt_Dtype compute) {
  const lt_Operand *o = &l->operand[k];
  int64_t size = (int64_t)lt_dtype_size(o->dtype), run_length = size;
  bool linear = true, constant = k > 0, periodic = k > 0;
  for (int d = l->ndim - 1; d >= 0; d--) {
    linear &= o->strides[d] == run_length;
    constant &= o->strides[d] == 0;
    periodic &= o->strides[d] == 0 || d == l->ndim - 1;
    run_length *= l->shape[d];
  }
  return (Port){.operand = o,
                .place = linear     ? LINEAR
                         : constant ? CONSTANT
                         : periodic ? PERIODIC
                                    : STRIDED,
                .direct = o->dtype == compute,
                .dense = o->strides[l->ndim - 1] == size,
                .size = size,
                .block_size = (int64_t)lt_dtype_size(compute)};
}

/* Returns the op `square` for pow with the exponent 2, else pow. x^2 is common enough for this
 * check; its result is the same: see lt_pow. */
static lt_OpId simplified_op(const lt_Loop *l, const Port *exponent) {
  lt_Dtype d = l->operand[2].dtype;
  bool once = l->numel > 1 && exponent->place == CONSTANT;
  if (!once) return LT_OP_pow;
  lt_Scalar s = lt_scalar_load(d, l->operand[2].data);
  return lt_scalar_to_double(s) == 2 && s.im == 0 ? LT_OP_square : LT_OP_pow;
}

/* Runs the most frequent case without a plan: few dense elements of the compute type. Returns false
 * in any other case. */
static bool run_few(const lt_Loop *l, lt_Dtype compute, lt_Dtype result) {
  if (l->layout != LT_LAYOUT_CONTIGUOUS || l->numel >= LT_GRAIN || l->operand[0].dtype != result)
    return false;
  for (int k = 1; k <= l->inputs; k++)
    if (l->operand[k].dtype != compute) return false;
  lt_VectorFn fn = lt_cpu_isa()->vectors[compute]->op[l->op];
  if (!fn) return false;
  lt_Numbers numbers;
  lt_cpu_numbers(&numbers, compute, l->operand[0].dtype, &l->a, &l->b);
  fn(l->numel, l->operand[0].data, l->operand[1].data, l->inputs > 1 ? l->operand[2].data : NULL,
     l->inputs > 2 ? l->operand[3].data : NULL, &numbers);
  return true;
}

/* Runs a loop in this compute type; its result is of that type, or bool. */
static bool run_loop(const lt_Loop *l, lt_Dtype compute, bool gives_bool) {
  if (run_few(l, compute, gives_bool ? LT_bool : compute)) return true;
  Plan p = {.loop = l, .inputs = l->inputs, .last = l->ndim - 1};
  lt_Dtype result = gives_bool ? LT_bool : compute;
  bool dense = l->layout == LT_LAYOUT_CONTIGUOUS;
  p.block = compute == LT_complex128 ? BLOCK / 2 : BLOCK;
  p.port[0] = open_port(l, 0, result);
  dense &= p.port[0].direct;
  for (int k = 1; k <= l->inputs; k++) {
    p.port[k] = open_port(l, k, compute);
    dense &= p.port[k].direct;
  }
  const lt_Isa *isa = lt_cpu_isa();
  lt_OpId op = l->op == LT_OP_pow ? simplified_op(l, &p.port[2]) : l->op;
  if (op == LT_OP_square) p.inputs = 1;
  p.in = isa->vectors[compute];
  p.out = isa->vectors[result];
  p.fn = op == LT_OP_copy ? NULL : p.in->op[op];
  if (!p.fn && op != LT_OP_copy)
    return lt_fail("cannot run with dtype \"%s\" on the CPU: no kernel for it",
                   lt_dtype_name(compute));
  lt_cpu_numbers(&p.numbers, compute, l->operand[0].dtype, &l->a, &l->b);
  if (dense && p.fn) return run_all(&p, run_dense);
  p.rows = l->shape[p.last] >= ROW_LIMIT;
  return run_all(&p, run);
}

bool lt_cpu_elementwise(const lt_Loop *loop) {
  if (loop->layout == LT_LAYOUT_EMPTY) return true;
  if (loop->op == LT_OP_fill) return lt_cpu_fill(loop);
  if (loop->op != LT_OP_copy) {
    bool test = lt_op_is_test(loop->op);
    return run_loop(loop, lt_dtype_compute(loop->compute), test);
  }
  if (loop->operand[0].dtype == loop->operand[1].dtype) return lt_cpu_copy_same(loop);
  return run_loop(loop, lt_copy_compute(loop->operand[0].dtype, loop->operand[1].dtype), false);
}
