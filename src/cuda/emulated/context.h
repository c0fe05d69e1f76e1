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
/* Saves the running stack in `from` and goes on with `to`. Returns when someone goes on with `from`. */
void stack_switch(Stack *from, Stack *to);
/* To be called first on a stack that was entered, or resumed without a stack_switch. */
void stack_entered(Stack *from, Stack *now);
/* What the interrupted code of a signal handler will go on with: `main` on that stack. False where
 * this cannot be done. */
bool stack_redirect(void *interrupted, Stack *stack, void (*main)(void));

} // namespace emulated

#endif
