/* error.c: the state of each thread: the error slot, the name of the op that the user called, and
 * the stack of scopes.
 *
 * The thread's state and the device table are the only mutable state at file scope in the core. */
#include "core.h"

#include <stdarg.h>

_Thread_local lt_Thread lt_thread_state;

/* ---- the slot -------------------------------------------------------------------------------- */

/* Formats a message into the slot, after "op: " if op is not NULL. The only writer of the slot:
 * text and kind always change together. The arguments may point into the slot, so the message is
 * formatted in a buffer first. */
static void write_slot(lt_ErrorKind kind, const char *op, const char *format, va_list args) {
  char text[sizeof lt_thread_state.error.text];
  int n = op ? snprintf(text, sizeof text, "%s: ", op) : 0;
  vsnprintf(text + n, sizeof text - (size_t)n, format, args);
  lt_ErrorSlot *slot = &lt_thread()->error;
  strcpy(slot->text, text);
  slot->kind = kind;
}

/* clang-format off */
#define WRITE_SLOT(kind, op, format)     \
  do {                                   \
    va_list args;                        \
    va_start(args, format);              \
    write_slot(kind, op, format, args);  \
    va_end(args);                        \
  } while (0)
/* clang-format on */

const char *lt_error(void) { return lt_thread()->error.text; }

bool lt_error_is_memory(void) { return lt_thread()->error.kind == LT_ERROR_MEMORY; }

void *lt_error_set(const char *format, ...) {
  WRITE_SLOT(LT_ERROR_PLAIN, NULL, format);
  return NULL;
}

void *lt_error_memory(const char *format, ...) {
  WRITE_SLOT(LT_ERROR_MEMORY, NULL, format);
  return NULL;
}

bool lt_fail(const char *format, ...) {
  WRITE_SLOT(LT_ERROR_PLAIN, lt_user_op(), format);
  return false;
}

bool lt_fail_memory(void) {
  lt_error_memory("%s: out of memory", lt_user_op());
  return false;
}

void lt_error_append(const char *format, ...) {
  lt_ErrorSlot *slot = &lt_thread()->error;
  char more[500], rest[sizeof slot->text];
  size_t n = strcspn(slot->text, "\n");
  va_list args;
  va_start(args, format);
  vsnprintf(more, sizeof more, format, args);
  va_end(args);
  strcpy(rest, slot->text + n);
  snprintf(slot->text + n, sizeof slot->text - n, "%s%s", more, rest);
}

void lt_error_clear(void) {
  lt_ErrorSlot *slot = &lt_thread()->error;
  slot->text[0] = 0;
  slot->kind = LT_ERROR_PLAIN;
}

void lt_error_not_memory(void) {
  lt_ErrorSlot *slot = &lt_thread()->error;
  if (slot->kind == LT_ERROR_MEMORY) slot->kind = LT_ERROR_PLAIN;
}

/* Copies only the bytes in use: the slot is large, and this runs around every allocation. */
static void copy_slot(lt_ErrorSlot *to, const lt_ErrorSlot *from) {
  strcpy(to->text, from->text);
  to->kind = from->kind;
  if (from->kind == LT_ERROR_DEVICES) to->mismatch = from->mismatch;
}

void lt_error_keep(lt_ErrorSlot *kept) { copy_slot(kept, &lt_thread()->error); }

void lt_error_restore(const lt_ErrorSlot *kept) { copy_slot(&lt_thread()->error, kept); }

/* ---- tensors on different devices ------------------------------------------------------------ */

bool lt_error_tensors(const lt_Tensor *tensor[2], const lt_Storage *memory[2]) {
  const lt_ErrorSlot *slot = &lt_thread()->error;
  if (slot->kind != LT_ERROR_DEVICES) return false;
  for (int i = 0; i < 2; i++) {
    tensor[i] = slot->mismatch.tensor[i];
    memory[i] = slot->mismatch.memory[i];
  }
  return true;
}

/* Writes the message about two tensors on different devices. */
static void write_mismatch(const char *format, ...) { WRITE_SLOT(LT_ERROR_DEVICES, NULL, format); }

bool lt_error_device_mismatch(const lt_DeviceMismatch *mismatch) {
  lt_thread()->error.mismatch = *mismatch;
  lt_thread()->error.kind = LT_ERROR_DEVICES;
  lt_error_name((lt_TensorLabel[2]){{0}, {0}});
  return false;
}

void lt_error_name(const lt_TensorLabel known[2]) {
  const lt_ErrorSlot *slot = &lt_thread()->error;
  const lt_DeviceMismatch *p = &slot->mismatch;
  if (slot->kind != LT_ERROR_DEVICES) return;
  const char *name[2], *note[2];
  char device[2][32], quoted[34];
  for (int i = 0; i < 2; i++) {
    name[i] = known[i].name ? known[i].name : p->name[i];
    note[i] = known[i].note ? known[i].note : "";
    snprintf(device[i], sizeof device[i], "%s", lt_device_name(p->device[i]));
  }
  const lt_TensorLabel *stays = &known[1 - p->moved];
  snprintf(quoted, sizeof quoted, "\"%s\"", device[1 - p->moved]);
  write_mismatch("%s: cannot use tensors on different devices: %s is on \"%s\"%s, %s is on "
                 "\"%s\"%s\nhint: %s:to(%s)\n  %s has the shape %s, %s %s",
                 p->op, name[0], device[0], note[0], name[1], device[1], note[1],
                 known[p->moved].move ? known[p->moved].move : name[p->moved],
                 stays->device ? stays->device : quoted, name[0],
                 lt_shape_text(p->ndim[0], p->shape[0]), name[1],
                 lt_shape_text(p->ndim[1], p->shape[1]));
}

/* ---- the running op -------------------------------------------------------------------------- */

/* Returns the namespace in whose functions the op's name starts with that of the namespace, or -1:
 * that of special_ndtr, and of the internal op _linalg_svd, but none of masked_fill. */
static int space_of(const char *op) {
  bool internal = op[0] == '_';
  int id = internal ? -1 : lt_op_find(op);
  for (int s = 0; s < LT_SPACE_COUNT; s++) {
    if (lt_namespace_op_name(s, op + internal) == op + internal) continue;
    if (internal || (id >= 0 && lt_ops[id].variants & LT_VARIANT_SPACE << s)) return s;
  }
  return -1;
}

const char *lt_user_op(void) {
  static _Thread_local char name[64];
  lt_Thread *t = lt_thread();
  if (!t->user_op) return "lutra";
  int space = space_of(t->user_op);
  const char *op = t->user_op[0] == '_' ? t->user_op + 1 : t->user_op;
  if (space < 0 && !t->user_in_place) return op;
  if (space >= 0)
    snprintf(name, sizeof name, "%s.%s", lt_namespaces[space].name,
             lt_namespace_op_name(space, op));
  else
    snprintf(name, sizeof name, "%s_", op);
  return name;
}

lt_UserOp lt_user_op_get(void) {
  const lt_Thread *th = lt_thread();
  return (lt_UserOp){th->user_op, th->user_in_place};
}

lt_UserOp lt_user_op_set(lt_UserOp op) {
  lt_Thread *th = lt_thread();
  lt_UserOp before = {th->user_op, th->user_in_place};
  th->user_op = op.name;
  th->user_in_place = op.in_place;
  return before;
}

lt_UserIndex lt_user_index_set(lt_UserIndex index) {
  lt_Thread *th = lt_thread();
  lt_UserIndex before = th->user_index;
  th->user_index = index;
  return before;
}

void lt_user_index_apply(const char **name, int *ndim, const int64_t *shape) {
  const lt_UserIndex *index = &lt_thread()->user_index;
  if (!index->name) return;
  *name = index->name;
  while (*ndim > index->ndim && shape[*ndim - 1] == 1) (*ndim)--;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

size_t lt_scope_open(void) { return lt_thread()->scope_count; }

/* Doubles the stack. Its first part is a member of the thread's state, so that most threads never
 * allocate one. */
static bool scope_grow(lt_Thread *th) {
  size_t room = th->scope_room ? 2 * th->scope_room : LT_SCOPE_FIRST;
  lt_Tensor **bigger = th->scope_first;
  if (th->scope_room) {
    bigger = malloc(room * sizeof *bigger);
    if (!bigger) return lt_fail_memory();
    memcpy(bigger, th->scope, th->scope_count * sizeof *bigger);
    if (th->scope != th->scope_first) free(th->scope);
  }
  th->scope = bigger;
  th->scope_room = room;
  return true;
}

lt_Tensor *lt_scope_own(lt_Tensor *t) {
  lt_Thread *th = lt_thread();
  if (!t) return NULL;
  if (th->scope_count == th->scope_room && !scope_grow(th)) {
    lt_release(t);
    return NULL;
  }
  return th->scope[th->scope_count++] = t;
}

void lt_scope_take(size_t mark, lt_Tensor *t) {
  lt_Thread *th = lt_thread();
  if (th->scope_count > mark && th->scope[th->scope_count - 1] == t)
    th->scope_count--;
  else
    lt_retain(t);
}

lt_Tensor *lt_scope_close(size_t mark, lt_Tensor *keep) {
  lt_Thread *th = lt_thread();
  lt_scope_take(mark, keep);
  while (th->scope_count > mark) lt_release(th->scope[--th->scope_count]);
  if (mark == 0 && th->scope != th->scope_first) {
    free(th->scope);
    th->scope = NULL;
    th->scope_room = 0;
  }
  return keep;
}

void lt_text_append(lt_Text *t, const char *format, ...) {
  va_list args;
  if (t->length + 1 >= t->size) return;
  va_start(args, format);
  int n = vsnprintf(t->start + t->length, t->size - t->length, format, args);
  va_end(args);
  if (n > 0) t->length += (size_t)n;
  if (t->length >= t->size) t->length = t->size - 1;
}
