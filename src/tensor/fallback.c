/* fallback.c: runs an op on the CPU, on copies of its operands, when its device has no kernel for
 * it and the program allows that or the op's algorithm belongs there (trait HOST); otherwise
 * reports an error that names op and device. (Ops with a composite form do not get here.)
 *
 * This happens below autograd, which records the op like any other. */
#include "trace.h"
#include "opids.h"

/* ---- the mode -------------------------------------------------------------------------------- */

/* The mode of hosts without programs of their own. An lt_FallbackMode. */
static atomic_int process_mode;

lt_FallbackMode lt_fallback_mode(void) {
  const lt_Thread *th = lt_thread();
  return th->has_defaults ? th->fallback : (lt_FallbackMode)atomic_load(&process_mode);
}

bool lt_fallback_enabled(void) {
  lt_FallbackMode mode = lt_fallback_mode();
  const char *value = mode == LT_FALLBACK_BY_ENVIRONMENT ? getenv("LUTRA_FALLBACK") : NULL;
  return value ? strcmp(value, "1") == 0 : mode == LT_FALLBACK_ON;
}

void lt_fallback_set_enabled(bool on) {
  lt_Thread *th = lt_thread();
  lt_FallbackMode mode = on ? LT_FALLBACK_ON : LT_FALLBACK_OFF;
  if (th->has_defaults)
    th->fallback = mode;
  else
    atomic_store(&process_mode, mode);
}

/* ---- errors and warnings --------------------------------------------------------------------- */

/* Reports the missing kernel: of the op itself, or, when the user called another op, of the op that
 * it runs. */
static bool fail_missing(const lt_Call *c) {
  const char *device = lt_device_name(c->device), *op = c->info->name;
  const char *hint = "hint: lt.set_fallback(true) (or LUTRA_FALLBACK=1 in the environment) runs "
                     "it on the CPU, with two copies: its arguments to the CPU, its results back";
  if (strcmp(lt_thread()->user_op, op) == 0)
    return lt_fail("cannot run on device \"%s\": it has no kernel for this op\n%s", device, hint);
  return lt_fail("cannot run: no kernel for its op '%s' on device \"%s\"\n%s", op, device, hint);
}

/* Warns on stderr, once for each op in a process. */
static void warn(const lt_Call *c) {
  static atomic_bool warned[LT_OP_COUNT];
  char where[64];
  if (atomic_exchange(&warned[c->op], true)) return;
  lt_memory_where(where, sizeof where);
  fprintf(
      stderr,
      "lutra: warning: %s%s%s: no kernel on device \"%s\": running on the CPU, with two copies: "
      "its arguments to the CPU, its results back\n",
      where, *where ? ": " : "", c->info->name, lt_device_name(c->device));
}

/* ---- the call on the CPU --------------------------------------------------------------------- */

/* Returns t's values in CPU memory; the result belongs to the open scope. NULL on failure. */
static lt_Tensor *fetched(lt_Tensor *t) {
  if (t->storage->device.type == LT_DEVICE_cpu) return lt_scope_own(lt_retain(t));
  lt_Tensor *host = lt_empty(t->dtype, lt_cpu(), t->ndim, t->shape);
  if (host && !lt_copy_into(host, t, false)) {
    lt_release(host);
    return NULL;
  }
  return lt_scope_own(host);
}

/* Replaces the tensors of a list by copies on the CPU. The caller frees the new list. */
static bool fetch_list(lt_Arg *a) {
  lt_Tensor **list = calloc((size_t)a->count + 1, sizeof *list);
  if (!list) return lt_fail_memory();
  lt_Tensor *const *from = a->tensors;
  a->tensors = list;
  for (int k = 0; k < a->count; k++)
    if (from[k] && !(list[k] = fetched(from[k]))) return false;
  return true;
}

/* Replaces all tensor arguments by copies on the CPU. */
static bool fetch_args(lt_Call *host) {
  for (int i = 0; i < host->nargs; i++) {
    lt_Arg *a = &host->arg[i];
    if (a->kind == LT_ARG_TENSOR && !(a->tensor = fetched(a->tensor))) return false;
    if (a->kind == LT_ARG_TENSORS && !fetch_list(a)) return false;
  }
  return true;
}

/* Prepares the memory that the kernel writes on the CPU: self's copy in place, a copy of self's
 * values for an UPDATE op, otherwise new memory. */
static bool make_outputs(const lt_Call *c, lt_Call *host) {
  for (int i = 0; i < c->nout; i++) {
    lt_Tensor *out = c->out[i];
    if (c->in_place && out == lt_in(c, 0))
      host->out[i] = host->arg[0].tensor;
    else if (c->info->kind == LT_KIND_UPDATE)
      host->out[i] = fetched(out);
    else
      host->out[i] = lt_scope_own(lt_empty(out->dtype, lt_cpu(), out->ndim, out->shape));
    if (!host->out[i]) return false;
  }
  return true;
}

/* Copies back the results that the kernel allocated itself, whose shape depends on the data. */
static bool send_new(lt_Call *c, const lt_Call *host) {
  bool ok = true;
  for (int i = c->nout; i < host->nout; i++) {
    lt_Tensor *made = lt_scope_own(host->out[i]);
    if (!ok || !made) {
      ok = false;
      continue;
    }
    c->out[i] = lt_empty(made->dtype, c->device, made->ndim, made->shape);
    ok = c->out[i] && lt_copy_into(c->out[i], made, false);
    if (c->out[i]) c->nout = i + 1;
  }
  return ok;
}

/* Copies back an argument that the op wrote. */
static bool send_arg(const lt_Arg *a, const lt_Arg *host) {
  if (a->kind == LT_ARG_TENSOR) return lt_copy_into(a->tensor, host->tensor, false);
  for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
    if (!lt_copy_into(a->tensors[k], host->tensors[k], false)) return false;
  return true;
}

/* Copies everything that the kernel wrote back to the device. */
static bool send_back(lt_Call *c, const lt_Call *host) {
  for (int i = 0; i < c->nout; i++)
    if (!lt_copy_into(c->out[i], host->out[i], false)) return false;
  bool writes = c->in_place || c->info->kind == LT_KIND_MAP;
  for (int i = c->in_place; writes && i < c->nargs; i++) /* in place, self is a result */
    if (lt_call_writes(c, i) && !send_arg(&c->arg[i], &host->arg[i])) return false;
  return send_new(c, host);
}

bool lt_fallback_run(lt_Call *c, bool (*run)(lt_Call *host)) {
  bool of_host = (c->info->traits & LT_TRAIT_HOST) != 0;
  if (c->device.type == LT_DEVICE_cpu || !(of_host || lt_fallback_enabled()))
    return fail_missing(c);
  if (!of_host) warn(c);
  lt_Call host = *c;
  size_t mark = lt_scope_open();
  host.device = lt_cpu();
  host.stream = NULL;
  for (int i = 0; i < host.nout; i++) host.spec[i].device = lt_cpu();
  bool ok = fetch_args(&host) && make_outputs(c, &host) && run(&host) && send_back(c, &host);
  for (int i = 0; i < host.nargs; i++)
    if (host.arg[i].kind == LT_ARG_TENSORS && host.arg[i].tensors != c->arg[i].tensors)
      free((void *)host.arg[i].tensors);
  lt_scope_close(mark, NULL);
  return ok;
}
