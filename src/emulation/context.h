/* context.h: stacks, and the switch between them, which takes a few instructions where the
 * processor is supported. */
#ifndef LT_EMULATION_CONTEXT_H
#define LT_EMULATION_CONTEXT_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#define LT_EMULATED_UCONTEXT 1
#endif
#ifdef LT_EMULATED_UCONTEXT
#include <ucontext.h>
#else
/* Saves the registers on the running stack and its pointer in *save, and continues at `load`. */
extern "C" void lt_emulated_switch(void **save, void *load);
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {

/* A stack that is not running, or the one that is. */
struct Stack {
#ifdef LT_EMULATED_UCONTEXT
  ucontext_t saved;
#else
  void *saved; /* the stack pointer */
#endif
  /* The ends of the memory. NULL for a system thread's own stack, until ASan reports them. */
  char *low, *top;
  void *fake; /* AddressSanitizer's state */
};

/* Prepares a stack: the next switch to it enters `main`, which must not return. */
void stack_enter(Stack *stack, void (*main)(void));
/* Must be called first by the main function of a stack. */
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
 * with `from`. Inline, because the processor mispredicts the return of each call between here and
 * the kernel. */
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
/* Makes the code that a signal handler interrupted continue with `main` on that stack, when the
 * handler returns. Returns false where this is not supported. */
bool stack_redirect(void *interrupted, Stack *stack, void (*main)(void));

} // namespace emulation

#endif
