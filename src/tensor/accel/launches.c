/* launches.c: the launches that an error message names. */
#include "launches.h"

#include "kernel.h"

lt_LaunchNote lt_launch_note(const char *kernel) {
  lt_UserOp op = lt_user_op_get();
  return (lt_LaunchNote){kernel, op.name, op.in_place};
}

/* A user kernel such as scale has its name where ops have theirs, so it is written once. */
void lt_launches_text(const lt_LaunchNote recent[LT_LAUNCHES], uint64_t launched, uint64_t count,
                      char *text, size_t size) {
  uint64_t shown = count < LT_LAUNCHES ? count : LT_LAUNCHES;
  size_t used = 0;
  text[0] = 0;
  for (uint64_t i = 0; i < shown && used < size; i++) {
    const lt_LaunchNote *l = &recent[(launched - 1 - i) % LT_LAUNCHES];
    const char *comma = i ? ", " : "";
    const char *op = l->op ? l->op + (l->op[0] == '_' && !l->in_place) : "lutra";
    if (l->op == l->kernel)
      used += (size_t)snprintf(text + used, size - used, "%s%s", comma, l->kernel);
    else
      used += (size_t)snprintf(text + used, size - used, "%s%s (of %s%s)", comma, l->kernel, op,
                               l->op && l->in_place ? "_" : "");
  }
  if (count > shown && used < size)
    snprintf(text + used, size - used, ", or one of %llu before",
             (unsigned long long)(count - shown));
}
