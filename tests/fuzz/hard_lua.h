/* hard_lua.h: makes Lua's own test macros switches. tools/build/asserting-lua includes it before
 * each source file of Lua.
 *
 * Lua has a place in its code for each moment at which the collector may run and for each at which
 * the stack may move (condchangemem and condmovestack of llimits.h; Lua's authors test with both on
 * at every such moment). Here lutra_lua_hard says at which of them something happens. */
#ifndef LT_HARD_LUA_H
#define LT_HARD_LUA_H

#define LUA_CORE
#include "lprefix.h"
#include "llimits.h"

/* The seed of the hash of strings: the order of a table's fields is the same in every run. */
#define luai_makeseed(...) 1u

/* What happens at those moments; zero: nothing. */
struct lutra_lua_hard {
  int move;     /* 1: the stack moves whenever it may */
  long collect; /* the so-manieth moment from now is a complete collection */
};
extern struct lutra_lua_hard lutra_lua_hard;

#undef condmovestack
#define condmovestack(L, pre, pos)                                                                 \
  {                                                                                                \
    if (lutra_lua_hard.move) {                                                                     \
      int sz_ = stacksize(L);                                                                      \
      pre;                                                                                         \
      luaD_reallocstack((L), sz_, 0);                                                              \
      pos;                                                                                         \
    }                                                                                              \
  }

#undef condchangemem
#define condchangemem(L, pre, pos)                                                                 \
  {                                                                                                \
    if (lutra_lua_hard.collect && --lutra_lua_hard.collect == 0 && gcrunning(G(L))) {              \
      pre;                                                                                         \
      luaC_fullgc(L, 0);                                                                           \
      pos;                                                                                         \
    }                                                                                              \
  }

#endif
