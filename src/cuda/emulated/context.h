/* context.h: stacks, and the switch from one to another, in a few instructions where the processor
 * is known. The executor's contexts are made here, many at a time. */
#ifndef LT_EMULATED_CONTEXT_H
#define LT_EMULATED_CONTEXT_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#define LT_EMULATED_UCONTEXT 1
#endif
#ifdef LT_EMULATED_UCONTEXT
#include <ucontext.h>
#else
extern "C" void lt_emulated_switch(void **save, void *load);
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated {

struct Stack {
#ifdef LT_EMULATED_UCONTEXT
  ucontext_t saved;
#else
  void *saved; /* the stack pointer */
#endif
  char *low,
      *top;   /* of the memory in use; NULL for a system thread's own stack, until ASan tells */
  void *fake; /* AddressSanitizer's */
};

/* The next switch to it enters `main`, which never returns. */
void stack_enter(Stack *stack, void (*main)(void));
/* To be called first on a stack that was entered. */
inline void stack_entered(Stack *from, Stack *now) {
#ifdef __SANITIZE_ADDRESS__
  const void *low;
  size_t size;
  __sanitizer_finish_switch_fiber(now->fake, &low, &size);
  if (from && !from->low) {
    from->low = (char *)low;
    from->top = (char *)low + size;
  }
#else
  (void)from, (void)now;
#endif
}
/* Saves the running stack in `from` and continues with `to`. Returns when another call continues
 * with `from`. Inline: each call between here and the kernel is a return that the processor
 * predicts wrongly. */
inline __attribute__((always_inline)) void stack_switch(Stack *from, Stack *to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from->fake, to->low, (size_t)(to->top - to->low));
#endif
#ifdef LT_EMULATED_UCONTEXT
  swapcontext(&from->saved, &to->saved);
#else
  lt_emulated_switch(&from->saved, to->saved);
#endif
  stack_entered(nullptr, from);
}
/* What the interrupted code of a signal handler will go on with: `main` on that stack. False where
 * this cannot be done. */
bool stack_redirect(void *interrupted, Stack *stack, void (*main)(void));

} // namespace emulated

#endif
