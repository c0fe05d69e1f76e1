/* launch.h: a launch of a kernel. It stores the arguments with the types of the kernel's
 * parameters. */
#ifndef LT_EMULATED_LAUNCH_H
#define LT_EMULATED_LAUNCH_H

#include "device.h"

template <class... P> struct lt_EmulatedArguments;
template <> struct lt_EmulatedArguments<> {
  template <class F, class... Q> LT_EMULATED void call(F kernel, Q &...all) { kernel(all...); }
};
template <class P, class... Rest> struct lt_EmulatedArguments<P, Rest...> {
  P first;
  lt_EmulatedArguments<Rest...> rest;
  template <class A, class... B>
  explicit lt_EmulatedArguments(const A &a, const B &...b) : first(a), rest{b...} {}
  template <class F, class... Q> LT_EMULATED void call(F kernel, Q &...before) {
    rest.call(kernel, before..., first);
  }
};

/* A launch of a kernel with parameters of the types P. */
template <class... P> struct lt_EmulatedKernel : lt_EmulatedLaunch {
  void (*kernel)(P...);
  lt_EmulatedArguments<P...> arguments;

  template <class... A>
  explicit lt_EmulatedKernel(void (*k)(P...), const A &...a) : kernel(k), arguments{a...} {
    static_assert(sizeof...(A) == sizeof...(P), "a launch has as many arguments as its kernel");
    run = run_threads;
    destroy = [](lt_EmulatedLaunch *self) { delete (lt_EmulatedKernel *)self; };
  }
  static void run_threads(lt_EmulatedLaunch *launch) {
    lt_EmulatedKernel *self = (lt_EmulatedKernel *)launch;
    lt_EmulatedContext *here = lt_emulated_here();
    do self->arguments.call(self->kernel);
    while (lt_emulated_next(here));
  }
};

#endif
