/* workers.c: threads with Lua states of their own, and messages between them and the program.
 *
 * A pool has a fixed number of workers. Each opens a new Lua state, requires the module of the pool
 * and calls the function that it returned, which receives messages until the pool is closed. A
 * message is a string of bytes and a list of tensors: the receiver gets new tensors on the same
 * storages, whose reference counts are atomic. What the bytes mean is up to Lua
 * (lutra.internal.transfer).
 *
 * Ops of a worker run on one thread, with a default generator of its own. Closing a pool stops its
 * workers: a debug hook raises an error in Lua code that runs, and a worker that is blocked in C
 * for longer than GRACE is detached and ends by itself.
 *
 * Invariant: Lua states share nothing but messages. The lock of a pool protects its queues; the
 * pool is freed when the program and all its workers have released it. */
#include "bindings.h"
#include "trace.h"
#include "worker.h"

#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define POOL    "lutra.workers"
#define MESSAGE "lutra.message"

#define SECOND INT64_C(1000000000)
#define GRACE  (5 * SECOND)             /* for a stopped worker to end, else it is detached */
#define SLICE  (20 * SECOND / 1000)     /* time between two checks for Ctrl-C */
#define STACK  ((size_t)4 << 20)        /* bytes of a worker's C stack */
enum { HOOK_EVERY = 1000, MOST = 256 }; /* instructions between checks; workers of a pool */

typedef struct Message {
  struct Message *next;
  int worker;  /* the sender, from 1 */
  bool failed; /* the worker has ended, and the bytes are the reason */
  int count;
  lt_Tensor **tensors;
  size_t nbytes;
  char bytes[];
} Message;

typedef struct Queue {
  Message *first, *last;
} Queue;

struct Pool;
typedef struct Worker {
  struct Pool *pool;
  int number; /* from 1 */
  pthread_t thread;
  pthread_cond_t arrived; /* a message in the inbox, or the pool stops */
  Queue inbox;
  bool started, ended;
} Worker;

typedef struct Pool {
  pthread_mutex_t lock;
  pthread_cond_t arrived; /* a message in the outbox, or a worker has ended */
  Queue outbox;
  atomic_bool stop;
  int references;
  struct Pool *next; /* in the list of open pools */
  char *path, *cpath, *module;
  int count;
  Worker worker[];
} Pool;

/* ---- messages -------------------------------------------------------------------------------- */

static void message_free(Message *m) {
  if (!m) return;
  for (int i = 0; i < m->count; i++) lt_release(m->tensors[i]);
  free(m->tensors);
  free(m);
}

static Message *message_new(int worker, const char *bytes, size_t n, int count) {
  Message *m = malloc(sizeof *m + n);
  if (!m) return NULL;
  *m = (Message){.worker = worker, .nbytes = n};
  memcpy(m->bytes, bytes, n);
  if (count) m->tensors = calloc((size_t)count, sizeof *m->tensors);
  if (count && !m->tensors) {
    free(m);
    return NULL;
  }
  return m;
}

static void push(Queue *q, Message *m) {
  if (q->last)
    q->last->next = m;
  else
    q->first = m;
  q->last = m;
}

static Message *pop(Queue *q) {
  Message *m = q->first;
  if (!m) return NULL;
  q->first = m->next;
  if (!q->first) q->last = NULL;
  m->next = NULL;
  return m;
}

/* Returns a tensor on the same storage for another thread. Work that is queued on its device is
 * done first, because the other thread uses another stream. */
static lt_Tensor *share(const lt_Tensor *t) {
  lt_Device device = lt_tensor_device(t);
  if (lt_lua_is_accelerator(device.type) && !lt_device_synchronize(device)) return NULL;
  lt_Tensor *other = lt_tensor_on(t->storage, t->dtype, t->offset, t->ndim, t->shape, t->strides);
  if (other) other->inference = t->inference;
  return other;
}

/* Returns a message of the string at `bytes` and the list of tensors at `list`; raises an error
 * when memory is out. */
static Message *read_message(lua_State *L, int worker, int bytes, int list) {
  size_t n;
  int count = 0;
  const char *text = luaL_checklstring(L, bytes, &n);
  lt_Tensor **tensors = lt_lua_tensors(L, "_workers", "tensors", list, false, &count);
  Message *m = message_new(worker, text, n, count);
  if (!m) lt_lua_error(L, "workers: out of memory");
  for (; m->count < count; m->count++) {
    m->tensors[m->count] = share(tensors[m->count]);
    if (!m->tensors[m->count]) {
      message_free(m);
      lt_lua_fail(L, "workers");
    }
  }
  return m;
}

static int message_gc(lua_State *L) {
  Message **held = luaL_checkudata(L, 1, MESSAGE);
  message_free(*held);
  *held = NULL;
  return 0;
}

/* Pushes an object that owns a message, so that an error does not lose it. */
static Message **push_holder(lua_State *L) {
  Message **held = lua_newuserdatauv(L, sizeof *held, 0);
  *held = NULL;
  luaL_setmetatable(L, MESSAGE);
  return held;
}

/* Pushes the bytes of the held message and the list of its tensors. */
static void push_contents(lua_State *L, Message **held) {
  Message *m = *held;
  lua_pushlstring(L, m->bytes, m->nbytes);
  lua_createtable(L, m->count, 0);
  for (int i = 0; i < m->count; i++) {
    lt_Box *box = lt_lua_box(L);
    box->tensor = m->tensors[i];
    m->tensors[i] = NULL;
    lua_rawseti(L, -2, i + 1);
  }
  *held = NULL;
  message_free(m);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static Pool *open_pools; /* stopped when the process exits */

static void pool_free(Pool *p) {
  for (int i = 0; i < p->count; i++) {
    for (Message *m; (m = pop(&p->worker[i].inbox));) message_free(m);
    pthread_cond_destroy(&p->worker[i].arrived);
  }
  for (Message *m; (m = pop(&p->outbox));) message_free(m);
  pthread_cond_destroy(&p->arrived);
  pthread_mutex_destroy(&p->lock);
  free(p->path);
  free(p->cpath);
  free(p->module);
  free(p);
}

static void pool_release(Pool *p) {
  pthread_mutex_lock(&p->lock);
  bool last = --p->references == 0;
  pthread_mutex_unlock(&p->lock);
  if (last) pool_free(p);
}

/* Blocks until the condition is signalled, for at most SLICE. The lock is held. */
static void wait_slice(pthread_cond_t *condition, pthread_mutex_t *lock) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  int64_t ns = end.tv_nsec + SLICE;
  end.tv_sec += (time_t)(ns / SECOND);
  end.tv_nsec = (long)(ns % SECOND);
  pthread_cond_timedwait(condition, lock, &end);
}

/* Returns whether a worker other than the calling thread still runs. The lock is held. */
static bool any_runs(const Pool *p) {
  for (int i = 0; i < p->count; i++) {
    const Worker *w = &p->worker[i];
    if (w->started && !w->ended && !pthread_equal(w->thread, pthread_self())) return true;
  }
  return false;
}

/* Stops the workers and blocks until they have ended, at most for GRACE. Leaves the lock held. */
static void stop_and_lock(Pool *p) {
  int64_t end = lt_trace_now() + GRACE;
  atomic_store(&p->stop, true);
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < p->count; i++) pthread_cond_broadcast(&p->worker[i].arrived);
  while (any_runs(p) && lt_trace_now() < end) wait_slice(&p->arrived, &p->lock);
}

static void unlist(const Pool *p) {
  pthread_mutex_lock(&list_lock);
  Pool **place = &open_pools;
  while (*place && *place != p) place = &(*place)->next;
  if (*place) *place = p->next;
  pthread_mutex_unlock(&list_lock);
}

/* Closes a pool for the program: threads that have ended are joined, others are detached. */
static void pool_close(Pool *p) {
  unlist(p);
  stop_and_lock(p);
  for (int i = 0; i < p->count; i++) {
    Worker *w = &p->worker[i];
    if (!w->started) continue;
    w->started = false;
    if (w->ended) {
      pthread_mutex_unlock(&p->lock);
      pthread_join(w->thread, NULL);
      pthread_mutex_lock(&p->lock);
    } else {
      pthread_detach(w->thread);
    }
  }
  pthread_mutex_unlock(&p->lock);
  pool_release(p);
}

/* Called by exit: no worker may run while the libraries are being finalized. */
static void stop_all(void) {
  pthread_mutex_lock(&list_lock);
  for (Pool *p = open_pools; p; p = p->next) {
    stop_and_lock(p);
    pthread_mutex_unlock(&p->lock);
  }
  pthread_mutex_unlock(&list_lock);
}

static void at_exit(void) { atexit(stop_all); }

/* ---- a worker -------------------------------------------------------------------------------- */

static const char worker_key = 0; /* registry key of the Worker of a Lua state */

static Worker *worker_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &worker_key);
  Worker *w = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return w;
}

/* The debug hook of a worker: ends its Lua code when the pool is closed. After the first error,
 * every instruction raises one, so that code which catches errors ends, too. */
static void stop_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  if (!atomic_load_explicit(&worker_of(L)->pool->stop, memory_order_relaxed)) return;
  lua_sethook(L, stop_hook, LUA_MASKCOUNT, 1);
  luaL_error(L, "the worker was stopped");
}

static int with_traceback(lua_State *L) {
  luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
  return 1;
}

static void set_field(lua_State *L, const char *name, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

/* Opens the libraries of a worker's state and calls the function that its module returns. */
static int run_module(lua_State *L) {
  Worker *w = lua_touserdata(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &worker_key);
  lua_sethook(L, stop_hook, LUA_MASKCOUNT, HOOK_EVERY);
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_lutra_core);
  lua_setfield(L, -2, "lutra.core");
  lua_getglobal(L, "package");
  set_field(L, "path", w->pool->path);
  set_field(L, "cpath", w->pool->cpath);
  lua_getglobal(L, "require");
  lua_pushstring(L, w->pool->module);
  lua_call(L, 1, 1);
  lua_call(L, 0, 0);
  return 0;
}

/* Sends the message that the worker has ended, with the reason on top of the stack of L, or that
 * memory is out for L = NULL. */
static void report_end(Worker *w, lua_State *L) {
  const char *text = L ? lua_tostring(L, -1) : NULL;
  if (!text) text = "out of memory";
  Message *m = message_new(w->number, text, strlen(text), 0);
  if (!m) return;
  m->failed = true;
  pthread_mutex_lock(&w->pool->lock);
  push(&w->pool->outbox, m);
  pthread_mutex_unlock(&w->pool->lock);
}

static void *run_worker(void *argument) {
  Worker *w = argument;
  Pool *p = w->pool;
  lt_Generator *own = lt_generator_new(lt_random_seed());
  lt_worker_begin(own);
  lua_State *L = own ? luaL_newstate() : NULL;
  if (L) {
    lua_pushcfunction(L, with_traceback);
    lua_pushcfunction(L, run_module);
    lua_pushlightuserdata(L, w);
  }
  if (!L || lua_pcall(L, 1, 0, 1) != LUA_OK) report_end(w, L);
  if (L) {
    lua_sethook(L, NULL, 0, 0); /* finalizers run to their end */
    lua_close(L);
  }
  lt_worker_begin(NULL);
  lt_generator_free(own);
  pthread_mutex_lock(&p->lock);
  w->ended = true;
  pthread_cond_broadcast(&p->arrived);
  pthread_mutex_unlock(&p->lock);
  pool_release(p);
  return NULL;
}

/* _worker_receive() -> bytes, tensors; nothing when the pool is closed. Blocks. */
static int worker_receive(lua_State *L) {
  Worker *w = worker_of(L);
  if (!w) lt_lua_error(L, "_worker_receive: expected a call in a worker");
  Message **held = push_holder(L);
  pthread_mutex_lock(&w->pool->lock);
  while (!atomic_load(&w->pool->stop) && !(*held = pop(&w->inbox)))
    pthread_cond_wait(&w->arrived, &w->pool->lock);
  pthread_mutex_unlock(&w->pool->lock);
  if (!*held) return 0;
  push_contents(L, held);
  return 2;
}

/* _worker_send(bytes, tensors): sends a message to the program */
static int worker_send(lua_State *L) {
  Worker *w = worker_of(L);
  if (!w) lt_lua_error(L, "_worker_send: expected a call in a worker");
  Message *m = read_message(L, w->number, 1, 2);
  pthread_mutex_lock(&w->pool->lock);
  push(&w->pool->outbox, m);
  pthread_cond_broadcast(&w->pool->arrived);
  pthread_mutex_unlock(&w->pool->lock);
  return 0;
}

/* ---- the program's side ---------------------------------------------------------------------- */

static Pool *pool_at(lua_State *L, int i) {
  Pool **p = luaL_checkudata(L, i, POOL);
  if (!*p) lt_lua_error(L, "workers: cannot use the workers: they were closed");
  return *p;
}

static int close_workers(lua_State *L) {
  Pool **held = luaL_checkudata(L, 1, POOL), *p = *held;
  *held = NULL;
  if (p) pool_close(p);
  return 0;
}

static Pool *pool_new(int count, const char *path, const char *cpath, const char *module) {
  Pool *p = calloc(1, sizeof *p + (size_t)count * sizeof *p->worker);
  if (!p) return NULL;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->arrived, NULL);
  p->references = 1;
  p->count = count;
  for (int i = 0; i < count; i++) {
    p->worker[i].pool = p;
    p->worker[i].number = i + 1;
    pthread_cond_init(&p->worker[i].arrived, NULL);
  }
  p->path = strdup(path);
  p->cpath = strdup(cpath);
  p->module = strdup(module);
  if (p->path && p->cpath && p->module) return p;
  pool_free(p);
  return NULL;
}

/* Starts the thread of a worker, which leaves the signals of the terminal and of timers to the
 * program's thread. */
static bool start(Worker *w) {
  pthread_attr_t attributes;
  sigset_t blocked, before;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, STACK);
  sigfillset(&blocked);
  static const int of_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
  for (size_t i = 0; i < sizeof of_faults / sizeof *of_faults; i++)
    sigdelset(&blocked, of_faults[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_mutex_lock(&w->pool->lock);
  w->started = pthread_create(&w->thread, &attributes, run_worker, w) == 0;
  if (w->started) w->pool->references++;
  pthread_mutex_unlock(&w->pool->lock);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return w->started;
}

/* _workers(count, path, cpath, module) -> workers, each of which has required the module and calls
 * what it returned */
static int new_workers(lua_State *L) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  lua_Integer count = luaL_checkinteger(L, 1);
  if (count < 1 || count > MOST)
    lt_lua_error(L, "DataLoader: expected an integer from 0 to %d for argument 'num_workers'",
                 (int)MOST);
  const char *path = luaL_checkstring(L, 2), *cpath = luaL_checkstring(L, 3);
  const char *module = luaL_checkstring(L, 4);
  pthread_once(&once, at_exit);
  Pool **held = lua_newuserdatauv(L, sizeof *held, 0);
  *held = NULL;
  luaL_setmetatable(L, POOL);
  Pool *p = *held = pool_new((int)count, path, cpath, module);
  if (!p) lt_lua_error(L, "workers: out of memory");
  pthread_mutex_lock(&list_lock);
  p->next = open_pools;
  open_pools = p;
  pthread_mutex_unlock(&list_lock);
  for (int i = 0; i < p->count; i++) {
    if (start(&p->worker[i])) continue;
    *held = NULL;
    pool_close(p);
    lt_lua_error(L, "workers: cannot start a thread: the system has no more");
  }
  return 1;
}

/* workers:send(worker, bytes, tensors) */
static int send_to(lua_State *L) {
  Pool *p = pool_at(L, 1);
  lua_Integer number = luaL_checkinteger(L, 2);
  luaL_argcheck(L, number >= 1 && number <= p->count, 2, "expected the number of a worker");
  Message *m = read_message(L, 0, 3, 4);
  Worker *w = &p->worker[number - 1];
  pthread_mutex_lock(&p->lock);
  push(&w->inbox, m);
  pthread_cond_signal(&w->arrived);
  pthread_mutex_unlock(&p->lock);
  return 0;
}

/* workers:receive(seconds) -> worker, bytes, tensors; worker, nil, reason when that worker has
 * ended; nothing after `seconds` (negative: no limit). Blocks; Ctrl-C raises an error. */
static int receive(lua_State *L) {
  Pool *p = pool_at(L, 1);
  double seconds = luaL_checknumber(L, 2);
  int64_t begin = lt_trace_now();
  Message **held = push_holder(L);
  pthread_mutex_lock(&p->lock);
  while (!(*held = pop(&p->outbox)) && !lt_stopped()) {
    if (seconds >= 0 && (double)(lt_trace_now() - begin) >= seconds * (double)SECOND) break;
    wait_slice(&p->arrived, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  if (!*held && lt_stopped()) lt_lua_fail(L, "DataLoader");
  if (!*held) return 0;
  lua_pushinteger(L, (*held)->worker);
  if ((*held)->failed) {
    lua_pushnil(L);
    lua_pushlstring(L, (*held)->bytes, (*held)->nbytes);
  } else {
    push_contents(L, held);
  }
  return 3;
}

void lt_lua_open_workers(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"_workers", new_workers},
                                    {"_worker_receive", worker_receive},
                                    {"_worker_send", worker_send},
                                    {NULL, NULL}};
  static const luaL_Reg of_pool[] = {{"send", send_to},          {"receive", receive},
                                     {"close", close_workers},   {"__gc", close_workers},
                                     {"__close", close_workers}, {NULL, NULL}};
  static const luaL_Reg of_message[] = {{"__gc", message_gc}, {NULL, NULL}};
  (void)methods;
  luaL_newmetatable(L, POOL);
  lt_lua_setfuncs(L, of_pool);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  luaL_newmetatable(L, MESSAGE);
  lt_lua_setfuncs(L, of_message);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 3);
}
