/* device.c: the device table: the types of devices.def, and those registered at run time; finding
 * and loading their backends, emulation, device names, the default device.
 *
 * A backend in a shared object is loaded when it is first used. An entry's backend never changes
 * once it is set, so it is read without a lock. */
#define _GNU_SOURCE /* dladdr */
#include "trace.h"
#include "opids.h"

#include <dlfcn.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#include <pthread.h>

#define LT_MAX_NUMBER 64 /* devices of one type */

typedef struct DeviceType {
  const char *name, *driver, *hint;
  bool numbered;
  const lt_Backend *(*linked)(void);
  const lt_Backend *_Atomic backend; /* NULL until it is loaded */
  char why[512];                     /* why it could not be loaded; "": not tried yet */
  char names[LT_MAX_NUMBER][24];     /* full names, by index */
} DeviceType;

#define LINKED_1(name) lt_backend_##name
#define LINKED_0(name) NULL
static DeviceType types[LT_MAX_DEVICE_TYPES] = {
#define LT_DEVICE(name, numbered, linked, driver, hint)                                            \
  {#name, driver, hint, numbered, LINKED_##linked(name), NULL, "", {""}},
#include "devices.def"
#undef LT_DEVICE
};
static atomic_int type_count = LT_DEVICE_KNOWN;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic lt_Device default_device;

/* Fills in the names of a type's devices. */
static void name_all(DeviceType *type) {
  for (int i = 0; i < LT_MAX_NUMBER; i++) {
    if (type->numbered)
      snprintf(type->names[i], sizeof type->names[i], "%.16s:%d", type->name, i);
    else
      snprintf(type->names[i], sizeof type->names[i], "%.20s", type->name);
  }
}

int lt_device_type_count(void) { return atomic_load(&type_count); }
const char *lt_device_type_name(int type) { return types[type].name; }

/* Makes the symbols of this library visible to backends, which call it. The module of an
 * interpreter is loaded with private symbols. */
static void export_core(void) {
  Dl_info here;
  if (dladdr(types, &here) && here.dli_fname)
    dlopen(here.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* ---- checking and loading a backend ---------------------------------------------------------- */

bool lt_op_is_core(lt_OpId op) {
  return lt_ops[op].kind == LT_KIND_ELEMENTWISE || (lt_ops[op].traits & LT_TRAIT_CORE) != 0;
}

/* Checks that a backend with data has the required functions and core kernels. */
static bool check_core(const char *function, const lt_Backend *b) {
  const char *lacks = !b->memory.alloc          ? "function 'alloc'"
                      : !b->memory.free         ? "function 'free'"
                      : !b->memory.copy         ? "function 'copy'"
                      : !b->memory.fill_zero    ? "function 'fill_zero'"
                      : !b->kernels.elementwise ? "kernel 'elementwise'"
                      : !b->kernels.table       ? "table of kernels"
                                                : NULL;
  if (!b->has_data) return true;
  if (lacks) return lt_error_set("%s: device '%s' lacks the core %s", function, b->name, lacks);
  for (int i = 0; i < LT_OP_COUNT; i++)
    if (lt_op_is_core((lt_OpId)i) && lt_ops[i].kind != LT_KIND_ELEMENTWISE && !b->kernels.table[i])
      return lt_error_set("%s: device '%s' lacks the core kernel '%s'", function, b->name,
                          lt_ops[i].name);
  return true;
}

/* Loads the backend in a shared object. It is never unloaded. */
static const lt_Backend *open_backend(const char *path) {
  export_core();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return lt_error_set("%s", dlerror());
  const lt_Backend *(*get)(void);
  *(void **)&get = dlsym(library, "lt_backend");
  const lt_Backend *b = get ? get() : NULL;
  if (!b || b->abi != LT_BACKEND_ABI) {
    dlclose(library);
    return lt_error_set("cannot use %s: it is not a device backend for this version of Lutra",
                        path);
  }
  return b;
}

/* ---- finding a backend ----------------------------------------------------------------------- */

/* Returns the folder that contains this library or program. */
static bool own_folder(char *path, size_t size) {
  Dl_info here;
  const char *file = dladdr(types, &here) ? here.dli_fname : NULL;
  const char *program = "/proc/self/exe";
#ifdef __APPLE__
  char named[2048];
  uint32_t room = sizeof named;
  program = _NSGetExecutablePath(named, &room) == 0 ? named : "";
#endif
  char *real = realpath(file && strchr(file, '/') ? file : program, NULL);
  if (!real) return false;
  *strrchr(real, '/') = 0;
  snprintf(path, size, "%s", real);
  free(real);
  return true;
}

/* Finds <name>.so: next to the module, next to the program in a build folder, for a test program,
 * or installed. */
static bool find_object(const char *name, char *path, size_t size) {
  static const char *const places[] = {"", "/lib/lutra", "/../lib/lutra", "/../lib/lua/5.4/lutra"};
  char folder[2048];
  if (!own_folder(folder, sizeof folder)) return false;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(path, size, "%s%s/%s.so", folder, places[i], name);
    FILE *f = fopen(path, "rb");
    if (!f) continue;
    fclose(f);
    return true;
  }
  return false;
}

/* ---- emulation ------------------------------------------------------------------------------- */

/* The environment variable for emulation: "cuda:2,memory=1GiB,mps". Items are <type>[:<count>] or
 * <option>=<value>; the emulated backend parses the same string. */
static const char *const emulate_variable = "LUTRA_EMULATE";
static const char *const options = "memory=256MiB, link=pcie4, peer=off, libraries=off";

/* Returns true when the variable names a device type. */
static bool is_emulated(const char *type) {
  const char *p = getenv(emulate_variable);
  size_t n = strlen(type);
  for (; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : "")
    if (strncmp(p, type, n) == 0 && (p[n] == ':' || p[n] == ',' || !p[n])) return true;
  return false;
}

/* Checks the value of the option link: a row of links.def. */
static bool check_link(const char *name, size_t n) {
  static const char *const links[] = {
#define LT_LINK(name, host, peer, latency, launch) #name,
#include "links.def"
#undef LT_LINK
  };
  char known[100] = "";
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    if (strlen(links[i]) == n && memcmp(links[i], name, n) == 0) return true;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", links[i]);
  }
  return lt_error_set("emulate: expected a link (%s), got \"%.*s\"", known, (int)n, name);
}

/* Checks the value of the option memory: a number and a unit, "256MiB". */
static bool check_size(const char *text, size_t n) {
  const char *p = text + strspn(text, "0123456789.");
  bool number = p > text && strtod(text, NULL) > 0;
  if (*p && strchr("KMG", *p))
    p += strncmp(p + 1, "iB", 2) == 0 ? 3 : 1;
  else
    p += *p == 'B';
  return (number && p == text + n) || lt_error_set("emulate: expected a size in KiB, MiB or GiB, "
                                                   "such as memory=256MiB, got \"memory=%.*s\"",
                                                   (int)n, text);
}

/* Checks an option, "memory=1GiB", "peer=off", "libraries=off" or "link=pcie4". */
static bool check_option(const char *item, size_t n) {
  if (strncmp(item, "link=", 5) == 0) return check_link(item + 5, n - 5);
  if (strncmp(item, "memory=", 7) == 0) return check_size(item + 7, n - 7);
  static const char *const switches[] = {"peer=on", "peer=off", "libraries=on", "libraries=off"};
  for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
    if (strlen(switches[i]) == n && memcmp(item, switches[i], n) == 0) return true;
  return lt_error_set("emulate: expected an option such as %s, got \"%.*s\"", options, (int)n,
                      item);
}

/* Formats the name of the variable that replaces a type's backend, "LUTRA_CUDA_BACKEND". */
static const char *backend_variable(const DeviceType *type, char text[64]) {
  size_t n = (size_t)sprintf(text, "LUTRA_");
  for (const char *p = type->name; *p && n < 40; p++) text[n++] = (char)(*p - 'a' + 'A');
  snprintf(text + n, 64 - n, "_BACKEND");
  return text;
}

/* Checks that a backend which emulates the type was built, or that the environment names one. */
static bool can_emulate(const DeviceType *type) {
  char path[4096], name[40], variable[64];
  snprintf(name, sizeof name, "%.16s_emulated", type->name);
  return getenv(backend_variable(type, variable)) || find_object(name, path, sizeof path) ||
         lt_error_set("emulate: cannot emulate \"%s\": not available in this build%s", type->name,
                      type->linked ? "" : " (it was built without a C++ compiler)");
}

/* Checks a device item, "cuda:2". `first`: the type must not have been used yet. */
static bool check_device(const char *item, size_t n, bool first) {
  const char *colon = memchr(item, ':', n);
  size_t name = colon ? (size_t)(colon - item) : n;
  bool known = false, single = false;
  for (int t = 0; t < LT_DEVICE_KNOWN; t++) {
    if (types[t].linked || strlen(types[t].name) != name || memcmp(types[t].name, item, name) != 0)
      continue;
    known = true;
    single = !types[t].numbered;
    if (!can_emulate(&types[t])) return false;
    if (first && (atomic_load(&types[t].backend) || types[t].why[0]))
      return lt_error_set("emulate: cannot emulate \"%s\": the device type is already in "
                          "use\nhint: call it first, or lutra --emulate",
                          types[t].name);
  }
  if (!known)
    return lt_error_set("emulate: expected a device type, got \"%.*s\"\nhint: cuda:2 for two GPUs, "
                        "mps for one of Apple, with options: %s",
                        (int)name, item, options);
  char *end;
  long count = colon ? strtol(colon + 1, &end, 10) : 1;
  if (colon && (end != item + n || colon[1] < '0' || colon[1] > '9' || count < 1 || count > 8))
    return lt_error_set(
        "emulate: expected a number of devices from 1 to 8, such as cuda:2, got \"%.*s\"", (int)n,
        item);
  if (single && count > 1)
    return lt_error_set("emulate: expected 1 device of type \"%.*s\", got %ld", (int)name, item,
                        count);
  return true;
}

/* Checks a whole request for emulation. */
static bool check_emulation(const char *what, bool first) {
  if (!*what)
    return lt_error_set(
        "emulate: expected a device type and a number, such as \"cuda:2\", got \"\"");
  bool names_device = false;
  for (const char *p = what;;) {
    const char *comma = strchr(p, ',');
    size_t n = comma ? (size_t)(comma - p) : strlen(p);
    bool option = memchr(p, '=', n) != NULL;
    if (!(option ? check_option(p, n) : check_device(p, n, first))) return false;
    names_device = names_device || !option;
    if (!comma) break;
    p = comma + 1;
  }
  return names_device ||
         lt_error_set("emulate: expected a device type first, got \"%s\"\nhint: cuda:2,%s", what,
                      what);
}

bool lt_device_emulate(const char *what) {
  if (!check_emulation(what, true)) return false;
  return setenv(emulate_variable, what, 1) == 0 || lt_error_memory("emulate: out of memory");
}

bool lt_device_check_environment(void) {
  const char *what = getenv(emulate_variable);
  if (!what || !*what || check_emulation(what, false)) return true;
  char reason[512];
  snprintf(reason, sizeof reason, "%s", lt_error() + strlen("emulate: "));
  return lt_error_set("%s: %s", emulate_variable, reason);
}

/* ---- the backend of a type ------------------------------------------------------------------- */

/* Returns true when a library can be loaded. */
static bool has_library(const char *name) {
  void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library) dlclose(library);
  return library != NULL;
}

/* Loads a type's backend: the file that LUTRA_<NAME>_BACKEND names, the emulated one if that was
 * requested, or the installed one. */
static const lt_Backend *find_backend(DeviceType *type) {
  char variable[64], path[4096], emulated[40];
  const char *path_given = getenv(backend_variable(type, variable));
  if (path_given) return open_backend(path_given);
  if (is_emulated(type->name)) {
    snprintf(emulated, sizeof emulated, "%.16s_emulated", type->name);
    if (find_object(emulated, path, sizeof path)) return open_backend(path);
    return lt_error_set("its emulation is not available in this build%s",
                        type->linked ? "" : " (it needs a C++ compiler)");
  }
  if (type->driver[0] && !has_library(type->driver))
    return lt_error_set("driver library %s not found", type->driver);
  if (find_object(type->name, path, sizeof path)) return open_backend(path);
  return lt_error_set("not available in this build (it requires %s)", type->hint);
}

/* Loads the backend of a device type; NULL with the error set. */
__attribute__((cold)) static const lt_Backend *load_backend(DeviceType *type) {
  pthread_mutex_lock(&table_lock);
  const lt_Backend *b = atomic_load(&type->backend);
  if (!b && !type->why[0]) {
    b = type->linked ? type->linked() : find_backend(type);
    if (b && check_core("device", b)) {
      name_all(type);
      atomic_store_explicit(&type->backend, b, memory_order_release);
    } else {
      b = NULL;
      snprintf(type->why, sizeof type->why, "%s", lt_error());
    }
  }
  pthread_mutex_unlock(&table_lock);
  return b ? b : lt_error_set("%s", type->why);
}

const lt_Backend *lt_device_backend(int number) {
  DeviceType *type = &types[number];
  const lt_Backend *b = atomic_load_explicit(&type->backend, memory_order_acquire);
  return b ? b : load_backend(type);
}

const lt_Backend *lt_device_loaded(int type) {
  return atomic_load_explicit(&types[type].backend, memory_order_acquire);
}

const lt_Backend *lt_backend_of(const lt_Tensor *t) {
  return atomic_load_explicit(&types[t->storage->device.type].backend, memory_order_acquire);
}

bool lt_is_capturing(void) { return lt_thread()->capturing != NULL; }

lt_Stream *lt_stream_current(lt_Device d) {
  const lt_Backend *b = atomic_load_explicit(&types[d.type].backend, memory_order_acquire);
  return b && b->streams.current ? b->streams.current(b, d.index) : NULL;
}

lt_Stream *lt_stream_of(const lt_Tensor *t) { return lt_stream_current(t->storage->device); }

int lt_device_register(const lt_Backend *backend) {
  if (backend->abi != LT_BACKEND_ABI) {
    lt_error_set(
        "device_register: cannot register \"%s\": it was built for another version of Lutra",
        backend->name);
    return -1;
  }
  if (!check_core("device_register", backend)) return -1;
  pthread_mutex_lock(&table_lock);
  int number = -1, n = atomic_load(&type_count);
  for (int i = 0; i < n; i++)
    if (strcmp(types[i].name, backend->name) == 0) number = i;
  if (number >= 0 && atomic_load(&types[number].backend)) {
    lt_error_set("device_register: cannot register \"%s\": the device type exists already",
                 backend->name);
    number = -1;
  } else if (number < 0 && n == LT_MAX_DEVICE_TYPES) {
    lt_error_set("device_register: cannot register another device type: the limit is %d", n);
  } else {
    if (number < 0) {
      number = n;
      types[number].driver = "";
      types[number].hint = "a backend that was loaded";
      atomic_store(&type_count, n + 1);
    }
    types[number].name = backend->name;
    types[number].numbered = backend->numbered;
    name_all(&types[number]);
    atomic_store_explicit(&types[number].backend, backend, memory_order_release);
  }
  pthread_mutex_unlock(&table_lock);
  return number;
}

bool lt_device_is_built(int number) {
  char path[4096], name[40];
  const DeviceType *type = &types[number];
  if (type->linked || atomic_load(&type->backend)) return true;
  snprintf(name, sizeof name, "%.16s%s", type->name, is_emulated(type->name) ? "_emulated" : "");
  return find_object(name, path, sizeof path);
}

int lt_device_load(const char *path) {
  const lt_Backend *b = open_backend(path);
  return b ? lt_device_register(b) : -1;
}

int lt_device_count(int type, char *why, size_t why_size) {
  char ignored[256];
  if (!why) {
    why = ignored;
    why_size = sizeof ignored;
  }
  why[0] = 0;
  const lt_Backend *b = lt_device_backend(type);
  if (b) return b->count(why, why_size);
  snprintf(why, why_size, "%s", lt_error());
  return 0;
}

const char *lt_device_name(lt_Device d) {
  const char *full = types[d.type].names[d.index];
  return full[0] ? full : types[d.type].name;
}

/* Formats the devices of this machine for an error, "Available devices: cpu, cuda:0, meta". */
static void list_devices(char *text, size_t size) {
  size_t at = (size_t)snprintf(text, size, "Available devices: ");
  const char *comma = "";
  for (int t = 0; t < lt_device_type_count(); t++) {
    int n = lt_device_count(t, NULL, 0);
    for (int i = 0; i < n && at < size; i++, comma = ", ")
      at += (size_t)snprintf(text + at, size - at, "%s%s", comma,
                             lt_device_name((lt_Device){(uint8_t)t, (uint8_t)i}));
  }
}

/* Reports that a device name is invalid, with the reason and the devices of this machine. */
static bool parse_failed(const char *name, const char *why) {
  char here[512], reason[300];
  snprintf(reason, sizeof reason, "%s", why);
  list_devices(here, sizeof here);
  bool cuda = strncmp(name, "cuda", 4) == 0 && !is_emulated("cuda");
  bool mps = strncmp(name, "mps", 3) == 0 && !is_emulated("mps");
  lt_error_set("expected an available device, got \"%.40s\"%s%s. %s%s", name, reason[0] ? ": " : "",
               reason, here,
               cuda  ? "\nhint: lutra --emulate cuda:2 emulates two GPUs"
               : mps ? "\nhint: lutra --emulate mps emulates a GPU of Apple"
                     : "");
  return false;
}

bool lt_device_is_name(const char *name) {
  size_t length = strcspn(name, ":");
  for (int t = 0; t < lt_device_type_count(); t++)
    if (strlen(types[t].name) == length && memcmp(types[t].name, name, length) == 0) return true;
  return false;
}

bool lt_device_refuse(const char *name) {
  char here[512];
  list_devices(here, sizeof here);
  lt_error_set("expected an available device or a dtype, got \"%.40s\". %s", name, here);
  return false;
}

bool lt_device_parse(const char *name, lt_Device *out) {
  const char *colon = strchr(name, ':');
  size_t length = colon ? (size_t)(colon - name) : strlen(name);
  for (int t = 0; t < lt_device_type_count(); t++) {
    if (strlen(types[t].name) != length || memcmp(types[t].name, name, length) != 0) continue;
    char why[256];
    int count = lt_device_count(t, why, sizeof why);
    if (count == 0) return parse_failed(name, why);
    long index = 0;
    if (colon) {
      char *end;
      index = strtol(colon + 1, &end, 10);
      if (*end || end == colon + 1 || colon[1] < '0' || colon[1] > '9')
        return parse_failed(name, "");
      if (index >= count) {
        snprintf(why, sizeof why, "there %s %d of them, counted from 0", count == 1 ? "is" : "are",
                 count);
        return parse_failed(name, why);
      }
    } else {
      const lt_Backend *b = lt_device_backend(t);
      index = b->index_current ? b->index_current(b) : 0;
    }
    *out = (lt_Device){(uint8_t)t, (uint8_t)index};
    return true;
  }
  return parse_failed(name, "");
}

lt_Device lt_device_default(void) {
  const lt_Thread *th = lt_thread();
  if (th->has_defaults) return th->default_device;
  return atomic_load_explicit(&default_device, memory_order_relaxed);
}

bool lt_device_set_default(lt_Device d) {
  lt_Thread *th = lt_thread();
  if (th->has_defaults)
    th->default_device = d;
  else
    atomic_store(&default_device, d);
  return true;
}

bool lt_device_synchronize(lt_Device d) {
  const lt_Backend *b = lt_device_backend(d.type);
  if (!b || !b->streams.device_synchronize) return b != NULL;
  lt_TraceSpan span;
  if (!lt_trace_begin(&span, LT_TRACE_WAIT))
    return lt_wait_device(b, d.index) && b->streams.device_synchronize(b, d.index);
  span.event.name = "synchronize";
  span.event.device = d;
  return lt_trace_end(&span,
                      lt_wait_device(b, d.index) && b->streams.device_synchronize(b, d.index));
}

bool lt_device_has_dtype(int type, lt_Dtype dtype) {
  const lt_Backend *b = lt_device_backend(type);
  return !b || dtype == LT_DTYPE_NONE || !(b->without_dtypes >> dtype & 1);
}

bool lt_op_supported(lt_OpId op, int device_type, lt_Dtype dtype) {
  const lt_Backend *b = lt_device_backend(device_type);
  if (!b || !lt_device_has_dtype(device_type, dtype)) return false;
  if (!b->has_data) return true;
  lt_Kind kind = lt_ops[op].kind;
  if (kind == LT_KIND_VIEW || kind == LT_KIND_COMPOSITE) return true;
  if (lt_ops[op].traits & (LT_TRAIT_BUILTIN | LT_TRAIT_HOST)) return true;
  if (kind != LT_KIND_ELEMENTWISE) return b->kernels.table[op] || lt_composite_form(op);
  return b->kernels.elementwise &&
         (!b->kernels.elementwise_supported || b->kernels.elementwise_supported(op, dtype));
}
