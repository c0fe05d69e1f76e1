/* bindings.h: declarations shared by the files of this folder, the only code that includes lua.h.
 *
 * A tensor in Lua is a box: a full userdata that owns one reference to an lt_Tensor. Every C
 * function of the module is a closure whose first two upvalues are the lt_Lua state and the
 * metatable of boxes, so neither is looked up in a table. `S` always is that state.
 *
 * Ownership: a box is created before the tensor that goes into it ("userdata first, resource
 * second"). A Lua error is a longjmp, so a reference held only by a C variable would be lost. Lua
 * errors are raised only in this folder and never cross a frame of the core.
 *
 * Garbage collection: any allocation in Lua may run the collector, and the collector runs
 * finalizers of the user, which may free a tensor, clear its grad, or change a table that is being
 * read. So no function of this folder reads a tensor of the user's, or anything reachable from it,
 * across an allocation: it reads from an alias of its own (lt_lua_push_alias), copies the geometry
 * first, and keeps values taken from a table where the user cannot reach them. Core functions
 * protect their operands themselves.
 *
 * Conventions: functions that push say so; all others leave the stack as it was. Functions that
 * allocate or run Lua code may raise an error. Parameters named `function` and `argument` are used
 * in error messages only. */
#ifndef LT_BINDINGS_H
#define LT_BINDINGS_H

#include "core.h"
#include "lutra_lua.h"
#include "pace.h"
#include "path.h"

#include <lauxlib.h>
#include <lua.h>

/* Options of tensor printing, named as in PyTorch. */
typedef struct lt_PrintOptions {
  int precision;    /* digits after the point */
  double threshold; /* tensors with more elements are summarized */
  int edgeitems;    /* elements shown at each end of each dim in a summary */
  int linewidth;
  int sci_mode; /* scientific notation: 1 always, 0 never, -1 automatic */
  int profile;  /* the profile set last (print.c) */
} lt_PrintOptions;

/* Modes that a coroutine can have of its own (state.c). */
typedef enum lt_Mode {
  LT_MODE_GRAD,
  LT_MODE_INFERENCE,
  LT_MODE_DEVICE,
  LT_MODE_AUTOCAST,
  LT_MODE_COUNT
} lt_Mode;
typedef struct lt_Modes {
  bool own[LT_MODE_COUNT]; /* modes that this owner sets */
  bool grad_off, inference_on;
  lt_Device device;
  lt_Autocast autocast;
  bool seen;        /* scratch of a sweep: the coroutine is alive */
  lua_State *owner; /* NULL: the program. May have been collected since the last sweep */
  struct lt_Modes *next;
} lt_Modes;

/* The fields of tensors by the address of their name, since Lua has one copy of each short string:
 * a field is at the first free place from its hash on. */
enum { LT_FIELD_PLACES = 64 };
typedef struct lt_FieldPlace {
  const void *name; /* NULL: free */
  int field;
} lt_FieldPlace;

/* The module's data of one Lua state. A `_ref` is a reference in Lua's registry. */
typedef struct lt_Lua {
  lua_State *L;          /* coroutine that called the core last (see running_ref); NULL: none */
  lua_State *main;       /* the main coroutine, which outlives all others */
  lua_State *mode_owner; /* the coroutine whose modes L uses: L, or the one that L stands in for */
  lt_Modes program;      /* modes of the main coroutine, and of all coroutines without their own */
  lt_Dtype dtype;        /* saved default dtype, while another Lua state runs on this OS thread */
  lt_FallbackMode fallback;        /* saved fallback mode, likewise */
  lt_Modes *modes;                 /* those of coroutines that have their own, newest first */
  lt_Modes *in_use[LT_MODE_COUNT]; /* owners of the modes that the core uses now */
  bool closed;                     /* the Lua state is being closed */
  int modes_ref;                   /* weak keys: coroutine -> address of its lt_Modes */
  int running_ref;                 /* anchors L */
  const void *generator_meta, *stream_meta, *event_meta;
  int stream_meta_ref, event_meta_ref;
  int streams_ref; /* weak table: lightuserdata lt_Stream* -> its userdata */
  int current_ref; /* device -> userdata of its current stream */
  int explain_ref; /* function that names the tensors of an error, or LUA_NOREF */
  int path_ref;    /* function that names the module in which an error is raised, or LUA_NOREF */
  int cache_ref;   /* weak table: lightuserdata lt_Tensor* -> its box */
  int shape_ref;   /* metatable of shapes */
  int pack_ref;    /* the Lua function that returns {...} */
  int results_ref; /* userdata that owns the results of a call (call.c) */
  int dtype_ref[LT_DTYPE_COUNT]; /* their names */
  lt_FieldPlace fields[LT_FIELD_PLACES];
  int runner_ref;     /* the function run_job, which runs callbacks (hooks.c) */
  int attach_ref;     /* the function attach_entry (hooks.c) */
  lua_State *scratch; /* a coroutine that runs no code: its stack is always free to use */
  int scratch_ref;
  int entries_ref;          /* weak values: number -> entry of a function that C calls (hooks.c) */
  int held_ref;             /* number -> entry while a graph may call it, else false */
  int owned_ref;            /* weak keys: box -> {number -> entry} */
  lua_Integer last_entry;   /* last number assigned to an entry */
  int summary_ref;          /* function that returns a one-line summary of a tensor, or LUA_NOREF */
  void *job;                /* argument of run_job while it is called, or NULL */
  void *attaching;          /* argument of attach_entry while it is called, or NULL */
  lua_Integer pass, passes; /* number of the running backward (0: none), and of the last one */
  int queued_ref;           /* pass -> list of functions that are called after it */
  int pending_ref;          /* error object of a Lua callback that failed, or LUA_NOREF */
  int ipairs_ref;           /* the iterator of ipairs, which may read one past the end */
  int64_t boxes;            /* boxes not yet finalized */
  uint32_t created;         /* boxes created, modulo 2^32 */
  lt_Gap gap;               /* between two steps of the collector */
  uint32_t stepped;         /* `created` at the last step */
  uint32_t interval;        /* boxes created between the last two steps */
  uint32_t completed;       /* `created` at the last complete collection */
  int64_t mark;             /* weight at the last step, or less */
  lt_Batch batch;           /* growth of the weight that triggers the next step */
  int64_t step_end;         /* time of the last step, nanoseconds */
  int64_t cycles;           /* cycles of the collector that have ended */
  int64_t base;             /* weight after the last complete collection */
  int64_t budget;           /* growth of the weight that triggers the next complete collection */
  bool collecting;          /* a collection started by this module is running */
  int64_t finalized;        /* boxes finalized since the last cycle of the collector */
  int64_t trim_least;       /* boxes ended in a cycle from which free memory is returned */
  bool trim_again;          /* also trim in the next cycle, which frees the boxes' own memory */
  const void *watcher;      /* object whose finalizer marks the end of a cycle */
  lt_PrintOptions print;
  char root[512]; /* "@/path/lib/lutra", the library's Lua files; "" until _library was called */
} lt_Lua;

typedef struct lt_Box {
  const lt_Lua *state; /* with the size, distinguishes a box from other userdata */
  lt_Tensor *tensor;   /* one reference; NULL if the box was never filled or was finalized */
  uint32_t number;     /* its place among the boxes created, modulo 2^32 */
  bool parameter;      /* true for an nn.Parameter */
  bool finalized;
  bool owner; /* the hooks of the tensor belong to this box (hooks.c) */
} lt_Box;

/* Upvalues of every function of the module; a function's own upvalues start at LT_UP_OWN. */
enum { LT_UP_STATE = 1, LT_UP_META = 2, LT_UP_OWN = 3 };

/* Returns the module's state. Only valid in a function of the module, which has it as an
 * upvalue. */
static inline lt_Lua *lt_lua_state(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(LT_UP_STATE));
}

/* ---- errors (errors.c) ----------------------------------------------------------------------- */

/* Raises an error with a formatted message (at most 2400 bytes), prefixed with the position of the
 * nearest line of Lua code outside the library. Never returns. */
int lt_lua_error(lua_State *L, const char *format, ...) __attribute__((noreturn));
/* Raises the failure that a function of the core reported: the error object of a Lua callback that
 * failed, else "interrupted" after Ctrl-C, else lt_error(). `name` (may be NULL) is put before a
 * reason that names no function. Never returns. */
int lt_lua_fail(lua_State *L, const char *name) __attribute__((noreturn));
/* Checks for Ctrl-C every 4096 steps of a long loop; raises "interrupted". i: number of the
 * step. */
static inline void lt_lua_check_interrupt(lua_State *L, int64_t i) {
  if (lt_stopped_at(i)) lt_lua_fail(L, NULL);
}
/* Writes the position of the running line outside the library ("train.lua:12") for messages about
 * memory; leaves `text` as it is when no Lua code runs. An lt_WhereFn. Raises nothing. */
void lt_lua_where(void *state, char *text, size_t size);
/* Writes the name of the function that the running line outside the library called ("item",
 * "print", "index"), "" if it has none. Returns whether that is the C function that runs now.
 * Raises nothing. */
bool lt_lua_called(const lt_Lua *S, char *text, size_t size);
/* Returns whether the function that runs now was called directly by a file in this folder of the
 * library ("/nn/"). Raises nothing. */
bool lt_lua_called_from(const lt_Lua *S, const char *folder);
/* Returns whether a Lua function of the library outside this folder is between the running line
 * outside the library and the function that runs now. Raises nothing. */
bool lt_lua_called_through(const lt_Lua *S, const char *folder);
/* Registry key (its address) of the table of tensor methods. */
extern const char lt_lua_methods_key;
/* Pushes and returns a description of the value at i for a message: "the string \"a\"", "3", "a
 * tensor of shape {2}". */
const char *lt_lua_describe(lua_State *L, int i);
/* Pushes and returns the string at i with each NUL byte written as \0, for a message. */
const char *lt_lua_quote(lua_State *L, int i);
/* Returns whether the value at i is a string without NUL bytes, which C can read. */
bool lt_lua_is_text(lua_State *L, int i);
/* Returns the string at i, valid while it is on the stack; raises "function: expected a string for
 * argument 'argument', got ..." if it is no string or contains a NUL byte. */
const char *lt_lua_text(lua_State *L, int i, const char *function, const char *argument);
/* A search for the candidate nearest to `word` by spelling: initialize with {.word = word}, then
 * call lt_lua_nearest with each candidate. `best` is the result, "" when none is near. */
typedef struct lt_Nearest {
  const char *word;
  char best[40];
  int distance;
} lt_Nearest;
void lt_lua_nearest(lt_Nearest *n, const char *candidate);

/* ---- boxes (box.c) --------------------------------------------------------------------------- */

/* Pushes a new box without a tensor and returns it. The caller stores the tensor, one reference,
 * with no Lua call in between. */
lt_Box *lt_lua_new_box(lua_State *L, lt_Lua *S);
static inline lt_Box *lt_lua_box(lua_State *L) { return lt_lua_new_box(L, lt_lua_state(L)); }
/* Pushes the remembered box of the tensor find(of) if that box is alive, else a new box, which is
 * then remembered; nil when find returns NULL. `find` is called again after memory was allocated,
 * so only `of` must stay alive. */
void lt_lua_push_same(lua_State *L, lt_Tensor *(*find)(lt_Tensor *), lt_Tensor *of);
/* Records the box at i as the one that lt_lua_push_same returns for its tensor. Does not keep it
 * alive. */
void lt_lua_remember(lua_State *L, int i);
/* Returns the box at i, or NULL when the value is no tensor. */
static inline lt_Box *lt_lua_box_at(lua_State *L, const lt_Lua *S, int i) {
  if (lua_rawlen(L, i) != sizeof(lt_Box)) return NULL;
  lt_Box *box = lua_touserdata(L, i);
  return box && box->state == S ? box : NULL;
}
static inline lt_Box *lt_lua_to_box(lua_State *L, int i) {
  return lt_lua_box_at(L, lt_lua_state(L), i);
}
/* Returns whether the tensor was freed (x:free()) or the box was finalized. Every function refuses
 * such a tensor, except tostring and comparison. */
static inline bool lt_lua_is_freed(const lt_Box *box) { return !box->tensor || box->tensor->freed; }
/* Returns the tensor at i, borrowed from its box; NULL when the value is no tensor or was freed. */
static inline lt_Tensor *lt_lua_to_tensor(lua_State *L, int i) {
  lt_Box *box = lt_lua_to_box(L, i);
  return box && !lt_lua_is_freed(box) ? box->tensor : NULL;
}
/* Returns the tensor at i, borrowed from its box; raises an error otherwise. */
lt_Tensor *lt_lua_check(lua_State *L, int i, const char *function, const char *argument);
/* Raises an error when the value at i is a tensor that was freed. */
void lt_lua_refuse_freed(lua_State *L, int i, const char *function, const char *argument);
/* Pushes a new box with an alias of the tensor at i and returns the alias; raises an error if there
 * is no tensor. Data and geometry of the alias stay, whatever finalizers do to the tensor. */
lt_Tensor *lt_lua_push_alias(lua_State *L, int i, const char *function, const char *argument);
/* Pushes a table of n sizes that prints and compares as a shape. */
void lt_lua_push_shape(lua_State *L, int n, const int64_t *sizes);
/* Pushes a number, boolean or complex number. */
void lt_lua_push_scalar(lua_State *L, lt_Scalar s);
/* Pushes the complex number s.f + s.im i as a userdata (complex.c). */
void lt_lua_push_complex(lua_State *L, lt_Scalar s);
/* Returns whether the value at i is a complex number, and if so stores it in *out. */
bool lt_lua_is_complex(lua_State *L, int i, lt_Scalar *out);
/* Returns whether the value at i is a table without a metatable. */
bool lt_lua_is_plain(lua_State *L, int i);
/* Fills the metatable of boxes, and adds functions of box.c to the tables at these indices. */
void lt_lua_open_box(lua_State *L, int methods, int functions);

/* ---- memory (memory.c) ----------------------------------------------------------------------- */

/* Returns the weight of all tensors: bytes of live storages, and half a kilobyte of headers for
 * each box of this state. */
static inline int64_t lt_lua_weight(const lt_Lua *S) { return lt_memory_live() + S->boxes * 512; }
/* Runs a step of the collector, or a complete collection when the budget is spent, at this weight.
 * Does nothing while one is running. */
void lt_lua_collect(lua_State *L, lt_Lua *S, int64_t weight);
/* Charges the collector for tensor memory allocated since the last call, in batches. May run
 * finalizers: call it only when every tensor in use is in a box. */
static inline void lt_lua_charge(lua_State *L, lt_Lua *S) {
  int64_t weight = lt_lua_weight(S);
  if (weight - S->mark > S->batch.size)
    lt_lua_collect(L, S, weight);
  else if (weight < S->mark)
    S->mark = weight;
}
/* Runs a complete collection on the running coroutine; returns whether that freed tensor memory. An
 * lt_PressureFn, called by the core when it is out of memory. */
bool lt_lua_under_pressure(void *state, size_t requested);
/* Starts the accounting of tensor memory; call it last, when the module is open. */
void lt_lua_open_memory(lua_State *L, lt_Lua *S);

/* ---- running coroutine and modes (state.c) --------------------------------------------------- */

/* Makes L the coroutine that calls the core: callbacks run on it, and the core uses its modes.
 * Raises an error when the Lua state is being closed. lt_lua_enter is the cheap form for the usual
 * case that L was the last caller. Every function registered by lt_lua_setfuncs is entered before
 * it runs; a function that may have run Lua code since must enter again before it calls the
 * core. */
void lt_lua_switch(lua_State *L, lt_Lua *S);
static inline void lt_lua_enter(lua_State *L, lt_Lua *S) {
  if (lt_thread()->host_coroutine != L) lt_lua_switch(L, S);
}
/* Returns whether this coroutine runs, or waits for a coroutine that it has resumed. */
bool lt_lua_is_active(lua_State *L);
/* Returns whether callbacks can run on S->L: this Lua state was the last to call the core, from a
 * coroutine that is active. */
bool lt_lua_is_running(const lt_Lua *S);
/* Adds the functions that set modes to the tables at these indices. */
void lt_lua_open_state(lua_State *L, int functions, int methods);
/* Initializes the fields of S that belong to state.c; S is new and zeroed. */
void lt_lua_begin_state(lua_State *L, lt_Lua *S);
/* Detaches S from the core when the Lua state is closed: restores the modes of the embedding
 * program and frees those of coroutines. Later calls raise an error. */
void lt_lua_end_state(lt_Lua *S);

/* ---- arguments (args.c) ---------------------------------------------------------------------- */

/* The arguments of one call, as read by lt_lua_arguments. */
typedef struct lt_LuaArgs {
  lt_Lua *state;
  const char *name; /* the function's name as the user wrote it */
  const lt_Signature *signature;
  lt_Arg arg[LT_MAX_PARAMS];
  int slot[LT_MAX_PARAMS]; /* stack index of the value; 0: not given */
  int span[LT_MAX_PARAMS]; /* number of stack values that form the list */
  int out;                 /* stack index of `out`, of a call of an op; 0: not given */
  int given;               /* number of arguments up to the last one given */
  int ints_used, few_used;
  int64_t ints[4 * LT_MAX_DIMS];
  lt_Tensor *few[8]; /* of short lists */
} lt_LuaArgs;

/* Reads the arguments of the running function by its signature, in the three spellings (args.c),
 * and raises an error for a wrong call. `method`: the first argument is self. Arguments that are
 * not given are LT_NIL in `arg`. Values taken out of tables stay on the stack, above the arguments,
 * and keep alive what `a` refers to. */
void lt_lua_arguments(lua_State *L, lt_Lua *S, lt_LuaArgs *a, const char *name,
                      const lt_Signature *signature, bool method);
/* Pushes and returns a description of what a parameter accepts, for messages: "a tensor or a
 * number". */
const char *lt_lua_push_expected(lua_State *L, const lt_Param *p);
/* Returns the *n integers of parameter p, from a table or from consecutive stack values at i;
 * raises an error if they are no integers. The array belongs to `a` or to a userdata that is
 * pushed. Dims are converted to count from 0. */
const int64_t *lt_lua_ints(lua_State *L, lt_LuaArgs *a, int p, int i, int *n);
/* Returns the *n tensors of the list at i and pushes the array, which keeps each of them alive
 * while it stays on the stack. With `gaps`, false and nil stand for no tensor (NULL); otherwise
 * raises an error for an element that is no tensor. */
lt_Tensor **lt_lua_tensors(lua_State *L, const char *function, const char *argument, int i,
                           bool gaps, int *n);
/* Returns the length of the list at i; raises an error when it exceeds the limit of 2^26. */
int lt_lua_length(lua_State *L, const char *function, const char *argument, int i);
/* Stores the number, boolean, complex number or one-element tensor at i in *out; returns false if
 * it is none of these. Raises an error if the tensor's value cannot be read. */
bool lt_lua_scalar(lua_State *L, int i, lt_Scalar *out);
/* Stores the integer at i, or a float with an integral value, in *out; returns false otherwise. */
bool lt_lua_whole(lua_State *L, int i, int64_t *out);

/* Returns the signature of a function that is not an op, in the grammar of ops.def, parsed at its
 * first use. `text` must stay at its address while the Lua state is open; it is the cache key. */
const lt_Signature *lt_lua_signature(lua_State *L, const char *text);

/* A function that is not an op, with its signature, from which messages, help and completion are
 * generated. `run` finds the arguments at the indices 1, 2, ... in the order of the signature,
 * checked, with the default, or nil, for each one that is not given; nothing else is on the stack.
 * It checks strings and devices itself, and a self that is no tensor ("any self"). A `fast`
 * function finds the call as it was made: it reads the most frequent form itself and calls
 * lt_lua_read for every other one. */
typedef struct lt_Function {
  const char *name;
  lua_CFunction run;
  const char *signature;
  bool method; /* the first parameter is self */
  bool fast;
} lt_Function;

/* Replaces the arguments of the running function, which lt_lua_set_read registered, by those laid
 * out as above; raises an error for a wrong call. */
void lt_lua_read(lua_State *L);
/* Starts a `fast` function that checks a single positional argument itself: enters the core and
 * reads every other form of call with lt_lua_read. */
void lt_lua_read_named(lua_State *L);
/* Adds functions, up to the entry without a name, to the table on top of the stack. The list must
 * be static. */
void lt_lua_set_read(lua_State *L, const lt_Function *functions);

/* ---- devices (accelerator.c) ----------------------------------------------------------------- */

/* Stores in *out the device given by the value at i: a device name, a tensor (its device), or an
 * index among devices of `type` (-1: the type of the available accelerator). Returns false and sets
 * lt_error(), without a function name, if there is no such device. */
bool lt_lua_device(lua_State *L, int i, int type, lt_Device *out);
/* Returns whether this device type is neither the CPU nor meta. */
bool lt_lua_is_accelerator(int type);
/* Returns the type of the first accelerator with a device, or -1. */
int lt_lua_accelerator(void);

/* ---- calls of ops (call.c) ------------------------------------------------------------------- */

/* Returns whether the op's function in F takes `inplace` after the op's parameters, as in
 * PyTorch. */
static inline bool lt_lua_takes_inplace(const lt_OpInfo *info) {
  return info->variants & LT_VARIANT_NN && info->variants & LT_VARIANT_IN_PLACE;
}
/* Runs an op and pushes its results; returns how many. A result that is one of the arguments is
 * pushed as the same box. Raises an error on failure. */
int lt_lua_call(lua_State *L, lt_OpId op, bool in_place, const lt_LuaArgs *a);
/* Runs an op, pushes its first result in a new box and returns it, borrowed; raises an error on
 * failure. */
lt_Tensor *lt_lua_op1(lua_State *L, const char *name, lt_OpId op, const lt_Arg *args, int n);
/* Adds the functions and the methods of all ops to two tables, and every op by its own name,
 * internal ones included, to a third. */
void lt_lua_open_ops(lua_State *L, int functions, int methods, int internal);
/* Adds the arithmetic and comparison operators to the metatable at index meta. */
void lt_lua_open_operators(lua_State *L, int meta);

/* ---- indexing, creation, registration -------------------------------------------------------- */

/* Pushes t[key] and returns 1; the key is at index 2 (index.c). Raises an error on failure. t is
 * the tensor at index 1. */
int lt_lua_index_get(lua_State *L, lt_Tensor *t);
/* Assigns the value at index 3 to t[key], key at index 2; returns 0. Raises an error on failure. */
int lt_lua_index_set(lua_State *L, lt_Tensor *t);
/* Returns whether this string looks like an index ("2:5, :"), and not like a field's name. */
bool lt_lua_is_index_text(const char *s);

/* Pushes a new tensor made of the Lua value at i (nested tables, a number, a boolean) and returns
 * it, borrowed; raises an error on failure. dtype LT_DTYPE_NONE: inferred. */
lt_Tensor *lt_lua_from_value(lua_State *L, const char *name, int i, lt_Dtype dtype,
                             lt_Device device);
/* Implements tostring for tensors (print.c). */
int lt_lua_tostring(lua_State *L);

/* Returns the address of the generator pointer in the userdata at i, which is NULL if it was
 * finalized; NULL when the value is no generator. */
lt_Generator **lt_lua_to_generator(lua_State *L, int i);

/* Adds functions to the table on top of the stack with the two common upvalues; each is entered
 * (lt_lua_enter) before it runs. The list must be static. */
void lt_lua_setfuncs(lua_State *L, const luaL_Reg *functions);
/* Opens a class of userdata with these methods, as lt_lua_setfuncs adds them. `gc` is a finalizer
 * that does not enter the core, or NULL. */
void lt_lua_open_class(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction gc);
/* Does what lt_lua_setfuncs does for functions on hot paths, which call lt_lua_enter themselves. */
void lt_lua_set_fast(lua_State *L, const luaL_Reg *functions);
/* Pushes one function as lt_lua_setfuncs registers it. The entry must be static. */
void lt_lua_function(lua_State *L, const luaL_Reg *function);

/* Records the signature of the function `name` of the table at i for help and completion, in the
 * table _signatures. `method`: the first parameter is self; the signature is stored with ":" in
 * front. */
void lt_lua_set_signature(lua_State *L, int i, const char *name, const char *signature,
                          bool method);
/* Pushes the parameters as a list of {name, type, optional, default, written, shape_only, place,
 * choices, least}. */
void lt_lua_push_params(lua_State *L, const lt_Signature *g);
/* Pushes the results as a list of {name, type}. */
void lt_lua_push_results(lua_State *L, const lt_Signature *g);

/* Returns the *n tensors of the list at i, of the single tensor at i, or none (NULL, *n is 0) for
 * nil or for i = 0, an argument that was not given. With `gaps`, false stands for no tensor (NULL).
 * Pushes the array, which keeps listed tensors alive. Raises an error for any other value. */
lt_Tensor **lt_lua_tensor_list(lua_State *L, const char *name, const char *argument, int i,
                               bool gaps, int *n);

struct lt_TraceEvent;
/* Returns whether the program asked explicitly for the copy that is being reported, on a line that
 * called `call` (guard.c). */
bool lt_lua_is_explicit(const lt_Lua *S, const struct lt_TraceEvent *copy, const char *call);
/* Writes the name of the function of lt.distributed that the running line called for this event, or
 * the event's name. */
void lt_lua_called_collective(const lt_Lua *S, const struct lt_TraceEvent *event, char *text,
                              size_t size);
/* Adds the function `guard` to the table on top of the stack. */
void lt_lua_add_guard(lua_State *L);

/* ---- open functions: each adds its functions and methods to the tables at these indices ------ */

void lt_lua_open_errors(lua_State *L, int functions, int methods);
void lt_lua_open_create(lua_State *L, int functions, int methods);
void lt_lua_open_complex(lua_State *L, int functions, int methods);
void lt_lua_open_print(lua_State *L, int functions, int methods);
void lt_lua_open_methods(lua_State *L, int functions, int methods);
void lt_lua_open_hooks(lua_State *L, int functions, int methods);
void lt_lua_open_autograd(lua_State *L, int functions, int methods);
void lt_lua_open_graph(lua_State *L, int functions, int methods);
void lt_lua_open_random(lua_State *L, int functions, int methods);
void lt_lua_open_devices(lua_State *L, int functions, int methods);
void lt_lua_open_accelerator(lua_State *L, int functions, int methods);
void lt_lua_open_describe(lua_State *L, int functions, int methods);
void lt_lua_open_signature(lua_State *L, int functions, int methods);
void lt_lua_open_files(lua_State *L, int functions, int methods);
void lt_lua_open_sources(lua_State *L, int functions, int methods);
void lt_lua_open_images(lua_State *L, int functions, int methods);
void lt_lua_open_trace(lua_State *L, int functions, int methods);
/* Returns the compiled kernel at stack index i, which is never freed; NULL when the value is no
 * kernel that was built for the device. */
lt_UserKernel *lt_lua_user_kernel(lua_State *L, int i, lt_Device d);
struct lt_Program;
/* Pushes an elementwise program as a table; see program.c. */
void lt_lua_push_program(lua_State *L, const struct lt_Program *p);

void lt_lua_open_kernel(lua_State *L, int functions, int methods);
struct lt_Recorder;
/* Returns the recorder at stack index 1, or raises an error. */
struct lt_Recorder *lt_lua_recorder(lua_State *L);
/* Adds methods to recorders; the list must be static. */
void lt_lua_add_to_recorder(lua_State *L, const luaL_Reg *methods);
void lt_lua_open_recorder(lua_State *L, int functions, int methods);
void lt_lua_open_program(lua_State *L, int functions, int methods);
void lt_lua_open_plan(lua_State *L, int functions, int methods);
void lt_lua_open_workers(lua_State *L, int functions, int methods);
void lt_lua_open_communication(lua_State *L, int functions, int methods);

#endif
