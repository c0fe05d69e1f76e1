/* nccl_calls.c: see nccl_calls.h. NCCL has neither gather, scatter and all_to_all, which are groups
 * of sends and receives, nor bool, int16 and complex numbers: bools are reduced as uint8, complex
 * numbers as pairs of real ones, and int16 is moved as bytes, but not reduced. */
#include "nccl_calls.h"

/* How NCCL sees a dtype: as `each` elements of another. */
typedef struct Type {
  int dtype, each;
} Type;

static Type type_of(lt_Dtype dtype) {
  switch (dtype) {
  case LT_bool:
  case LT_uint8:
    return (Type){LT_NCCL_UINT8, 1};
  case LT_int16:
    return (Type){LT_NCCL_INT8, 2};
  case LT_int32:
    return (Type){LT_NCCL_INT32, 1};
  case LT_int64:
    return (Type){LT_NCCL_INT64, 1};
  case LT_float16:
    return (Type){LT_NCCL_FLOAT16, 1};
  case LT_bfloat16:
    return (Type){LT_NCCL_BFLOAT16, 1};
  case LT_float32:
    return (Type){LT_NCCL_FLOAT32, 1};
  case LT_float64:
    return (Type){LT_NCCL_FLOAT64, 1};
  case LT_complex64:
    return (Type){LT_NCCL_FLOAT32, 2};
  case LT_complex128:
    return (Type){LT_NCCL_FLOAT64, 2};
  default:
    return (Type){LT_NCCL_INT8, 1};
  }
}

static int reduction_of(const lt_CommCall *call) {
  bool is_bool = call->dtype == LT_bool;
  switch (call->reduction) {
  case LT_COMM_avg:
    return LT_NCCL_AVG;
  case LT_COMM_max:
    return LT_NCCL_MAX;
  case LT_COMM_min:
    return LT_NCCL_MIN;
  case LT_COMM_product:
    return is_bool ? LT_NCCL_MIN : LT_NCCL_PROD;
  default:
    return is_bool ? LT_NCCL_MAX : LT_NCCL_SUM;
  }
}

bool lt_nccl_check(const lt_CommCall *call) {
  const char *name = lt_comm_kind_name(call->kind);
  if (lt_comm_reduces(call->kind) && call->dtype == LT_int16)
    return lt_error_set("%s: cannot reduce int16: NCCL does not support this dtype\n"
                        "hint: x:to(\"int32\")",
                        name);
  if (call->kind == LT_COMM_recv && call->peer == LT_COMM_ANY_SOURCE)
    return lt_error_set("%s: expected a rank for argument 'src', got nil: NCCL cannot receive "
                        "from any rank\nhint: dist.recv(x, 1)",
                        name);
  return true;
}

/* ---- sends and receives ---------------------------------------------------------------------- */

/* A call whose sends and receives are made one by one. */
typedef struct Exchange {
  const lt_Nccl *nccl;
  const lt_NcclEnd *end;
  const lt_CommCall *call;
  Type type;
  size_t size; /* bytes of an element of the tensor */
} Exchange;

/* Queue a send or a receive of `count` elements, from the one at the offset `at` on; none where
 * `count` is 0. */
static int send_to(const Exchange *x, int peer, int64_t at, int64_t count) {
  if (count == 0) return LT_NCCL_SUCCESS;
  return x->nccl->Send((const char *)x->call->input + (size_t)at * x->size,
                       (size_t)(count * x->type.each), x->type.dtype, peer, x->end->comm,
                       x->end->stream);
}

static int receive_from(const Exchange *x, int peer, int64_t at, int64_t count) {
  if (count == 0) return LT_NCCL_SUCCESS;
  return x->nccl->Recv((char *)x->call->output + (size_t)at * x->size,
                       (size_t)(count * x->type.each), x->type.dtype, peer, x->end->comm,
                       x->end->stream);
}

static int gather(const Exchange *x) {
  const lt_CommCall *c = x->call;
  int status = send_to(x, c->peer, 0, c->count);
  for (int r = 0; r < x->end->size && !status && x->end->rank == c->peer; r++)
    status = receive_from(x, r, c->count * r, c->count);
  return status;
}

static int scatter(const Exchange *x) {
  const lt_CommCall *c = x->call;
  int status = receive_from(x, c->peer, 0, c->count);
  for (int r = 0; r < x->end->size && !status && x->end->rank == c->peer; r++)
    status = send_to(x, r, c->count * r, c->count);
  return status;
}

static int all_to_all(const Exchange *x) {
  const lt_CommCall *c = x->call;
  int64_t in = 0, out = 0;
  int status = LT_NCCL_SUCCESS;
  for (int r = 0; r < x->end->size && !status; r++) {
    int64_t sent = c->input_counts ? c->input_counts[r] : c->count;
    int64_t received = c->output_counts ? c->output_counts[r] : c->count;
    status = send_to(x, r, in, sent);
    if (!status) status = receive_from(x, r, out, received);
    in += sent;
    out += received;
  }
  return status;
}

/* ---- all calls ------------------------------------------------------------------------------- */

int lt_nccl_issue(const lt_Nccl *nccl, const lt_NcclEnd *e, const lt_CommCall *c) {
  Exchange x = {nccl, e, c, type_of(c->dtype), lt_dtype_size(c->dtype)};
  size_t n = (size_t)(c->count * x.type.each);
  int dtype = x.type.dtype, op = reduction_of(c);
  bool is_root = e->rank == c->peer;
  if (c->kind == LT_COMM_all_to_all) return all_to_all(&x);
  if (c->kind == LT_COMM_barrier)
    return nccl->AllReduce(e->scratch, e->scratch, 1, LT_NCCL_INT32, LT_NCCL_SUM, e->comm,
                           e->stream);
  if (n == 0) return LT_NCCL_SUCCESS;
  switch (c->kind) {
  case LT_COMM_broadcast:
    return nccl->Broadcast(c->output, c->output, n, dtype, c->peer, e->comm, e->stream);
  case LT_COMM_all_reduce:
    return nccl->AllReduce(c->output, c->output, n, dtype, op, e->comm, e->stream);
  case LT_COMM_reduce:
    return nccl->Reduce(c->output, is_root ? c->output : NULL, n, dtype, op, c->peer, e->comm,
                        e->stream);
  case LT_COMM_all_gather:
    return nccl->AllGather(c->input, c->output, n, dtype, e->comm, e->stream);
  case LT_COMM_reduce_scatter:
    return nccl->ReduceScatter(c->input, c->output, n, dtype, op, e->comm, e->stream);
  case LT_COMM_gather:
    return gather(&x);
  case LT_COMM_scatter:
    return scatter(&x);
  case LT_COMM_send:
    return send_to(&x, c->peer, 0, c->count);
  case LT_COMM_recv:
    return receive_from(&x, c->peer, 0, c->count);
  default:
    return LT_NCCL_SUCCESS;
  }
}
