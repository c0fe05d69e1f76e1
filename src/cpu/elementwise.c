/* elementwise.c: runs elementwise ops on any layout and dtype, with loops for dense memory of one
 * type.
 *
 * The work is split into blocks. In each block an operand is either used in memory, or gathered and
 * converted to a block on the stack; the result is converted and scattered to memory likewise.
 * Inputs that are transposed are gathered in panels of several rows, so that whole cache lines are
 * read. An element's result depends on its inputs alone, so the work may be split anywhere: among
 * threads, and between blocks for a check for interrupts. */
#include "blocks.h"
#include "cpu.h"
#include "half.h"
#include "moves.h"
#include "opids.h"
#include "positions.h"
#include "kernel_support.h"
#include "vector.h"

#include <omp.h>

/* Rows of at least this length have their own blocks; shorter ones share a block. A result that is
 * not dense is written row by row in any case. */
enum { ROW_LIMIT = 256, ROW_LIMIT_STRIDED = 64 };
/* Lengths of rows for which run_rows is used; LINE_BYTES: those of the first input where no operand
 * is one element; COSTLY_LEAST: where the ends of rows cost more than a copy. */
enum { ROW_LEAST = 16, LINE_BYTES = 128, COSTLY_LEAST = 128, ROW_MOST = 2048 };
/* Length of rows from which the loops of half floats run over each row. */
enum { HALF_ROW_LEAST = 64 };

typedef struct Block {
  _Alignas(64) char bytes[LT_BLOCK + LT_SPREAD_SLACK * LT_MAX_ELEMENT];
  const char *row; /* the block holds copies of this row */
  int64_t count;   /* in so many elements */
} Block;

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
  int64_t run;        /* so many elements, in the loop's order, are dense from each multiple on */
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
  int64_t work;               /* of an element: element_work */
  Port port[4];
  lt_Numbers numbers;
} Plan;

/* ---- operands -------------------------------------------------------------------------------- */

/* Returns the elements of an operand. `vectors`: the loads or stores of the type of its blocks. */
static lt_Elements elements_of(const Plan *p, const Port *port, const lt_Vectors *vectors) {
  return (lt_Elements){p->loop->ndim, p->loop->shape,   port->operand,
                       vectors,       port->block_size, port->direct};
}

/* Returns the memory of the row of which n elements are copies, or NULL. */
static const char *copied_row(const Plan *p, const Port *port, const int64_t *at, int64_t n) {
  const lt_Operand *o = port->operand;
  int last = p->last;
  if (p->rows || last == 0 || o->strides[last] == 0 || o->strides[last - 1] != 0 || at[last] != 0 ||
      n > (p->loop->shape[last - 1] - at[last - 1]) * p->loop->shape[last])
    return NULL;
  return lt_position_address(p->loop->ndim, o, at);
}

/* Loads n elements into a block, unless it holds them: copies of a row. */
static void load_block(const Plan *p, const Port *port, const int64_t *at, int64_t n, Block *b) {
  const char *row = copied_row(p, port, at, n);
  if (row && b->row == row && b->count >= n) return;
  lt_Elements e = elements_of(p, port, p->in);
  lt_block_load(&e, at, n, b->bytes, true);
  b->row = row;
  b->count = n;
}

/* Returns the memory of this operand's n elements if the loop can use it directly, else NULL. */
static char *in_place(const Plan *p, const Port *port, int64_t position, const int64_t *at,
                      int64_t n) {
  if (!port->direct) return NULL;
  if (port->place == LINEAR) return port->operand->data + position * port->size;
  bool usable = (p->numbers.y_once && port >= &p->port[2]) ||
                (p->rows ? port->run > 1 : position % port->run + n <= port->run);
  return usable ? lt_position_address(p->loop->ndim, port->operand, at) : NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Computes one block: n elements from linear index `position`, with coordinates `at`. gathered[k],
 * if there is one: the n elements of operand k in dense memory. */
static void run_block(const Plan *p, int64_t position, const int64_t *at, int64_t n, Block block[4],
                      char *const *gathered) {
  const void *in[3] = {NULL, NULL, NULL};
  char *out = in_place(p, &p->port[0], position, at, n);
  for (int k = 1; k <= p->inputs; k++) {
    bool ready = p->port[k].place == CONSTANT || (p->port[k].place == PERIODIC && !p->rows);
    char *values = gathered[k] ? gathered[k] : in_place(p, &p->port[k], position, at, n);
    if (!values && ready) values = block[k].bytes;
    if (!values) {
      bool direct = !p->fn && out;
      values = direct ? out : block[k].bytes;
      if (direct) {
        lt_Elements e = elements_of(p, &p->port[k], p->in);
        lt_block_load(&e, at, n, values, false);
      } else {
        load_block(p, &p->port[k], at, n, &block[k]);
      }
    }
    in[k - 1] = values;
  }
  char *values = out ? out : block[0].bytes;
  if (p->fn)
    p->fn(n, values, in[0], in[1], in[2], &p->numbers);
  else
    values = (char *)in[0];
  if (values == out) return;
  lt_Elements e = elements_of(p, &p->port[0], p->out);
  lt_block_store(&e, at, n, values);
}

/* Fills the blocks of operands that are the same in every block. Blocks of short rows contain whole
 * rows. */
static void prepare(const Plan *p, int64_t n, Block block[4]) {
  const int64_t start[LT_MAX_DIMS] = {0};
  for (int k = 1; k <= p->inputs; k++) {
    const Port *port = &p->port[k];
    block[k].row = NULL;
    if (port->place == CONSTANT || (port->place == PERIODIC && !p->rows))
      load_block(p, port, start, n, &block[k]);
  }
}

/* Returns the number of elements at whose multiples blocks end: a row, or with short rows the
 * shortest run that is not much shorter than a block, so that its operand is used in memory. */
static int64_t stretch(const Plan *p) {
  int64_t row = p->loop->shape[p->last], least = p->loop->numel;
  if (p->rows) return row;
  for (int k = 0; k <= p->inputs; k++) {
    int64_t run = p->port[k].run;
    if (p->port[k].direct && run > row && 4 * run >= p->block && run < least) least = run;
  }
  return least;
}

/* Processes elements begin <= i < end; with short rows, begin must be the start of a row. */
static void run(Plan *p, int64_t begin, int64_t end) {
  Block block[4];
  char *const gathered[4] = {NULL};
  const lt_Loop *l = p->loop;
  int64_t at[LT_MAX_DIMS], row = l->shape[p->last], left = LT_CHUNK;
  int64_t size = p->rows ? p->block : p->block / row * row, whole = stretch(p);
  prepare(p, end - begin < size ? end - begin : size, block);
  lt_position_at(l->ndim, l->shape, begin, at);
  for (int64_t position = begin, n; position < end; position += n) {
    n = end - position < size ? end - position : size;
    int64_t rest = whole - position % whole;
    if (rest < n) n = rest;
    run_block(p, position, at, n, block, gathered);
    lt_position_advance(l->ndim, l->shape, at, n);
    if ((left -= n) > 0) continue;
    left = LT_CHUNK;
    if (lt_stopped()) return;
  }
}

/* Processes a range when all operands are of the compute type and dense, or y and z one element,
 * without blocks. */
static void run_dense(Plan *p, int64_t begin, int64_t end) {
  const Port *port = p->port;
  for (int64_t i = begin; i < end; i += LT_CHUNK) {
    if (i > begin && lt_stopped()) return;
    char *in[3] = {NULL, NULL, NULL};
    for (int k = 1; k <= p->inputs; k++)
      in[k - 1] = port[k].operand->data + (port[k].place == LINEAR ? i * port[k].size : 0);
    p->fn(end - i < LT_CHUNK ? end - i : LT_CHUNK, port[0].operand->data + i * port[0].size, in[0],
          in[1], in[2], &p->numbers);
  }
}

/* Converts a range of dense elements, from the compute type or to it, without blocks. */
static void run_conversion(Plan *p, int64_t begin, int64_t end) {
  const Port *to = &p->port[0], *from = &p->port[1];
  for (int64_t i = begin; i < end; i += LT_CHUNK) {
    if (i > begin && lt_stopped()) return;
    int64_t n = end - i < LT_CHUNK ? end - i : LT_CHUNK;
    char *out = to->operand->data + i * to->size, *in = from->operand->data + i * from->size;
    if (to->direct)
      p->in->load[from->operand->dtype](n, out, in, from->size);
    else
      p->out->store[to->operand->dtype](n, out, to->size, in);
  }
}

/* Processes rows that are dense, or whose x or y is one element each, without blocks; begin is the
 * start of a row. */
static void run_rows(Plan *p, int64_t begin, int64_t end) {
  const lt_Loop *l = p->loop;
  lt_Numbers numbers = p->numbers;
  int64_t at[LT_MAX_DIMS], row = l->shape[p->last];
  char *memory[3] = {NULL, NULL, NULL};
  for (int k = 0; k <= p->inputs; k++) numbers.step[k] = l->operand[k].strides[p->last - 1];
  const bool once = numbers.y_once || numbers.x_once;
  lt_position_at(l->ndim, l->shape, begin, at);
  for (int64_t position = begin; position < end; position += numbers.rows * row) {
    if (position > begin && lt_stopped()) return;
    int64_t left = l->shape[p->last - 1] - at[p->last - 1], most = LT_CHUNK / row;
    numbers.rows = (end - position) / row;
    if (numbers.rows > left) numbers.rows = left;
    if (numbers.rows > most) numbers.rows = most;
    for (int k = 0; k <= p->inputs; k++)
      memory[k] = lt_position_address(l->ndim, &l->operand[k], at);
    if (once) p->fn(row, memory[0], memory[1], memory[2], NULL, &numbers);
    for (int64_t j = once ? numbers.rows : 0; j < numbers.rows; j++) {
      p->fn(row, memory[0], memory[1], memory[2], NULL, &p->numbers);
      for (int k = 0; k <= p->inputs; k++) memory[k] += numbers.step[k];
    }
    lt_position_advance(l->ndim, l->shape, at, numbers.rows * row);
  }
}

/* Processes rows of a half float, of which y may be one element each; begin is the start of a
 * row. */
static void run_half_rows(Plan *p, int64_t begin, int64_t end) {
  const lt_Loop *l = p->loop;
  const int last = p->last;
  const int64_t row = l->shape[last];
  const lt_Dtype y = l->operand[2].dtype;
  int64_t at[LT_MAX_DIMS];
  float once;
  lt_position_at(l->ndim, l->shape, begin, at);
  for (int64_t position = begin, rows; position < end; position += rows * row) {
    if (position > begin && lt_stopped()) return;
    char *memory[3];
    for (int k = 0; k < 3; k++) memory[k] = lt_position_address(l->ndim, &l->operand[k], at);
    rows = l->shape[last - 1] - at[last - 1];
    if (rows > (end - position) / row) rows = (end - position) / row;
    if (rows > LT_CHUNK / row + 1) rows = LT_CHUNK / row + 1;
    for (int64_t i = 0; i < rows; i++) {
      const void *in = memory[2];
      if (p->numbers.y_once) {
        once = y == LT_float16 ? lt_half_to_float(*(lt_half *)in)
                               : lt_bfloat16_to_float(*(lt_bfloat16 *)in);
        in = &once;
      }
      p->fn(row, memory[0], memory[1], in, NULL, &p->numbers);
      for (int k = 0; k < 3; k++) memory[k] += l->operand[k].strides[last - 1];
    }
    lt_position_advance(l->ndim, l->shape, at, rows * row);
  }
}

/* ---- transposed inputs ----------------------------------------------------------------------- */

/* A part of a transposed input in the result's order: HEIGHT rows of up to `width` elements. */
enum { HEIGHT = 16 };
typedef struct Panel {
  _Alignas(64) char bytes[HEIGHT][LT_BLOCK / 8];
} Panel;

/* How a loop is split into panels. */
typedef struct Panels {
  int other;                         /* the dim along which the transposed inputs are dense */
  unsigned transposed;               /* bit k: operand k is transposed */
  int64_t width;                     /* elements of a panel's row */
  int64_t shape[LT_MAX_DIMS], count; /* panels in each dim, and in all */
  int64_t weight[LT_MAX_DIMS];       /* linear indices from one coordinate to the next */
} Panels;

/* Returns the dim along which an input of the compute type is dense if that is not the last one and
 * worth panels, else -1. */
static int transposed_dim(const Plan *p, const Port *port) {
  int64_t size = port->size, step = port->operand->strides[p->last];
  if (!port->direct || step == 0 || step == size || (size != 4 && size != 8)) return -1;
  for (int d = 0; d < p->last; d++)
    if (port->operand->strides[d] == size && p->loop->shape[d] >= HEIGHT / 2) return d;
  return -1;
}

/* Finds the inputs that are transposed along the same dim. Returns false if there are none. */
static bool plan_panels(const Plan *p, Panels *panels) {
  const lt_Loop *l = p->loop;
  *panels = (Panels){.other = -1, .count = 1};
  if (!p->fn || !p->rows) return false;
  for (int k = 1; k <= p->inputs; k++) {
    int d = transposed_dim(p, &p->port[k]);
    if (d < 0 || (panels->other >= 0 && d != panels->other)) continue;
    panels->other = d;
    panels->transposed |= 1u << k;
    panels->width = (int64_t)sizeof(((Panel *)0)->bytes[0]) / p->port[k].size;
  }
  if (panels->other < 0) return false;
  for (int64_t d = l->ndim - 1, weight = 1; d >= 0; weight *= l->shape[d--]) {
    int64_t part = d == p->last ? panels->width : d == panels->other ? HEIGHT : 1;
    panels->weight[d] = weight;
    panels->shape[d] = (l->shape[d] + part - 1) / part;
    panels->count *= panels->shape[d];
  }
  return true;
}

/* Computes a panel, whose first element has the coordinates `at`, row by row. */
static void run_panel(const Plan *p, const Panels *panels, int64_t *at, Block block[4],
                      Panel panel[4]) {
  const lt_Loop *l = p->loop;
  int other = panels->other;
  int64_t rows = l->shape[other] - at[other], n = l->shape[p->last] - at[p->last], position = 0;
  char *gathered[4] = {NULL};
  if (rows > HEIGHT) rows = HEIGHT;
  if (n > panels->width) n = panels->width;
  for (int k = 1; k <= p->inputs; k++) {
    const lt_Operand *o = &l->operand[k];
    if (!(panels->transposed >> k & 1)) continue;
    gathered[k] = panel[k].bytes[0];
    lt_mover(p->port[k].size)
        ->tile(rows, n, gathered[k], (int64_t)sizeof panel[k].bytes[0],
               lt_position_address(l->ndim, o, at), o->strides[p->last]);
  }
  for (int d = 0; d < l->ndim; d++) position += at[d] * panels->weight[d];
  for (int64_t r = 0; r < rows; r++, at[other]++, position += panels->weight[other]) {
    run_block(p, position, at, n, block, gathered);
    for (int k = 1; k <= p->inputs; k++)
      if (gathered[k]) gathered[k] += sizeof panel[k].bytes[0];
  }
}

/* Computes the panels first..last - 1. */
static void run_panels(const Plan *p, const Panels *panels, int64_t first, int64_t last) {
  Block block[4];
  Panel panel[4];
  const lt_Loop *l = p->loop;
  int64_t at[LT_MAX_DIMS];
  prepare(p, panels->width, block);
  for (int64_t i = first; i < last && !lt_stopped(); i++) {
    lt_position_at(l->ndim, panels->shape, i, at);
    at[p->last] *= panels->width;
    at[panels->other] *= HEIGHT;
    run_panel(p, panels, at, block, panel);
  }
}

/* ---- all elements ---------------------------------------------------------------------------- */

/* Runs `part` over all elements, on several threads if there are many. Returns false after an
 * interrupt. */
static bool run_all(Plan *p, void (*part)(Plan *, int64_t, int64_t)) {
  int64_t n = p->loop->numel;
  int team = lt_team(n * p->work, n);
  bool whole_rows = part == run_rows || part == run_half_rows || (part == run && !p->rows);
  int64_t unit = whole_rows ? p->loop->shape[p->last] : 64; /* ranges start at multiples */
  if (team == 1) {
    part(p, 0, n);
  } else {
#pragma omp parallel num_threads(team)
    {
      int64_t units = (n + unit - 1) / unit, members = omp_get_num_threads();
      int64_t share = (units + members - 1) / members * unit;
      int64_t begin = share * omp_get_thread_num();
      if (begin < n) part(p, begin, n - begin < share ? n : begin + share);
    }
  }
  return lt_check_interrupt();
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Classifies the layout of operand k. */
static void open_port(Port *port, const lt_Loop *l, int k, lt_Dtype compute) {
  const lt_Operand *o = &l->operand[k];
  int64_t size = (int64_t)lt_dtype_size(o->dtype), run_length = size;
  bool linear = true, constant = k > 0, periodic = k > 0;
  port->run = 1;
  for (int d = l->ndim - 1; d >= 0; d--) {
    linear &= o->strides[d] == run_length;
    if (linear) port->run *= l->shape[d];
    constant &= o->strides[d] == 0;
    periodic &= o->strides[d] == 0 || d == l->ndim - 1;
    run_length *= l->shape[d];
  }
  port->operand = o;
  port->place = linear ? LINEAR : constant ? CONSTANT : periodic ? PERIODIC : STRIDED;
  port->direct = o->dtype == compute;
  port->size = size;
  port->block_size = (int64_t)lt_dtype_size(compute);
}

lt_VectorFn lt_cpu_power(lt_Dtype compute, lt_Scalar exponent) {
  static const double exponents[] = {
#define LT_POWER(name, number, ...) number,
#include "powers.def"
#undef LT_POWER
  };
  const lt_Vectors *vectors = lt_cpu_isa()->vectors[compute];
  double y = lt_scalar_to_double(exponent);
  if (exponent.im != 0) return NULL;
  if (!vectors->power) return y == 2 ? vectors->op[LT_OP_square] : NULL;
  for (int i = 0; i < LT_POWER_COUNT; i++)
    if (exponents[i] == y) return vectors->power[i];
  return NULL;
}

/* Returns the loop of x^y for a y that is the same for all elements, or NULL. Of tensors only the
 * exponent 2 has one, whose results are those of lt_pow: they do not depend on the shape of y. */
static lt_VectorFn power_of(const lt_Loop *l, const Port *y, lt_Dtype compute) {
  if (l->op != LT_OP_pow) return NULL;
  if (!l->operand[2].host && (l->numel == 1 || y->place != CONSTANT)) return NULL;
  lt_Scalar exponent = lt_scalar_load(l->operand[2].dtype, l->operand[2].data);
  if (!l->operand[2].host && lt_scalar_to_double(exponent) != 2) return NULL;
  return lt_cpu_power(compute, exponent);
}

/* Returns whether a clamp's bounds are the same for all elements. Then the loop of _hardtanh, which
 * has them as scalar arguments, computes the same. */
static bool clamps_to_numbers(const Plan *p, lt_Dtype compute) {
  if (p->loop->op != LT_OP__clamp || compute == LT_bool) return false;
  for (int k = 2; k <= 3; k++)
    if (!p->port[k].direct || p->port[k].place != CONSTANT) return false;
  return true;
}

/* Prepares run_rows. Returns false when operands are not in memory in rows of the compute type that
 * are dense and long enough, or of one element each for x or y, or when the loop has no form for
 * this. */
static bool plan_rows(Plan *p) {
  const lt_Loop *l = p->loop;
  int64_t row = l->shape[p->last];
  if (!p->fn || p->inputs > 2 || p->last == 0 || row < ROW_LEAST || row > ROW_MOST) return false;
  bool dense[3] = {false}, once[3] = {false},
       all = lt_op_is_function(l->op) ? row >= COSTLY_LEAST : row * p->port[1].size >= LINE_BYTES;
  for (int k = 0; k <= p->inputs; k++) {
    if (!p->port[k].direct) return false;
    all &= dense[k] = p->port[k].run > 1;
    once[k] = l->operand[k].strides[p->last] == 0;
  }
  if (all) return true;
  if (p->inputs == 1) return false;
  bool y_once = dense[1] && once[2], x_once = once[1] && dense[2] && LT_X_ONCE(l->op);
  if (!dense[0] || (!y_once && !x_once)) return false;
  p->numbers.y_once = y_once, p->numbers.x_once = x_once;
  return true;
}

/* Returns true when operand k is dense in a loop of one dimension. */
static bool is_dense(const lt_Loop *l, int k) {
  return l->operand[k].strides[0] == (int64_t)lt_dtype_size(l->operand[k].dtype);
}

/* Returns true when the last input is one element, and those before it, one or two, are dense, in a
 * loop of one dimension. */
static bool has_one_last(const lt_Loop *l) {
  return l->layout == LT_LAYOUT_SCALAR && l->inputs > 1 && is_dense(l, 1) &&
         is_dense(l, l->inputs - 1);
}

/* Returns true when this is y. */
static bool has_one_y(const lt_Loop *l) { return l->inputs == 2 && has_one_last(l); }

/* Returns the work of an element, relative to what arithmetic takes: functions of complex numbers,
 * and wide ops in float64, take about as long as 32 sums, wide ops in float32 as 16. */
static int64_t element_work(lt_OpId op, lt_Dtype compute) {
  if (lt_dtype_is_complex(compute)) return lt_op_is_function(op) ? 32 : 1;
  return !lt_op_is_wide(op) ? 1 : compute == LT_float64 ? 32 : 16;
}

/* Returns true when operand k is dense in the loop's order. */
static bool is_linear(const lt_Loop *l, int k) {
  int64_t next = (int64_t)lt_dtype_size(l->operand[k].dtype);
  for (int d = l->ndim - 1; d >= 0; next *= l->shape[d--])
    if (l->operand[k].strides[d] != next) return false;
  return true;
}

/* Returns the elements of input k, which is of the type of `vectors`, in dense memory: its own, or
 * a block that is filled with them. */
static const void *gather(const lt_Loop *l, int k, const lt_Vectors *vectors, Block *block) {
  const int64_t start[LT_MAX_DIMS] = {0};
  const lt_Operand *o = &l->operand[k];
  if (is_linear(l, k)) return o->data;
  lt_Elements e = {l->ndim, l->shape, o, vectors, (int64_t)lt_dtype_size(o->dtype), true};
  lt_block_load(&e, start, l->numel, block->bytes, true);
  return block->bytes;
}

/* Runs a loop over few elements of the type of `vectors`, whose result is dense. */
static void run_gathered(const lt_Loop *l, lt_VectorFn fn, const lt_Vectors *vectors,
                         const lt_Numbers *numbers) {
  Block block[3];
  const void *in[3] = {NULL, NULL, NULL};
  for (int k = 1; k <= l->inputs; k++) in[k - 1] = gather(l, k, vectors, &block[k - 1]);
  fn(l->numel, l->operand[0].data, in[0], in[1], in[2], numbers);
}

/* So many elements of any dtype fit in a block. */
enum { FEW = LT_BLOCK / LT_MAX_ELEMENT };

/* Runs the most frequent cases without a plan: few elements of the compute type, dense or with one
 * element as y, or even fewer, of which only the result is dense. Returns false in any other
 * case. */
static bool run_few(const lt_Loop *l, lt_Dtype compute, lt_Dtype result) {
  if (l->numel * element_work(l->op, compute) >= LT_GRAIN || l->operand[0].dtype != result)
    return false;
  bool y_once = has_one_y(l), dense = l->layout == LT_LAYOUT_CONTIGUOUS || y_once;
  if (!dense && (l->numel > FEW || lt_dtype_compute(compute) != compute || !is_linear(l, 0)))
    return false;
  if (l->op == LT_OP_pow && l->operand[2].host) return false; /* see power_of */
  if (l->op == LT_OP__clamp && l->layout == LT_LAYOUT_SCALAR)
    return false; /* see clamps_to_numbers */
  for (int k = 1; k <= l->inputs; k++)
    if (l->operand[k].dtype != compute) return false;
  const lt_Vectors *vectors = lt_cpu_isa()->vectors[compute];
  lt_VectorFn fn = vectors->op[l->op];
  if (!fn) return false;
  lt_Numbers numbers;
  lt_cpu_numbers(&numbers, compute, l->operand[0].dtype, &l->a, &l->b);
  numbers.y_once = y_once;
  if (dense)
    fn(l->numel, l->operand[0].data, l->operand[1].data, l->inputs > 1 ? l->operand[2].data : NULL,
       l->inputs > 2 ? l->operand[3].data : NULL, &numbers);
  else
    run_gathered(l, fn, vectors, &numbers);
  return true;
}

/* Runs a loop in this compute type; its result is of that type, or bool. */
static bool run_loop(const lt_Loop *l, lt_Dtype compute, bool gives_bool) {
  if (run_few(l, compute, gives_bool ? LT_bool : compute)) return true;
  Plan p; /* set member by member: in calls with few elements, clearing it would take long */
  lt_Dtype result = gives_bool ? LT_bool : compute;
  p.loop = l;
  p.inputs = l->inputs;
  p.last = l->ndim - 1;
  p.block = LT_BLOCK / (int64_t)lt_dtype_size(compute);
  p.work = element_work(l->op, compute);
  open_port(&p.port[0], l, 0, result);
  for (int k = 1; k <= l->inputs; k++) open_port(&p.port[k], l, k, compute);
  const lt_Isa *isa = lt_cpu_isa();
  lt_VectorFn power = power_of(l, &p.port[2], compute);
  if (power) p.inputs = p.work = 1;
  p.in = isa->vectors[compute];
  p.out = isa->vectors[result];
  p.fn = power ? power : l->op == LT_OP_copy ? NULL : p.in->op[l->op];
  if (!p.fn && l->op != LT_OP_copy)
    return lt_fail("cannot run with dtype \"%s\" on the CPU: no kernel for it",
                   lt_dtype_name(compute));
  lt_Scalar a = l->a, b = l->b;
  if (clamps_to_numbers(&p, compute)) {
    p.fn = p.in->op[LT_OP__hardtanh];
    p.inputs = 1;
    a = lt_scalar_load(compute, l->operand[2].data);
    b = lt_scalar_load(compute, l->operand[3].data);
  }
  lt_cpu_numbers(&p.numbers, compute, l->operand[0].dtype, &a, &b);
  const Port *y = &p.port[2];
  p.rows = l->shape[p.last] >= (p.port[0].place == LINEAR ? ROW_LIMIT : ROW_LIMIT_STRIDED);
  p.numbers.y_once = p.fn && p.inputs == 2 && y->direct &&
                     (y->place == CONSTANT || (p.rows && y->operand->strides[p.last] == 0));
  if (p.inputs == 3 && LT_YZ_ONCE(l->op))
    p.numbers.y_once =
        y[0].direct && y[0].place == CONSTANT && y[1].direct && y[1].place == CONSTANT;
  if (lt_dtype_is_float(compute) && lt_dtype_compute(compute) != compute)
    p.numbers.y_once = has_one_last(l);
  bool dense = p.fn != NULL;
  for (int k = 0; k <= p.inputs; k++)
    dense &= p.port[k].direct && (p.port[k].place == LINEAR ||
                                  (k >= 2 && p.port[k].place == CONSTANT && p.numbers.y_once));
  const Port *out = p.port, *in = out + 1;
  if (!p.fn && out->place == LINEAR && in->place == LINEAR && (out->direct || in->direct))
    return run_all(&p, run_conversion);
  if (!dense && plan_rows(&p)) return run_all(&p, run_rows);
  Panels panels;
  if (dense || !plan_panels(&p, &panels)) return run_all(&p, dense ? run_dense : run);
  LT_IN_TEAM(lt_team(l->numel, panels.count), panels.count, run_panels(&p, &panels, first, last));
  return lt_check_interrupt();
}

/* ---- dtypes narrower than the compute type --------------------------------------------------- */

/* Returns a bound of a clamp that has the same effect on elements of the integer dtype d: the lower
 * bound is at least d's smallest number, the upper one at most the largest. */
static int64_t narrow_bound(bool lower, int64_t bound, lt_Dtype d) {
  int64_t count = (int64_t)1 << 8 * lt_dtype_size(d), low = d == LT_uint8 ? 0 : -count / 2;
  if (lower) return bound < low ? low : bound;
  return bound >= low + count ? low + count - 1 : bound;
}

/* Returns whether an integer is an element of dtype d, and writes it as one. */
static bool narrow_store(int64_t i, lt_Dtype d, void *element) {
  return lt_number_store(lt_scalar_int(i), d, element) && lt_scalar_load(d, element).i == i;
}

/* Writes the number of operand k, an int32, as an element of dtype d. Returns false if it does
 * not fit. */
static bool narrow_number(const lt_Loop *l, int k, lt_Dtype d, void *element) {
  int64_t number = lt_scalar_load(LT_int32, l->operand[k].data).i;
  if (l->op == LT_OP__clamp) number = narrow_bound(k == 2, number, d);
  return narrow_store(number, d, element);
}

/* Returns whether threshold's first number, an int32, is an element of dtype d. */
static bool narrow_threshold(const lt_Loop *l, lt_Dtype d) {
  _Alignas(LT_MAX_ELEMENT) char element[LT_MAX_ELEMENT];
  lt_Numbers numbers;
  lt_cpu_numbers(&numbers, LT_int32, LT_int32, &l->a, &l->b);
  return narrow_store(numbers.a.int32, d, element);
}

/* Makes the bounds of _hardtanh elements of dtype d. Returns false if they do not fit. */
static bool narrow_bounds(lt_Loop *l, lt_Dtype d) {
  _Alignas(LT_MAX_ELEMENT) char element[LT_MAX_ELEMENT];
  lt_Numbers numbers;
  lt_cpu_numbers(&numbers, LT_int32, LT_int32, &l->a, &l->b);
  l->a = lt_scalar_int(narrow_bound(true, numbers.a.int32, d));
  l->b = lt_scalar_int(narrow_bound(false, numbers.b.int32, d));
  return narrow_store(l->a.i, d, element) && narrow_store(l->b.i, d, element);
}

/* Returns true when operand k is dense in each row. */
static bool has_dense_rows(const lt_Loop *l, int k) {
  return l->operand[k].strides[l->ndim - 1] == (int64_t)lt_dtype_size(l->operand[k].dtype);
}

/* Returns true when a loop of two inputs consists of long rows that are dense, or whose y is one
 * element each. */
static bool has_long_rows(const lt_Loop *l) {
  if (l->inputs != 2 || l->ndim < 2 || l->shape[l->ndim - 1] < HALF_ROW_LEAST) return false;
  return has_dense_rows(l, 0) && has_dense_rows(l, 1) &&
         (has_dense_rows(l, 2) || l->operand[2].strides[l->ndim - 1] == 0);
}

/* Returns whether the loops of a half float can be used: all operands are of that dtype and dense,
 * at least in rows, or the last of several is one element of any dtype. */
static bool fits_halves(const lt_Loop *l, lt_Dtype d) {
  bool one_last = has_one_last(l);
  if (l->layout != LT_LAYOUT_CONTIGUOUS && !one_last && !has_long_rows(l)) return false;
  for (int k = 1; k <= l->inputs; k++)
    if (l->operand[k].dtype != d && !(one_last && k == l->inputs)) return false;
  return true;
}

/* Runs such a loop. */
static bool run_halves(const lt_Loop *loop, lt_Dtype d, bool test) {
  lt_Loop l = *loop;
  float last;
  if (l.layout != LT_LAYOUT_CONTIGUOUS && !has_one_last(loop)) {
    Plan p = {.loop = loop, .inputs = 2, .last = l.ndim - 1, .work = 1};
    p.fn = lt_cpu_isa()->vectors[d]->op[l.op];
    lt_cpu_numbers(&p.numbers, LT_float32, l.operand[0].dtype, &l.a, &l.b);
    p.numbers.y_once = l.operand[2].strides[p.last] == 0;
    return run_all(&p, run_half_rows);
  }
  if (has_one_last(loop)) {
    lt_Operand *o = &l.operand[l.inputs];
    lt_vector_load(LT_float32, 1, &last, o->dtype, o->data, 0);
    o->data = (char *)&last;
    o->dtype = d;
  }
  return run_loop(&l, d, test);
}

/* Returns the dtype of all tensors of a loop if it has a form for that, with the results of the
 * compute type; else the compute type. */
static lt_Dtype narrow_dtype(const lt_Loop *l, lt_Dtype compute, bool test) {
  _Alignas(LT_MAX_ELEMENT) char element[LT_MAX_ELEMENT];
  lt_Dtype d = l->operand[l->operand[1].host ? l->inputs : 1].dtype;
  const lt_Vectors *vectors = lt_cpu_isa()->vectors[d];
  if (d == compute || lt_dtype_compute(d) != compute || !vectors->op[l->op]) return compute;
  if (!test && l->operand[0].dtype != d) return compute;
  if (lt_dtype_is_float(d))
    return fits_halves(l, d) && l->operand[0].dtype == (test ? LT_bool : d) ? d : compute;
  if (l->op == LT_OP__hardtanh)
    return narrow_bounds(&(lt_Loop){.a = l->a, .b = l->b}, d) ? d : compute;
  if (l->op == LT_OP_threshold && !narrow_threshold(l, d)) return compute;
  for (int k = 1; k <= l->inputs; k++) {
    const lt_Operand *o = &l->operand[k];
    bool number = o->host && o->dtype == LT_int32;
    if (o->dtype != d && !(number && narrow_number(l, k, d, element))) return compute;
  }
  return d;
}

/* Runs a loop in the narrow dtype that narrow_dtype returned. */
static bool run_narrow(const lt_Loop *loop, lt_Dtype d, bool test) {
  _Alignas(LT_MAX_ELEMENT) char element[3][LT_MAX_ELEMENT];
  bool numbers = false;
  if (lt_dtype_is_float(d)) return run_halves(loop, d, test);
  for (int k = 1; k <= loop->inputs; k++) numbers |= loop->operand[k].dtype != d;
  if (!numbers && loop->op != LT_OP__hardtanh) return run_loop(loop, d, test);
  lt_Loop l = *loop;
  if (l.op == LT_OP__hardtanh) narrow_bounds(&l, d);
  for (int k = 1; k <= loop->inputs; k++) {
    lt_Operand *o = &l.operand[k];
    if (o->dtype == d) continue;
    narrow_number(loop, k, d, element[k - 1]);
    o->data = element[k - 1];
    o->dtype = d;
    if (l.numel == 1) o->strides[0] = (int64_t)lt_dtype_size(d);
  }
  return run_loop(&l, d, test);
}

/* Returns whether the loads of `to` convert this dtype as its own compute type does, which saves a
 * pass: those of integers narrower than int32 are exact, or wrap. */
static bool loads_directly(lt_Dtype to, lt_Dtype from) {
  bool narrow = lt_dtype_category(from) == LT_INTEGER && lt_dtype_compute(from) != from;
  bool loads = lt_dtype_category(to) == LT_INTEGER || lt_dtype_compute(to) == to;
  return narrow && loads && !lt_dtype_is_complex(to);
}

/* Returns whether conversion keeps the bytes: that of integers of one size, which wrap. */
static bool have_same_bytes(lt_Dtype to, lt_Dtype from) {
  return lt_dtype_category(to) == LT_INTEGER && lt_dtype_category(from) == LT_INTEGER &&
         lt_dtype_size(to) == lt_dtype_size(from);
}

/* Returns the dtype that a loop is computed in: that of the op, but float32 where the result is of
 * float32 or a narrower float, the inputs are these, integers or bool, which become the default
 * float, and a wide op has a loop of it. */
static lt_Dtype compute_dtype(const lt_Loop *l) {
  lt_Dtype compute = lt_dtype_compute(l->compute);
  if (!lt_op_is_wide(l->op) || !lt_cpu_isa()->vectors[LT_float32]->op[l->op]) return compute;
  for (int k = 0; k <= l->inputs; k++) {
    lt_Dtype d = l->operand[k].dtype;
    bool whole = k > 0 && !lt_dtype_is_float(d) && !lt_dtype_is_complex(d);
    if (!l->operand[k].host && !whole && lt_dtype_compute(d) != LT_float32) return compute;
  }
  return LT_float32;
}

/* Returns whether a loop multiplies one x by a dense y: loops have a form for one y. */
static bool has_one_factor(const lt_Loop *l) {
  return l->op == LT_OP_mul && l->layout == LT_LAYOUT_SCALAR && !is_dense(l, 1) && is_dense(l, 2);
}

/* Returns whether x is dense half floats, as the result, and the other inputs are one element. */
static bool is_half_with_numbers(const lt_Loop *l) {
  lt_Dtype d = l->operand[1].dtype;
  if (!lt_dtype_is_float(d) || lt_dtype_compute(d) == d || l->operand[0].dtype != d) return false;
  if (l->ndim != 1 || !is_dense(l, 0) || !is_dense(l, 1)) return false;
  for (int k = 2; k <= l->inputs; k++)
    if (l->operand[k].strides[0] != 0) return false;
  return true;
}

/* Makes a clamp of half floats to numbers _hardtanh, which has them as scalar arguments, and their
 * power 2 `square`: half floats have loops of these. Returns false where it does not. */
static bool simplify_halves(lt_Loop *l) {
  if (!is_half_with_numbers(l)) return false;
  l->a = lt_scalar_load(l->operand[2].dtype, l->operand[2].data);
  if (l->op == LT_OP__clamp)
    l->b = lt_scalar_load(l->operand[3].dtype, l->operand[3].data);
  else if (!l->operand[2].host || l->a.im != 0 || lt_scalar_to_double(l->a) != 2)
    return false;
  l->op = l->op == LT_OP_pow ? LT_OP_square : LT_OP__hardtanh;
  l->inputs = 1;
  l->layout = LT_LAYOUT_CONTIGUOUS;
  return true;
}

/* ---- wide ops of integers of 8 bits and bool ------------------------------------------------- */

enum { BYTES = 256 };

/* Returns whether a wide op has so many dense elements of one byte as its input that it takes less
 * time to compute its results for all of their values and to look them up. */
static bool fits_table(const lt_Loop *l) {
  return l->numel > 4 * BYTES && l->inputs == 1 && lt_dtype_size(l->operand[1].dtype) == 1 &&
         l->layout == LT_LAYOUT_CONTIGUOUS && lt_op_is_wide(l->op) &&
         lt_dtype_is_float(l->operand[0].dtype);
}

/* Copies the results of elements first .. last - 1 from a table. */
#define LOOK_UP(type)                                                                              \
  for (int64_t i = first; i < last; i++) ((type *)out)[i] = ((const type *)table)[x[i]];

static void look_up(void *out, const void *table, const uint8_t *x, size_t size, int64_t first,
                    int64_t last) {
  if (size == sizeof(uint16_t)) {
    LOOK_UP(uint16_t)
  } else if (size == sizeof(uint32_t)) {
    LOOK_UP(uint32_t)
  } else {
    LOOK_UP(uint64_t)
  }
}

/* Runs such a loop. */
static bool run_table(const lt_Loop *loop) {
  _Alignas(64) uint64_t table[BYTES];
  uint8_t values[BYTES];
  lt_Loop l = *loop;
  const size_t size = lt_dtype_size(l.operand[0].dtype);
  const int count = l.operand[1].dtype == LT_bool ? 2 : BYTES;
  for (int i = 0; i < count; i++) values[i] = (uint8_t)i;
  l.numel = count, l.ndim = 1, l.shape[0] = count;
  l.operand[0].data = (char *)table, l.operand[0].strides[0] = (int64_t)size;
  l.operand[1].data = (char *)values, l.operand[1].strides[0] = 1;
  if (!lt_cpu_elementwise(&l)) return false;
  const uint8_t *x = (const uint8_t *)loop->operand[1].data;
  void *out = loop->operand[0].data;
  LT_IN_TEAM(lt_team(loop->numel, loop->numel), loop->numel,
             look_up(out, table, x, size, first, last));
  return lt_check_interrupt();
}

bool lt_cpu_elementwise(const lt_Loop *loop) {
  if (loop->layout == LT_LAYOUT_EMPTY) return true;
  lt_Loop swapped;
  if (has_one_factor(loop)) {
    swapped = *loop;
    swapped.operand[1] = loop->operand[2];
    swapped.operand[2] = loop->operand[1];
    loop = &swapped;
  } else if (loop->op == LT_OP__clamp || loop->op == LT_OP_pow) {
    swapped = *loop;
    if (simplify_halves(&swapped)) loop = &swapped;
  }
  if (loop->op == LT_OP_fill) return lt_cpu_fill(loop);
  if (fits_table(loop)) return run_table(loop);
  if (loop->op != LT_OP_copy) {
    bool test = lt_op_is_test(loop->op);
    lt_Dtype compute = compute_dtype(loop), d = narrow_dtype(loop, compute, test);
    return d == compute ? run_loop(loop, d, test) : run_narrow(loop, d, test);
  }
  lt_Dtype to = loop->operand[0].dtype, from = loop->operand[1].dtype;
  if (to == from || have_same_bytes(to, from)) return lt_cpu_copy_same(loop);
  return run_loop(loop, loads_directly(to, from) ? to : lt_copy_compute(to, from), false);
}
