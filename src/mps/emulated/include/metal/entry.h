/* entry.h: what the functions that the translator writes use: they call a kernel for the threads of
 * a block, with arguments from the bindings and the context. */
#ifndef LT_EMULATED_METAL_ENTRY_H
#define LT_EMULATED_METAL_ENTRY_H

#include "metal/record.h"

/* ---- function constants and threadgroup memory ----------------------------------------------- */

LT_EMULATED const emulated::ConstantValues *lt_constant_values() {
  return (const emulated::ConstantValues *)lt_emulated_here()->block->constants;
}
template <class T> LT_EMULATED T lt_constant(int index) {
  return (T)lt_constant_values()->values[index];
}
LT_EMULATED bool lt_is_defined(int index) { return index < lt_constant_values()->count; }

/* Returns the end, rounded up to 16, of `size` bytes at an offset. */
LT_EMULATED constexpr unsigned lt_after(unsigned offset, unsigned long size) {
  return (unsigned)((offset + size + 15) / 16 * 16);
}
LT_EMULATED char *lt_threadgroup_memory(unsigned offset) {
  return (char *)lt_emulated_here()->shared + offset;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* The types of a kernel's parameters. */
template <int I, class P, class... Rest> struct lt_TypeAt : lt_TypeAt<I - 1, Rest...> {};
template <class P, class... Rest> struct lt_TypeAt<0, P, Rest...> { typedef P type; };
template <class F> struct lt_Parameters;
template <class... P> struct lt_Parameters<void (*)(P...)> {
  template <int I> using at = typename lt_TypeAt<I, P...>::type;
};

template <class P> struct lt_buffer;
template <class T> struct lt_buffer<T *> {
  LT_EMULATED static T *at(const emulated::Bindings *b, int i) { return (T *)b->buffers[i]; }
};
template <class T> struct lt_buffer<T &> {
  LT_EMULATED static T &at(const emulated::Bindings *b, int i) { return *(T *)b->buffers[i]; }
};
template <class P> struct lt_threadgroup;
template <class T> struct lt_threadgroup<T *> {
  LT_EMULATED static T *at(lt_EmulatedContext *c, unsigned used) {
    return (T *)((char *)c->shared + used);
  }
};
template <class T> struct lt_threadgroup<T &> {
  LT_EMULATED static T &at(lt_EmulatedContext *c, unsigned used) {
    return *(T *)((char *)c->shared + used);
  }
};

/* Makes a scalar or a vector of three numbers. */
template <class T> struct lt_Triple {
  LT_EMULATED static T of(unsigned x, unsigned, unsigned) { return (T)x; }
};
template <class T> struct lt_Triple<metal::vec<T, 2>> {
  LT_EMULATED static metal::vec<T, 2> of(unsigned x, unsigned y, unsigned) {
    return metal::vec<T, 2>((T)x, (T)y);
  }
};
template <class T> struct lt_Triple<metal::vec<T, 3>> {
  LT_EMULATED static metal::vec<T, 3> of(unsigned x, unsigned y, unsigned z) {
    return metal::vec<T, 3>((T)x, (T)y, (T)z);
  }
};

#define LT_BUILTIN(name)                                                                           \
  template <class T>                                                                               \
  LT_EMULATED T lt_##name([[maybe_unused]] const emulated::Bindings *b,                            \
                          [[maybe_unused]] lt_EmulatedContext *c)
#define LT_THREAD(d) lt_emulated_get(&c->thread_index.d)
LT_BUILTIN(thread_position_in_grid) {
  return lt_Triple<T>::of(c->block_index.x * b->group[0] + LT_THREAD(x),
                          c->block_index.y * b->group[1] + LT_THREAD(y),
                          c->block_index.z * b->group[2] + LT_THREAD(z));
}
LT_BUILTIN(thread_position_in_threadgroup) {
  return lt_Triple<T>::of(LT_THREAD(x), LT_THREAD(y), LT_THREAD(z));
}
LT_BUILTIN(threadgroup_position_in_grid) {
  return lt_Triple<T>::of(c->block_index.x, c->block_index.y, c->block_index.z);
}
LT_BUILTIN(threads_per_grid) { return lt_Triple<T>::of(b->grid[0], b->grid[1], b->grid[2]); }
LT_BUILTIN(threads_per_threadgroup) {
  return lt_Triple<T>::of(c->block_size.x, c->block_size.y, c->block_size.z);
}
LT_BUILTIN(dispatch_threads_per_threadgroup) {
  return lt_Triple<T>::of(b->group[0], b->group[1], b->group[2]);
}
LT_BUILTIN(threadgroups_per_grid) {
  return lt_Triple<T>::of(c->grid_size.x, c->grid_size.y, c->grid_size.z);
}
#define LT_ROW     (LT_THREAD(y) + c->block_size.y * LT_THREAD(z))
#define LT_INDEX   (LT_THREAD(x) + c->block_size.x * LT_ROW)
#define LT_THREADS (c->block_size.x * c->block_size.y * c->block_size.z)
LT_BUILTIN(thread_index_in_threadgroup) { return (T)LT_INDEX; }
LT_BUILTIN(thread_index_in_simdgroup) { return (T)(LT_INDEX % 32); }
LT_BUILTIN(thread_index_in_quadgroup) { return (T)(LT_INDEX % 4); }
LT_BUILTIN(simdgroup_index_in_threadgroup) { return (T)(LT_INDEX / 32); }
LT_BUILTIN(simdgroups_per_threadgroup) { return (T)((LT_THREADS + 31) / 32); }
LT_BUILTIN(quadgroup_index_in_threadgroup) { return (T)(LT_INDEX / 4); }
LT_BUILTIN(quadgroups_per_threadgroup) { return (T)((LT_THREADS + 3) / 4); }
LT_BUILTIN(threads_per_simdgroup) { return (T)32; }
LT_BUILTIN(thread_execution_width) { return (T)32; }
#undef LT_INDEX
#undef LT_ROW
#undef LT_THREADS
#undef LT_THREAD
#undef LT_BUILTIN

/* ---- the file's own record ------------------------------------------------------------------- */

namespace emulated {
void register_file(File *file);
}
struct lt_Register {
  explicit lt_Register(emulated::File *file) { emulated::register_file(file); }
};

#endif
