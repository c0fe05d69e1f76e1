/* options.cpp: reads the environment variables; see options.h. */
#include "options.h"

#include <atomic>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <thread>
#include <vector>

namespace emulation {
namespace {

/* The faults of LUTRA_EMULATE_FAULT, and the number of calls of each kind so far. */
struct PlannedFault {
  Fault kind;
  unsigned long nth;
};
struct Plan {
  std::vector<PlannedFault> faults;
  std::atomic<unsigned long> calls[(int)Fault::KINDS];
};

const char *const fault_names[] = {"oom",      "load",   "launch", "illegal", "copy",     "sync",
                                   "event",    "stream", "host",   "blas",    "plan",     "fft",
                                   "graph",    "nccl",   "buffer", "library", "pipeline", "queue",
                                   "commands", "commit", "wait",   "lost"};
static_assert(sizeof fault_names / sizeof *fault_names == (size_t)Fault::KINDS, "one name each");

/* Calls each(item) for the items of a comma-separated list, without the blanks around them. */
template <class F> void for_each_item(const char *list, F each) {
  while (list && *list) {
    size_t n = strcspn(list, ",");
    const char *from = list, *to = list + n;
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    char item[128];
    snprintf(item, sizeof item, "%.*s", (int)(to - from), from);
    if (*item) each(item);
    list += n + (list[n] == ',');
  }
}

/* Returns a size with a unit, such as 64MiB, 1GiB, 1000000; 0 if it is invalid. */
size_t size_of(const char *text) {
  static const struct {
    const char *name;
    int shift;
  } units[] = {{"", 0},     {"B", 0},  {"KiB", 10}, {"K", 10},
               {"MiB", 20}, {"M", 20}, {"GiB", 30}, {"G", 30}};
  char *end;
  double n = strtod(text, &end);
  if (end == text || !(n > 0) || n > 1e15) return 0;
  for (const auto &unit : units)
    if (strcmp(end, unit.name) == 0) return (size_t)(n * (double)(1ull << unit.shift));
  return 0;
}

/* Reads an item `cuda:2` of LUTRA_EMULATE for the devices of this backend. Returns false for an
 * item that is another's. */
bool read_count(Options &o, const char *item) {
  size_t n = strlen(device_type);
  if (strncmp(item, device_type, n) != 0 || (item[n] && item[n] != ':')) return false;
  char *end = (char *)"";
  long count = item[n] ? strtol(item + n + 1, &end, 10) : 1;
  o.devices = count >= 1 && count <= MAX_DEVICES && !*end ? (int)count : 1;
  if (count == o.devices && !*end) return true;
  char expected[64];
  snprintf(expected, sizeof expected, "%s:1 to %s:%d", device_type, device_type, (int)MAX_DEVICES);
  report_invalid("LUTRA_EMULATE", item, expected);
  return true;
}

/* Reads LUTRA_EMULATE. Without an item of this type there is one device, unless another type is
 * named. */
void read_devices(Options &o) {
  bool named = false, mine = false;
  o.devices = 1;
  o.memory = (size_t)256 << 20;
  o.peer = o.libraries = true;
  for_each_item(getenv("LUTRA_EMULATE"), [&](const char *item) {
    if (strncmp(item, "memory=", 7) == 0) {
      size_t n = size_of(item + 7);
      if (n)
        o.memory = n;
      else
        report_invalid("LUTRA_EMULATE", item, "memory=256MiB");
    } else if (strcmp(item, "peer=on") == 0 || strcmp(item, "peer=off") == 0) {
      o.peer = item[6] == 'n';
    } else if (strcmp(item, "libraries=on") == 0 || strcmp(item, "libraries=off") == 0) {
      o.libraries = item[11] == 'n';
    } else if (read_count(o, item)) {
      named = mine = true;
    } else if (strncmp(item, "link=", 5) == 0) {
      /* read by the clock of lt.placement */
    } else if (!strchr(item, '=')) {
      named = true; /* another type of device, which its own backend reads */
    } else {
      report_invalid("LUTRA_EMULATE", item, "cuda:2,memory=256MiB");
    }
  });
  if (named && !mine) o.devices = 0;
}

/* Returns the number in a variable; `otherwise` where it is not set or invalid. */
double number(const char *variable, double lowest, double otherwise) {
  const char *value = getenv(variable);
  if (!value || !*value) return otherwise;
  char *end;
  double n = strtod(value, &end);
  if (!*end && n >= lowest && n <= 1e9) return n;
  report_invalid(variable, value, "a number");
  return otherwise;
}

/* Returns the number of processors that this process may use. */
int cpus() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  int n = (int)std::thread::hardware_concurrency();
  return n > 0 ? n : 1;
}

Options *read_options() {
  Options &o = *new Options();
  read_devices(o);
  o.strict = is_on("LUTRA_EMULATE_STRICT");
  o.poison = o.strict || is_on("LUTRA_EMULATE_POISON");
  const char *order = getenv("LUTRA_EMULATE_ORDER");
  o.reverse = order && strcmp(order, "reverse") == 0;
  if (order && *order && !o.reverse && strcmp(order, "forward") != 0)
    report_invalid("LUTRA_EMULATE_ORDER", order, "forward or reverse");
  o.delay = (long)number("LUTRA_EMULATE_DELAY", 0, 0);
  int processors = cpus();
  o.workers = (int)number("LUTRA_EMULATE_WORKERS", 1, processors < 64 ? processors : 64);
  o.timeout = number("LUTRA_EMULATE_TIMEOUT", 0, 0);
  return &o;
}

Plan *read_plan() {
  Plan &plan = *new Plan();
  for_each_item(getenv("LUTRA_EMULATE_FAULT"), [&](const char *item) {
    const char *at = strchr(item, '@');
    for (int kind = 0; at && kind < (int)Fault::KINDS; kind++) {
      if (strncmp(item, fault_names[kind], (size_t)(at - item)) != 0 ||
          strlen(fault_names[kind]) != (size_t)(at - item))
        continue;
      char *end;
      unsigned long n = strtoul(at + 1, &end, 10);
      if (at[1] < '0' || at[1] > '9' || *end || n == 0) break;
      plan.faults.push_back({(Fault)kind, n});
      return;
    }
    std::string expected = "kind@n, with a kind of";
    for (const char *name : fault_names) expected += std::string(" ") + name;
    report_invalid("LUTRA_EMULATE_FAULT", item, (expected + ", n from 1").c_str());
  });
  return &plan;
}

} // namespace

void report_invalid(const char *variable, const char *value, const char *expected) {
  fprintf(stderr, "%s: expected %s, got \"%s\", which is ignored\n", variable, expected, value);
}

bool is_on(const char *variable) {
  const char *value = getenv(variable);
  bool on = value && *value && strcmp(value, "0") != 0;
  if (on && strcmp(value, "1") != 0)
    fprintf(stderr, "%s: expected 0 or 1, got \"%.40s\", read as 1\n", variable, value);
  return on;
}

const Options &options() {
  static const Options *read = read_options();
  return *read;
}

bool injected(Fault kind) {
  static Plan *plan = read_plan();
  if (plan->faults.empty()) return false;
  unsigned long n = ++plan->calls[(int)kind];
  for (const PlannedFault &fault : plan->faults)
    if (fault.kind == kind && fault.nth == n) return true;
  return false;
}

} // namespace emulation
