/* elementwise.c: chooses the kernel of an elementwise loop (elementwise.h) and fills its struct.
 *
 * An operand in host memory is a single number: it is read here and passed with the launch.
 */
#include "elementwise.h"
#include "mps.h"
#include "opids.h"

#include <float.h>

/* ---- numbers --------------------------------------------------------------------------------- */

/* Converts a scalar to the type that is computed in, as the CPU's loops do. */
static lt_MpsNumber number(lt_Dtype compute, lt_Scalar s) {
  switch (compute) {
  case LT_float32:
    return (lt_MpsNumber){.re = s.kind >= LT_FLOATING ? (float)s.f : (float)s.i};
  case LT_complex64:
    return (lt_MpsNumber){.re = (float)lt_scalar_to_double(s), .im = (float)s.im};
  case LT_bool:
    return (lt_MpsNumber){.integer = lt_scalar_to_double(s) != 0};
  default: {
    int64_t v = lt_scalar_to_int(s);
    if (compute == LT_int32 && s.kind == LT_FLOATING)
      v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
    return (lt_MpsNumber){.integer = v};
  }
  }
}

/* Returns the largest finite number of a result: ops that limit their values use it. */
static float largest(lt_Dtype compute, lt_Dtype result) {
  if (compute != LT_float32) return 0;
  return result == LT_float16 ? 65504.0f : result == LT_bfloat16 ? 0x1.FEp127f : FLT_MAX;
}

/* ---- launches -------------------------------------------------------------------------------- */

static int64_t groups_for(int64_t n, int64_t each) {
  int64_t groups = lt_mps_groups(n, each);
  return groups < LT_MPS_GROUPS ? groups : LT_MPS_GROUPS;
}

static int64_t element_stride(const lt_Loop *l, int k, int d) {
  return l->operand[k].strides[d] / (int64_t)lt_dtype_size(l->operand[k].dtype);
}

/* ---- copies and fills ------------------------------------------------------------------------ */

/* A copy, or, with `from` NULL, a fill. */
typedef struct Move {
  const char *to, *from;
  int size; /* of an element */
  lt_MpsMove args;
} Move;

/* Treats elements as half as many of twice the size, as often as alignment and strides allow, up to
 * 16 bytes. */
static void widen(Move *m) {
  lt_MpsGeometry2 *g = &m->args.geometry;
  int last = g->ndim - 1, operands = m->from ? 2 : 1;
  for (int size = 2 * m->size; size <= 16; size *= 2) {
    bool fits =
        g->shape[last] % 2 == 0 && ((uintptr_t)m->to | (uintptr_t)m->from) % (uintptr_t)size == 0;
    for (int k = 0; k < operands && fits; k++) {
      fits = g->strides[k][last] == 1;
      for (int d = 0; d < last; d++) fits &= g->strides[k][d] % 2 == 0;
    }
    if (!fits) return;
    m->size = size;
    m->args.numel /= 2;
    g->shape[last] /= 2;
    for (int k = 0; k < operands; k++)
      for (int d = 0; d < last; d++) g->strides[k][d] /= 2;
  }
}

static bool launch_move(const lt_Loop *l, Move *m) {
  lt_MpsGeometry2 *g = &m->args.geometry;
  if (g->ndim > 0) widen(m);
  g->narrow = lt_mps_is_narrow(g->ndim, g->shape, m->from ? 2 : 1, g->strides);
  return lt_mps_launch_on(l->device.index, l->stream,
                          &(lt_MpsLaunch){.file = "elementwise_copy",
                                          .kernel = "move_any",
                                          .constants = {m->size, m->from == NULL},
                                          .data = {m->to, m->from},
                                          .count = 2,
                                          .arguments = &m->args,
                                          .size = sizeof m->args,
                                          .groups = {groups_for(m->args.numel, LT_MPS_THREADS)},
                                          .threads = {LT_MPS_THREADS}});
}

/* Returns the dimension that is dense in the source while the last one is dense in the target; -1
 * for other copies, and where tiles do not pay. */
static int transposed(const Move *m) {
  const lt_MpsGeometry2 *g = &m->args.geometry;
  int last = g->ndim - 1;
  if (!m->from || last < 1 || g->strides[0][last] != 1 || g->strides[1][last] == 1) return -1;
  for (int d = 0; d < last; d++)
    if (g->strides[1][d] == 1 && g->shape[d] >= 8 && g->shape[last] >= 8) return d;
  return -1;
}

/* Launches a transpose of dimension `dim` with the last one; the other dimensions are outer. */
static bool transpose(const lt_Loop *l, const Move *m, int dim) {
  const lt_MpsGeometry2 *g = &m->args.geometry;
  int last = g->ndim - 1;
  lt_MpsTiles t = {.across = g->shape[dim],
                   .last = g->shape[last],
                   .tiles_across = lt_mps_groups(g->shape[dim], LT_MPS_TILE),
                   .tiles_last = lt_mps_groups(g->shape[last], LT_MPS_TILE),
                   .to_across = g->strides[0][dim],
                   .from_last = g->strides[1][last]};
  t.tiles = t.tiles_across * t.tiles_last;
  for (int d = 0; d < last; d++) {
    if (d == dim) continue;
    t.outer.shape[t.outer.ndim] = g->shape[d];
    t.outer.strides[0][t.outer.ndim] = g->strides[0][d];
    t.outer.strides[1][t.outer.ndim++] = g->strides[1][d];
    t.tiles *= g->shape[d];
  }
  t.outer.narrow = lt_mps_is_narrow(t.outer.ndim, t.outer.shape, 2, t.outer.strides);
  return lt_mps_launch_on(l->device.index, l->stream,
                          &(lt_MpsLaunch){.file = "elementwise_copy",
                                          .kernel = "move_tiles",
                                          .constants = {m->size},
                                          .data = {m->to, m->from},
                                          .count = 2,
                                          .arguments = &t,
                                          .size = sizeof t,
                                          .groups = {groups_for(t.tiles, 1)},
                                          .threads = {LT_MPS_TILE, LT_MPS_ROWS}});
}

/* Fills contiguous memory. */
static bool fill_dense(const lt_Loop *l, const Move *m) {
  lt_MpsFill f = {.bits = m->args.bits[0], .nbytes = m->args.numel * m->size};
  f.head = (int64_t)(-(uintptr_t)m->to % 16);
  if (f.head > f.nbytes) f.head = f.nbytes;
  f.quads = (f.nbytes - f.head) / 16;
  return lt_mps_launch_on(l->device.index, l->stream,
                          &(lt_MpsLaunch){.file = "elementwise_copy",
                                          .kernel = "fill_bytes",
                                          .data = {m->to},
                                          .count = 1,
                                          .arguments = &f,
                                          .size = sizeof f,
                                          .groups = {groups_for(f.quads, LT_MPS_THREADS)},
                                          .threads = {LT_MPS_THREADS}});
}

/* Copies elements, or, with `from` NULL, fills with the element `bits`. */
static bool move(const lt_Loop *l, const char *from, uint64_t bits) {
  Move m = {.to = l->operand[0].data,
            .from = from,
            .size = (int)lt_dtype_size(l->operand[0].dtype),
            .args = {.numel = l->numel, .geometry = {.ndim = l->ndim}}};
  lt_MpsGeometry2 *g = &m.args.geometry;
  bool dense = l->ndim == 1;
  memcpy(g->shape, l->shape, sizeof *g->shape * (size_t)l->ndim);
  for (int k = 0; k < (from ? 2 : 1); k++)
    for (int d = 0; d < l->ndim; d++) {
      g->strides[k][d] = element_stride(l, k, d);
      dense &= g->strides[k][d] == 1;
    }
  for (int size = m.size; size < 8; size *= 2) bits |= bits << 8 * size;
  m.args.bits[0] = m.args.bits[1] = bits;
  if (dense && !from) return fill_dense(l, &m);
  if (dense && m.to == from) return true;
  if (dense)
    return lt_mps_copy(l->device, l->operand[0].data, l->device, from,
                       (size_t)l->numel * (size_t)m.size, l->stream, true);
  int dim = transposed(&m);
  return dim >= 0 ? transpose(l, &m, dim) : launch_move(l, &m);
}

static bool fill(const lt_Loop *l) {
  uint64_t bits = 0; /* the low bytes are the element: devices are little-endian */
  return lt_scalar_store(l->a, l->operand[0].dtype, &bits) && move(l, NULL, bits);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static int source_of(const lt_Loop *l, int k) {
  const lt_Operand *o = &l->operand[k];
  if (o->host) return LT_MPS_VALUE;
  return o->strides[l->ndim - 1] == 0 && l->numel > 1 ? LT_MPS_SINGLE : LT_MPS_DENSE;
}

/* Returns true when four elements of each operand can be loaded at once, wherever they begin. */
static bool packed(const lt_Loop *l, int inputs) {
  for (int k = 0; k <= inputs; k++) {
    const lt_Operand *o = &l->operand[k];
    int64_t bytes = 4 * (int64_t)lt_dtype_size(o->dtype);
    if (bytes > 16) bytes = 16;
    if (k > 0 && source_of(l, k) != LT_MPS_DENSE) continue;
    if ((uintptr_t)o->data % (uintptr_t)bytes) return false;
    for (int d = 0; d < l->ndim - 1; d++)
      if (o->strides[d] % bytes) return false;
  }
  return true;
}

/* Returns true when the loop consists of dense rows, of which groups of four elements can be
 * processed by a thread. */
static bool in_rows(const lt_Loop *l) {
  if (l->layout == LT_LAYOUT_GENERAL) return false;
  return l->ndim == 1 || l->shape[l->ndim - 1] % 4 == 0;
}

/* Fills in the geometry; for rows, that of groups of four elements. */
static void set_geometry(const lt_Loop *l, int inputs, bool rows, lt_MpsGeometry4 *g) {
  int last = l->ndim - 1;
  g->ndim = l->ndim;
  memcpy(g->shape, l->shape, sizeof *g->shape * (size_t)l->ndim);
  for (int k = 0; k <= inputs; k++)
    for (int d = 0; d <= last; d++)
      g->strides[k][d] = l->operand[k].host ? 0 : element_stride(l, k, d);
  if (rows && last > 0) {
    g->shape[last] /= 4;
    for (int k = 0; k <= inputs; k++) g->strides[k][last] *= 4;
  }
  g->narrow = lt_mps_is_narrow(g->ndim, g->shape, 4, g->strides);
}

static const char *file_of(lt_Dtype compute) {
  switch (compute) {
  case LT_float32:
    return "elementwise_float";
  case LT_complex64:
    return "elementwise_complex";
  case LT_int32:
    return "elementwise_int";
  case LT_int64:
    return "elementwise_int64";
  default:
    return "elementwise_bool";
  }
}

/* Launches the kernel that computes an op in a type. */
static bool compute_op(const lt_Loop *l, lt_OpId op, int inputs, lt_Dtype compute) {
  bool rows = in_rows(l), flat = l->ndim == 1;
  lt_MpsElementwise args = {.numel = l->numel,
                            .a = number(compute, l->a),
                            .b = number(compute, l->b),
                            .limit = largest(compute, l->operand[0].dtype)};
  lt_MpsLaunch launch = {.file = file_of(compute),
                         .kernel = rows ? "elementwise_rows" : "elementwise_any",
                         .constants = {(int32_t)op},
                         .count = 4,
                         .arguments = &args,
                         .size = sizeof args,
                         .threads = {LT_MPS_THREADS}};
  for (int k = 0; k <= inputs; k++) {
    const lt_Operand *o = &l->operand[k];
    launch.constants[1 + k] = (int32_t)o->dtype;
    if (k > 0) launch.constants[5] |= source_of(l, k) << 2 * (k - 1);
    if (o->host)
      args.value[k - 1] = number(compute, lt_scalar_load(o->dtype, o->data));
    else
      launch.data[k] = o->data;
  }
  launch.constants[6] = rows && packed(l, inputs);
  launch.constants[7] = rows && flat;
  set_geometry(l, inputs, rows, &args.geometry);
  launch.groups[0] = groups_for(l->numel, rows ? LT_MPS_THREADS * 4 : LT_MPS_THREADS);
  return lt_mps_launch_on(l->device.index, l->stream, &launch);
}

/* Returns the op to run: x^2 is so common that the check of the exponent pays. The result is the
 * same: see lt_pow. */
static lt_OpId simplified_op(const lt_Loop *l) {
  const lt_Operand *exponent = &l->operand[2];
  if (l->op != LT_OP_pow || !exponent->host) return l->op;
  lt_Scalar s = lt_scalar_load(exponent->dtype, exponent->data);
  return lt_scalar_to_double(s) == 2 && s.im == 0 ? LT_OP_square : l->op;
}

bool lt_mps_elementwise(const lt_Loop *l) {
  if (l->layout == LT_LAYOUT_EMPTY) return true;
  if (!lt_mps_fault_check(l->device.index)) return false;
  if (l->op == LT_OP_fill) return fill(l);
  const lt_Operand *from = &l->operand[1];
  bool copy = l->op == LT_OP_copy;
  if (copy && !from->host && from->dtype == l->operand[0].dtype) return move(l, from->data, 0);
  lt_Dtype compute =
      copy ? lt_copy_compute(l->operand[0].dtype, from->dtype) : lt_dtype_compute(l->compute);
  lt_OpId op = simplified_op(l);
  return compute_op(l, op, op == l->op ? l->inputs : 1, compute);
}

bool lt_mps_elementwise_supported(lt_OpId op, lt_Dtype compute) {
  (void)compute;
  return !lt_op_is_wide(op);
}
