/* context.cpp: the switch between stacks; see context.h. Callee-saved registers are saved on the
 * stack that they belong to. */
#include "context.h"

#include <stdint.h>
#ifdef __linux__
#include <ucontext.h>
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#ifdef __APPLE__
#define SYMBOL "_lt_emulated_switch"
#else
#define SYMBOL "lt_emulated_switch"
#endif

#if defined(LT_EMULATED_UCONTEXT)
#elif defined(__x86_64__)
__asm__(".text\n"
        ".globl " SYMBOL "\n" SYMBOL ":\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n");
enum { SAVED = 7, ENTRY = 6 };
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl " SYMBOL "\n"
        ".p2align 2\n" SYMBOL ":\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n");
enum { SAVED = 20, ENTRY = 11 };
#endif
#if defined(__linux__) && defined(__GNUC__)
__asm__(".section .note.GNU-stack,\"\"\n.text\n");
#endif

namespace emulation {

/* Tells AddressSanitizer that the stack's frames are gone, although they did not return. */
static void forget_frames(Stack *stack) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack->low, (size_t)(stack->top - stack->low));
#else
  (void)stack;
#endif
}

void stack_enter(Stack *stack, void (*main)(void)) {
  stack->fake = nullptr;
  forget_frames(stack);
#ifdef LT_EMULATED_UCONTEXT
  getcontext(&stack->saved);
  stack->saved.uc_stack.ss_sp = stack->low;
  stack->saved.uc_stack.ss_size = (size_t)(stack->top - stack->low);
  stack->saved.uc_link = nullptr;
  makecontext(&stack->saved, main, 0);
#else
  /* The stack looks as if main had been called: aligned to 16, except for the return address. */
  void **sp = (void **)((uintptr_t)stack->top & ~(uintptr_t)15) - 2;
  sp[0] = sp[1] = nullptr;
#ifdef __x86_64__
  sp++;
#endif
  sp -= SAVED;
  for (int i = 0; i < SAVED; i++) sp[i] = nullptr;
  sp[ENTRY] = (void *)main;
  stack->saved = sp;
#endif
}

bool stack_redirect(void *interrupted, Stack *stack, void (*main)(void)) {
  forget_frames(stack);
#if defined(__linux__) && defined(__x86_64__)
  ucontext_t *context = (ucontext_t *)interrupted;
  uintptr_t sp = ((uintptr_t)stack->top & ~(uintptr_t)15) - 8;
  context->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
  context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)main;
  return true;
#elif defined(__linux__) && defined(__aarch64__)
  ucontext_t *context = (ucontext_t *)interrupted;
  context->uc_mcontext.sp = (uintptr_t)stack->top & ~(uintptr_t)15;
  context->uc_mcontext.pc = (uintptr_t)main;
  return true;
#else
  (void)interrupted, (void)stack, (void)main;
  return false;
#endif
}

} // namespace emulation
