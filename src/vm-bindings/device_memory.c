/* device_memory.c: memory statistics of accelerators as Lua tables, and a snapshot of all blocks.
 *
 * An allocator reports its blocks while it holds its lock, and no Lua code may run then: a
 * collection would free tensors. So the blocks are copied first and converted to tables
 * afterwards. */
#include "accelerator.h"

/* Declares d, the device at index 1, and b, its backend; raises an error if the backend lacks a
 * function that `what` requires. */
#define BACKEND_WITH(member, what)                                                                 \
  lt_Device d = lt_lua_full_device(L, 1);                                                          \
  const lt_Backend *b = lt_device_backend(d.type);                                                 \
  if (!b->memory.member)                                                                           \
  lt_lua_error(L, "%s: expected a device with its own allocator, got \"%s\"", what,                \
               lt_device_name(d))

/* info(device) -> free bytes, total bytes */
static int info(lua_State *L) {
  int64_t available, total;
  BACKEND_WITH(info, "mem_get_info");
  if (!b->memory.info(b, d.index, &available, &total)) lt_lua_fail(L, "mem_get_info");
  lua_pushinteger(L, available);
  lua_pushinteger(L, total);
  return 2;
}

static void set_number(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static void set_text(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

/* Sets the fields "allocated_bytes.all.current", .peak, .allocated and .freed, for each pool. */
static void set_stat(lua_State *L, const char *name, const lt_Stat *pools) {
  static const char *const pool_names[LT_MEMORY_POOLS] = {
      [LT_POOL_ALL] = "all", [LT_SMALL_POOL] = "small_pool", [LT_LARGE_POOL] = "large_pool"};
  for (int p = 0; p < LT_MEMORY_POOLS; p++) {
    char key[80];
    const struct {
      const char *name;
      int64_t value;
    } parts[] = {{"current", pools[p].current},
                 {"peak", pools[p].peak},
                 {"allocated", pools[p].allocated},
                 {"freed", pools[p].freed}};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
      snprintf(key, sizeof key, "%s.%s.%s", name, pool_names[p], parts[k].name);
      set_number(L, key, parts[k].value);
    }
  }
}

/* stats(device) -> a table with the keys of PyTorch's memory_stats */
static int stats(lua_State *L) {
  lt_MemoryStats s;
  BACKEND_WITH(stats, "memory_stats");
  if (!b->memory.stats(b, d.index, &s)) lt_lua_fail(L, "memory_stats");
  lua_newtable(L);
#define ROW(name) set_stat(L, #name, s.name);
  LT_MEMORY_STATS(ROW)
#undef ROW
  set_number(L, "num_alloc_retries", s.num_alloc_retries);
  set_number(L, "num_ooms", s.num_ooms);
  set_number(L, "num_device_alloc", s.num_device_alloc);
  set_number(L, "num_device_free", s.num_device_free);
  set_number(L, "largest_free_block", s.largest_free_block);
  return 1;
}

/* stat(device, name) -> current and peak value of one statistic over all pools */
static int stat(lua_State *L) {
  lt_MemoryStats s;
  const char *name = lt_lua_text(L, 2, "memory_stats", "name");
  BACKEND_WITH(stats, "memory_stats");
  if (!b->memory.stats(b, d.index, &s)) lt_lua_fail(L, "memory_stats");
#define ROW(field)                                                                                 \
  if (strcmp(name, #field) == 0) {                                                                 \
    lua_pushinteger(L, s.field[LT_POOL_ALL].current);                                              \
    lua_pushinteger(L, s.field[LT_POOL_ALL].peak);                                                 \
    return 2;                                                                                      \
  }
  LT_MEMORY_STATS(ROW)
#undef ROW
  return lt_lua_error(L, "memory_stats: expected the name of a quantity, got \"%s\"", name);
}

static int reset_peak(lua_State *L) {
  BACKEND_WITH(reset_peak, "reset_peak_memory_stats");
  if (!b->memory.reset_peak(b, d.index)) lt_lua_fail(L, "reset_peak_memory_stats");
  return 0;
}

/* limit(device, fraction): limits the process to this fraction of the device's memory */
static int limit(lua_State *L) {
  BACKEND_WITH(limit, "set_per_process_memory_fraction");
  if (!b->memory.limit(b, d.index, luaL_checknumber(L, 2)))
    lt_lua_fail(L, "set_per_process_memory_fraction");
  return 0;
}

/* release(device): returns cached segments without a used block to the driver */
static int release(lua_State *L) {
  BACKEND_WITH(release, "empty_cache");
  if (!b->memory.release(b, d.index)) lt_lua_fail(L, "empty_cache");
  return 0;
}

/* host_release(kind): does the same for pinned memory */
static int host_release(lua_State *L) {
  const lt_Backend *b = lt_device_backend(lt_lua_device_type(L, 1));
  if (b && b->memory.host_release && !b->memory.host_release(b)) lt_lua_fail(L, "empty_host_cache");
  return 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

typedef struct Block {
  lt_MemoryBlock block;
  char where[64];
} Block;

typedef struct Blocks {
  size_t count, capacity;
  Block *block; /* NULL: blocks are only counted */
} Blocks;

/* Counts a block, and copies it if there is room; called under the allocator's lock. */
static void take_block(void *context, const lt_MemoryBlock *block) {
  Blocks *all = context;
  if (all->block && all->count < all->capacity) {
    Block *to = &all->block[all->count];
    to->block = *block;
    snprintf(to->where, sizeof to->where, "%s", block->where ? block->where : "");
  }
  all->count++;
}

static int64_t address(const void *p) { return (int64_t)(intptr_t)p; }

static void push_block(lua_State *L, const Block *from) {
  static const char *const states[] = {[LT_BLOCK_FREE] = "inactive",
                                       [LT_BLOCK_ACTIVE] = "active_allocated",
                                       [LT_BLOCK_WAITING] = "active_awaiting_free"};
  const lt_MemoryBlock *b = &from->block;
  lua_createtable(L, 0, 8);
  set_number(L, "address", address(b->address));
  set_number(L, "size", (int64_t)b->size);
  set_number(L, "requested_size", (int64_t)b->requested);
  set_text(L, "state", states[b->state]);
  if (from->where[0]) set_text(L, "where", from->where);
  if (b->dtype == LT_DTYPE_NONE || b->state == LT_BLOCK_FREE) return;
  set_text(L, "dtype", lt_dtype_name(b->dtype));
  lt_lua_push_shape(L, b->ndim, b->shape);
  lua_setfield(L, -2, "shape");
}

/* Pushes the table of a segment, and above it its empty list of blocks. */
static void push_segment(lua_State *L, lt_Device d, const lt_MemoryBlock *b) {
  lua_createtable(L, 0, 9);
  set_text(L, "device", lt_device_name(d));
  set_number(L, "address", address(b->segment));
  set_number(L, "total_size", (int64_t)b->segment_size);
  set_text(L, "segment_type", b->small ? "small" : "large");
  const lt_Backend *backend = lt_device_backend(d.type);
  bool native = b->stream && backend->streams.native;
  set_number(L, "stream", native ? address(backend->streams.native(b->stream)) : 0);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "blocks");
}

/* snapshot(device) -> list of segments {device, address, total_size, allocated_size, active_size,
 * requested_size, segment_type, stream, blocks = {{address, size, requested_size, state, dtype,
 * shape, where}}} */
static int snapshot(lua_State *L) {
  Blocks all = {0};
  BACKEND_WITH(each, "memory_snapshot");
  if (!b->memory.each(b, d.index, take_block, &all)) lt_lua_fail(L, "memory_snapshot");
  all.capacity = all.count + 64; /* other threads may allocate in between */
  all.count = 0;
  all.block = lua_newuserdatauv(L, all.capacity * sizeof *all.block, 0);
  if (!b->memory.each(b, d.index, take_block, &all)) lt_lua_fail(L, "memory_snapshot");
  if (all.count > all.capacity) all.count = all.capacity;
  lua_newtable(L);
  int list = lua_gettop(L), n = 0;
  for (size_t i = 0; i < all.count;) {
    const lt_MemoryBlock *first = &all.block[i].block;
    int64_t allocated = 0, active = 0, requested = 0;
    push_segment(L, d, first);
    for (int k = 1; i < all.count && all.block[i].block.segment == first->segment; i++, k++) {
      const lt_MemoryBlock *block = &all.block[i].block;
      push_block(L, &all.block[i]);
      lua_rawseti(L, -2, k);
      if (block->state == LT_BLOCK_FREE) continue;
      active += (int64_t)block->size;
      if (block->state == LT_BLOCK_WAITING) continue;
      allocated += (int64_t)block->size;
      requested += (int64_t)block->requested;
    }
    lua_pop(L, 1);
    set_number(L, "allocated_size", allocated);
    set_number(L, "active_size", active);
    set_number(L, "requested_size", requested);
    lua_rawseti(L, list, ++n);
  }
  return 1;
}

void lt_lua_set_memory(lua_State *L) {
  static const luaL_Reg functions[] = {{"memory_info", info},
                                       {"memory_stats", stats},
                                       {"memory_stat", stat},
                                       {"memory_reset_peak", reset_peak},
                                       {"memory_limit", limit},
                                       {"memory_release", release},
                                       {"host_release", host_release},
                                       {"memory_snapshot", snapshot},
                                       {NULL, NULL}};
  lt_lua_setfuncs(L, functions);
}
