/* bindings.h: what the files of this folder share.
 *
 * The idea: Lua holds boxes (userdata) that each own one reference to a tensor. Every C function
 * of the module is a closure whose first two upvalues are the state below and the metatable of
 * boxes, so that neither is ever looked up.
 *
 * The invariant: a box is made before the tensor that goes into it ("userdata first, resource
 * second"), so that a Lua error (they jump) never loses a reference. Lua errors are raised only
 * here; C code of the core never sees one.
 *
 * Whatever allocates memory in Lua may run the collector, and that the finalizers of the user,
 * which may free a tensor, clear its grad, or change a table that is being read. So no function of
 * this folder reads a tensor of the user's, or what hangs on it, across such a call: it reads from
 * an alias of its own (lt_lua_pin), copies geometry first, and keeps the values that it takes from
 * a table where the user cannot reach them. Core functions protect their operands themselves. */
#ifndef LT_BINDINGS_H
#define LT_BINDINGS_H

#include "core.h"
#include "lutra_lua.h"
#include "path.h"

#include <lauxlib.h>
#include <lua.h>

/* How tensors print: PyTorch's options. */
typedef struct lt_PrintOptions {
  int precision;    /* digits after the point */
  double threshold; /* more elements than this are summarised */
  int edgeitems;    /* of a summary, at each end of each dim */
  int linewidth;
  int sci_mode; /* 1 always, 0 never, -1 where the numbers ask for it */
  int profile;  /* the last one set by name */
} lt_PrintOptions;

/* Settings that a coroutine can have of its own (state.c). */
typedef enum lt_Mode { LT_MODE_GRAD, LT_MODE_INFERENCE, LT_MODE_DEVICE, LT_MODE_COUNT } lt_Mode;
typedef struct lt_Modes {
  bool own[LT_MODE_COUNT]; /* which of them are set here */
  bool grad_off, inference_on;
  lt_Device device;
  bool seen;        /* in a sweep: its coroutine is alive */
  lua_State *owner; /* NULL: the program. It may have been collected since the last sweep */
  struct lt_Modes *next;
} lt_Modes;

/* One per Lua state. */
typedef struct lt_Lua {
  lua_State *L;     /* the coroutine that called the core last; anchored. NULL: none */
  lua_State *main;  /* outlives all others */
  lua_State *who;   /* the one for which the caller stands in, or the caller: whose modes it has */
  lt_Modes program; /* modes of the main coroutine, and of all that have none of their own */
  lt_Dtype dtype;   /* the default one, while another Lua state runs on this OS thread */
  lt_FallbackMode fallback;        /* likewise */
  lt_Modes *modes;                 /* of coroutines that have their own, a list; the newest first */
  lt_Modes *in_use[LT_MODE_COUNT]; /* where the modes that the core has now came from */
  bool closed;                     /* the Lua state is being closed */
  int modes_ref;                   /* weak keys: coroutine -> the address of its lt_Modes */
  int running_ref;                 /* anchors L */
  const void *generator_meta, *stream_meta, *event_meta;
  int stream_meta_ref, event_meta_ref;
  int streams_ref; /* weak table: lightuserdata lt_Stream* -> its userdata */
  int current_ref; /* device -> the userdata of the stream that was made current there */
  int explain_ref; /* function that names the parameters that an error is about, or LUA_NOREF */
  int cache_ref;   /* weak table: lightuserdata lt_Tensor* -> its box */
  int shape_ref;   /* metatable of shapes */
  int runner_ref;  /* function that runs callbacks */
  int giver_ref;   /* function that gives a node's entry to its results (hooks.c) */
  lua_State *desk; /* a coroutine that runs nothing: room on a stack for hooks.c, at any time */
  int desk_ref;
  int entries_ref; /* weak values: number -> the entry of a function that C calls (hooks.c) */
  int held_ref;    /* number -> entry, where a graph may call it, else false */
  int owned_ref;   /* weak keys: box -> {number -> entry} */
  lua_Integer last_entry; /* number given so far */
  int summary_ref;        /* function that gives a tensor's text on one line, or LUA_NOREF */
  void *job;              /* the callback that is about to be run, or NULL */
  void *given;            /* the entry that its results are about to get, or NULL */
  int pending_ref;        /* error object of a Lua callback that failed under C, or LUA_NOREF */
  int ipairs_ref;         /* ipairs' iterator, which may read one past the end */
  int64_t boxes;          /* alive */
  int64_t mark;           /* weight at the last step of the collector */
  int64_t base;           /* weight after the last complete collection */
  int64_t budget;         /* how much weight may be added before the next complete one */
  bool collecting;        /* a step of the collector that we asked for is running */
  int64_t ended;          /* boxes whose end came since the last cycle of the collector */
  int64_t trim_least;     /* so many in a cycle, and free memory goes back to the system */
  bool trim_again;        /* in the next cycle, too, which frees what the boxes took themselves */
  const void *watcher;    /* the object whose finalizer marks the end of a cycle */
  lt_PrintOptions print;
  char root[512]; /* "@/path/lib/lutra": where the Lua half lies, "" until it says */
} lt_Lua;

typedef struct lt_Box {
  const lt_Lua *state; /* tells a box from other userdata, with its size */
  lt_Tensor *tensor;   /* one reference; NULL in a box that was never filled, or was collected */
  bool parameter;      /* an nn.Parameter */
  bool finalized;
  bool owner; /* hooks of its tensor belong to it (hooks.c) */
} lt_Box;

enum { LT_UP_STATE = 1, LT_UP_META = 2, LT_UP_OWN = 3 }; /* upvalues of every function */

static inline lt_Lua *lt_lua_state(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(LT_UP_STATE));
}

/* ---- errors (errors.c) ----------------------------------------------------------------------- */

/* Raises a message at the nearest line of Lua code outside the library. Never returns. */
int lt_lua_error(lua_State *L, const char *format, ...) __attribute__((noreturn));
/* Raises the core's reason, or the error object that a callback left. `name` (may be NULL) is
 * put before a reason that names no function. */
int lt_lua_fail(lua_State *L, const char *name) __attribute__((noreturn));
/* A look every 4096 steps of a long loop; raises "interrupted" after Ctrl-C. */
static inline void lt_lua_go_on(lua_State *L, int64_t i) {
  if (lt_stopped_at(i)) lt_lua_fail(L, NULL);
}
/* Writes the line that runs now, outside the library ("train.lua:12"), for messages about memory:
 * an lt_WhereFn. */
void lt_lua_where(void *state, char *text, size_t size);
/* The name of what that line called ("item", "print", "index"), "" when it has none. Was that the C
 * function that runs now? Raises nothing. */
bool lt_lua_called(const lt_Lua *S, char *text, size_t size);
/* Was the function that runs now called by the library's files in this folder ("/nn/")? */
bool lt_lua_called_from(const lt_Lua *S, const char *folder);
/* In the registry: the table of methods. */
extern const char lt_lua_methods_key;
/* Text of a value for a message: "the string \"a\"", "3", "a tensor of shape {2}". Pushed. */
const char *lt_lua_describe(lua_State *L, int i);
/* Strings as C reads them: up to a NUL. Pushes the string at i, in which such bytes are written \0,
 * for a message. */
const char *lt_lua_quote(lua_State *L, int i);
/* Is the value at i a string without a NUL in it? */
bool lt_lua_is_text(lua_State *L, int i);
/* That string; raises "function: expected ... for argument 'argument', got ..." where it is
 * none. */
const char *lt_lua_text(lua_State *L, int i, const char *function, const char *argument);
/* The word nearest to `word` by spelling, NULL when none is near; call with each candidate. */
typedef struct lt_Nearest {
  const char *word;
  char best[40];
  int distance;
} lt_Nearest;
void lt_lua_nearest(lt_Nearest *n, const char *candidate);

/* ---- boxes (box.c) --------------------------------------------------------------------------- */

/* Pushes an empty box. */
lt_Box *lt_lua_box(lua_State *L);
/* Pushes the box that find(of) was last pushed in by this function, if it is alive, else a new one;
 * nil when find returns NULL. It is called again after memory was allocated: only `of` must stay
 * alive. */
void lt_lua_push_same(lua_State *L, lt_Tensor *(*find)(lt_Tensor *), lt_Tensor *of);
/* Remembers the box at i as the one of its tensor. */
void lt_lua_remember(lua_State *L, int i);
/* The box at i, or NULL when that is no tensor. */
static inline lt_Box *lt_lua_box_at(lua_State *L, const lt_Lua *S, int i) {
  if (lua_rawlen(L, i) != sizeof(lt_Box)) return NULL;
  lt_Box *box = lua_touserdata(L, i);
  return box && box->state == S ? box : NULL;
}
static inline lt_Box *lt_lua_to_box(lua_State *L, int i) {
  return lt_lua_box_at(L, lt_lua_state(L), i);
}
/* Is the tensor of a box freed (x:free()), or was the box collected? Such a tensor is refused
 * everywhere but in tostring and comparison. */
static inline bool lt_lua_is_gone(const lt_Box *box) { return !box->tensor || box->tensor->freed; }
/* The tensor at i, or NULL when that is none, or is gone. */
static inline lt_Tensor *lt_lua_to_tensor(lua_State *L, int i) {
  lt_Box *box = lt_lua_to_box(L, i);
  return box && !lt_lua_is_gone(box) ? box->tensor : NULL;
}
/* The tensor at i, else an error in the name of `function`. */
lt_Tensor *lt_lua_check(lua_State *L, int i, const char *function, const char *argument);
/* Raises an error in the name of `function` when the value at i is a tensor that is gone. */
void lt_lua_refuse_gone(lua_State *L, int i, const char *function, const char *argument);
/* Pushes a box of the caller's own that holds an alias of the tensor at i (else an error): what is
 * read from the alias stays, whatever finalizers do to the tensor. */
lt_Tensor *lt_lua_pin(lua_State *L, int i, const char *function, const char *argument);
/* Pushes a table of sizes that prints and compares as a shape. */
void lt_lua_push_shape(lua_State *L, int n, const int64_t *sizes);
void lt_lua_push_scalar(lua_State *L, lt_Scalar s);
/* Pushes a complex number (complex.c). */
void lt_lua_push_complex(lua_State *L, lt_Scalar s);
/* Is the value at i a complex number? Then *out is it. */
bool lt_lua_is_complex(lua_State *L, int i, lt_Scalar *out);
/* Is the value at i a table without a metatable? */
bool lt_lua_is_plain(lua_State *L, int i);
void lt_lua_open_box(lua_State *L, int methods, int functions);

/* ---- memory (memory.c) ----------------------------------------------------------------------- */

/* What the tensors of this state weigh: live bytes, and the headers of the boxes. */
static inline int64_t lt_lua_weight(const lt_Lua *S) { return lt_memory_live() + S->boxes * 512; }
enum { LT_LUA_BATCH = 8 << 20 };
void lt_lua_collect(lua_State *L, lt_Lua *S, int64_t weight);
/* Charges the collector for what was allocated since; call it where every tensor at hand is in a
 * box. */
static inline void lt_lua_charge(lua_State *L, lt_Lua *S) {
  int64_t weight = lt_lua_weight(S);
  if (weight - S->mark > LT_LUA_BATCH) lt_lua_collect(L, S, weight);
}
/* An lt_PressureFn: collects on the coroutine that runs. */
bool lt_lua_under_pressure(void *state, size_t wanted);
void lt_lua_open_memory(lua_State *L, lt_Lua *S);

/* ---- who runs (state.c) ---------------------------------------------------------------------- */

/* Makes L the coroutine that calls the core: callbacks run there, with its modes. Every function of
 * the module has been through this when it begins (lt_lua_setfuncs); one that may have run Lua code
 * since calls it again before it calls the core. */
void lt_lua_switch(lua_State *L, lt_Lua *S);
static inline void lt_lua_enter(lua_State *L, lt_Lua *S) {
  if (lt_thread()->host_coroutine != L) lt_lua_switch(L, S);
}
/* Does this coroutine run, or wait for one that it has resumed? */
bool lt_lua_is_active(lua_State *L);
/* Can callbacks use S->L: did this Lua state call the core last, from a coroutine that is
 * active? */
bool lt_lua_is_running(const lt_Lua *S);
void lt_lua_open_state(lua_State *L, int functions, int methods);
/* Makes the parts of S that concern this; S is new. */
void lt_lua_begin_state(lua_State *L, lt_Lua *S);
/* The Lua state is being closed: the core forgets it. */
void lt_lua_end_state(lt_Lua *S);

/* ---- arguments (args.c) ---------------------------------------------------------------------- */

typedef struct lt_LuaArgs {
  const char *name; /* as the user wrote it */
  const lt_Signature *signature;
  lt_Arg arg[LT_MAX_ARGS];
  int slot[LT_MAX_ARGS]; /* stack index of the value, 0: not given */
  int span[LT_MAX_ARGS]; /* how many values on the stack make the list */
  int given;             /* arguments up to the last given one */
  int ints_used;
  int64_t ints[4 * LT_MAX_DIMS];
} lt_LuaArgs;

/* Reads the arguments of the running function by a signature, in the three spellings. `method`:
 * the first argument is self. Missing ones are LT_NIL. Values stay on the stack, above the
 * arguments. */
void lt_lua_arguments(lua_State *L, lt_LuaArgs *a, const char *name, const lt_Signature *signature,
                      bool method);
/* Pushes what a parameter takes, for messages: "a tensor or a number". */
const char *lt_lua_push_wanted(lua_State *L, const lt_Param *p);
/* Numbers at i (a table's array part) as int64; `wanted` for the message. Sets *n. */
const int64_t *lt_lua_ints(lua_State *L, lt_LuaArgs *a, int p, int i, int *n);
/* The tensors of the list at i, each of which stays alive while what is pushed here stays on the
 * stack. Sets *n. With `gaps`, false and nil stand for none (NULL). */
lt_Tensor **lt_lua_tensors(lua_State *L, const char *function, const char *argument, int i,
                           bool gaps, int *n);
/* The length of the list at i; an error when it is longer than any list of arguments. */
int lt_lua_length(lua_State *L, const char *function, const char *argument, int i);
/* The number, or bool, or one-element tensor at i as a scalar; false if it is none. */
bool lt_lua_scalar(lua_State *L, int i, lt_Scalar *out);
/* An integer, or a float that is whole. */
bool lt_lua_whole(lua_State *L, int i, int64_t *out);

/* The signature of a function that is no op, in ops.def's grammar, parsed at its first use. `text`
 * is static. */
const lt_Signature *lt_lua_signature(lua_State *L, const char *text);

/* A function that is no op, with its signature, of which messages, help and completion are made.
 * `run` finds the arguments at the indices 1, 2, ... in the signature's order, checked, and the
 * default, or nil, for one that is not given; nothing else is on the stack. Strings and devices it
 * checks itself, and a self that is no tensor ("any self"). One that is `fast`
 * finds the call as it is: it reads what is called most by itself, and calls lt_lua_read for
 * every other call. */
typedef struct lt_Function {
  const char *name;
  lua_CFunction run;
  const char *signature;
  bool method; /* the first parameter is self */
  bool fast;
} lt_Function;

/* Lays the arguments of the running function, one of lt_lua_set_read, as above. */
void lt_lua_read(lua_State *L);
/* The beginning of a `fast` function that checks an argument given alone, by position, itself. */
void lt_lua_read_named(lua_State *L);
/* Sets functions, up to one without a name, in the table at the top. The list must be static. */
void lt_lua_set_read(lua_State *L, const lt_Function *functions);

/* ---- devices (accelerator.c) ----------------------------------------------------------------- */

/* The device that the value at i means: a name, a tensor's, or a number of a `type` (-1: of the
 * accelerator that is here). False with the reason, which names no function. */
bool lt_lua_device(lua_State *L, int i, int type, lt_Device *out);
bool lt_lua_is_accelerator(int type);
/* The type of the first accelerator that is here, or -1. */
int lt_lua_accelerator(void);

/* ---- calls of ops (call.c) ------------------------------------------------------------------- */

/* Does this op's function in F take `inplace` behind the op's parameters, as in PyTorch? */
static inline bool lt_lua_takes_inplace(const lt_OpInfo *info) {
  return info->variants & LT_VARIANT_NN && info->variants & LT_VARIANT_IN_PLACE;
}
/* Runs an op and pushes what it gives; a result that is one of the arguments is that very box. */
int lt_lua_call(lua_State *L, lt_OpId op, bool in_place, const lt_LuaArgs *a);
/* The first result of an op, pushed in a box of its own; raises on failure. */
lt_Tensor *lt_lua_op1(lua_State *L, const char *name, lt_OpId op, const lt_Arg *args, int n);
/* Puts functions and methods of all ops into two tables, and the internal ones into a third. */
void lt_lua_open_ops(lua_State *L, int functions, int methods, int internal);
/* Operators into the metatable. */
void lt_lua_open_operators(lua_State *L, int meta);

/* ---- the rest -------------------------------------------------------------------------------- */

/* x[key]; key is at index 2 (index.c). Pushes one value. */
int lt_lua_index_get(lua_State *L, lt_Tensor *t);
/* x[key] = value (index 3). */
int lt_lua_index_set(lua_State *L, lt_Tensor *t);
/* Does this string look like an index ("2:5, :")? */
bool lt_lua_is_index_text(const char *s);

/* Pushes a tensor made of the Lua value at i: nested tables, a number, a bool. dtype
 * LT_DTYPE_NONE: inferred. */
lt_Tensor *lt_lua_from_value(lua_State *L, const char *name, int i, lt_Dtype dtype,
                             lt_Device device);
int lt_lua_tostring(lua_State *L);

/* The generator's place at i, which holds NULL when it was finalized; NULL when that is none. */
lt_Generator **lt_lua_to_generator(lua_State *L, int i);

/* luaL_setfuncs with the two common upvalues, into the table at the top: each function is entered
 * (lt_lua_enter) before it runs. The list must be static. */
void lt_lua_setfuncs(lua_State *L, const luaL_Reg *functions);
/* The same, for functions that enter by themselves since each nanosecond of theirs counts. */
void lt_lua_set_fast(lua_State *L, const luaL_Reg *functions);
/* Pushes the function of one such entry. */
void lt_lua_function(lua_State *L, const luaL_Reg *function);

/* Each adds its functions (and methods) to the tables at these indices. */
void lt_lua_open_errors(lua_State *L, int functions, int methods);
void lt_lua_open_create(lua_State *L, int functions, int methods);
void lt_lua_open_complex(lua_State *L, int functions, int methods);
void lt_lua_open_print(lua_State *L, int functions, int methods);
void lt_lua_open_methods(lua_State *L, int functions, int methods);
/* A list of tensors at i, or one tensor, or nil (then *n is 0). With `gaps`, false stands for
 * none. */
lt_Tensor **lt_lua_tensor_list(lua_State *L, const char *name, const char *argument, int i,
                               bool gaps, int *n);
void lt_lua_open_hooks(lua_State *L, int functions, int methods);
void lt_lua_open_autograd(lua_State *L, int functions, int methods);
void lt_lua_open_graph(lua_State *L, int functions, int methods);
void lt_lua_open_random(lua_State *L, int functions, int methods);
void lt_lua_open_devices(lua_State *L, int functions, int methods);
void lt_lua_open_accelerator(lua_State *L, int functions, int methods);
/* Tells help and completion the signature of the function `name` of the table at i: it stands in
 * the table _signatures, behind ":" where the first parameter is self. */
void lt_lua_set_signature(lua_State *L, int i, const char *name, const char *signature,
                          bool method);
/* Pushes the parameters as a list of {name, type, optional, default, choices,
 * least}. */
void lt_lua_push_params(lua_State *L, const lt_Signature *g);
/* Pushes the results as a list of {name, type}. */
void lt_lua_push_results(lua_State *L, const lt_Signature *g);
/* Adds the reader of signatures for functions written in Lua (signature.c). */
void lt_lua_open_signature(lua_State *L, int functions, int methods);
void lt_lua_open_describe(lua_State *L, int functions, int methods);
void lt_lua_open_files(lua_State *L, int functions, int methods);
/* Did the program ask for the copy that is made now, by a line that called this? */
struct lt_TraceEvent;
bool lt_lua_is_explicit(const lt_Lua *S, const struct lt_TraceEvent *copy, const char *call);
/* Adds `guard` to the table on top of the stack. */
void lt_lua_add_guard(lua_State *L);
void lt_lua_open_trace(lua_State *L, int functions, int methods);
void lt_lua_open_kernel(lua_State *L, int functions, int methods);
void lt_lua_open_program(lua_State *L, int functions, int methods);

#endif
