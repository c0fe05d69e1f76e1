/* commands.cpp: what a command buffer holds: dispatches of kernels, copies and fills. What is not
 * allowed makes the command buffer fail, as with Metal's validation. */
#include "runtime.h"

#include <string.h>

namespace emulated {
namespace {

/* A kernel from source that the user gave may not terminate: macOS stops it after seconds. */
const double USER_TIMEOUT = 30;

/* The bytes of arguments begin at multiples of this. */
enum { VALUE_ALIGNMENT = 64 };

/* A dispatch, with copies of its arguments. */
struct Dispatch final : Command {
  lt_MetalDevice *device = nullptr;
  const Pipeline *pipeline = nullptr;
  Grid grid = {};
  std::vector<Range> ranges;   /* of the arguments that are buffers */
  std::vector<void *> buffers; /* one for each argument; see Bindings */
  std::unique_ptr<char[]> values;
  Bindings bindings = {};

  bool run(lt_MetalError *error) override;
};

/* The dispatch as the executor calls it. */
struct Launch : lt_EmulatedLaunch {
  const Kernel *kernel;
  const Bindings *bindings;
};

lt_MetalStatus status_of(lt_EmulatedFault fault) {
  switch (fault) {
  case LT_EMULATED_OK:
  case LT_EMULATED_STOPPED: /* by lt_metal_stop */
    return LT_METAL_OK;
  case LT_EMULATED_ADDRESS:
    return LT_METAL_PAGE_FAULT;
  case LT_EMULATED_TIMEOUT:
    return LT_METAL_TIMEOUT;
  case LT_EMULATED_NO_MEMORY:
    return LT_METAL_NO_MEMORY;
  case LT_EMULATED_UNLOADING:
    return LT_METAL_LOST;
  case LT_EMULATED_FAILURE:
  case LT_EMULATED_ASSERTION:
  case LT_EMULATED_INSTRUCTION:
    break;
  }
  return LT_METAL_OTHER;
}

const char *title_of(lt_MetalStatus status) {
  switch (status) {
  case LT_METAL_PAGE_FAULT:
    return "page fault";
  case LT_METAL_TIMEOUT:
    return "timeout";
  case LT_METAL_NO_MEMORY:
    return "out of memory";
  case LT_METAL_LOST:
    return "the program is ending";
  default:
    return "internal error";
  }
}

bool Dispatch::run(lt_MetalError *error) {
  std::vector<void *> used;
  for (const Range &range : ranges) {
    if (!is_accessible(range, error)) return false;
    used.push_back(range.base);
  }
  Launch launch;
  launch.run = [](lt_EmulatedLaunch *self) {
    Launch *l = (Launch *)self;
    l->kernel->run(l->bindings);
  };
  launch.destroy = [](lt_EmulatedLaunch *) {};
  launch.kernel = pipeline->kernel;
  launch.bindings = &bindings;
  grid.launch = &launch;
  bindings.buffers = buffers.data();
  Access access(&device->memory, std::move(used));
  if (injected(Fault::ILLEGAL)) {
    set_error(error, LT_METAL_PAGE_FAULT, "page fault in kernel '%s' (LUTRA_EMULATE_FAULT)",
              pipeline->kernel->name);
    return false;
  }
  lt_MetalStatus status = status_of(run_grid(grid));
  if (status == LT_METAL_OK) return true;
  set_error(error, status, "%s in kernel '%s': %s", title_of(status), pipeline->kernel->name,
            last_fault());
  return false;
}

/* A copy, or a fill where `from` is not set. */
struct Copy final : Command {
  Range to = {}, from = {};
  bool is_fill = false;
  uint8_t byte = 0;

  bool run(lt_MetalError *error) override {
    if (!is_accessible(to, error) || (!is_fill && !is_accessible(from, error))) return false;
    std::vector<void *> used = {to.base};
    if (!is_fill) used.push_back(from.base);
    Access access(to.memory, std::move(used));
    if (is_fill)
      memset(to.at, byte, to.size);
    else
      memcpy(to.at, from.at, to.size);
    return true;
  }
};

/* ---- checks ---------------------------------------------------------------------------------- */

bool check_size(const Pipeline *p, const lt_MetalDispatch *d, lt_MetalError *error) {
  uint64_t threads = 1ull * d->group[0] * d->group[1] * d->group[2];
  uint64_t grid = 1ull * d->grid[0] * d->grid[1] * d->grid[2];
  size_t shared = (size_t)p->threadgroup + d->threadgroup;
  lt_MetalFacts facts;
  lt_metal_facts(lt_metal_device(0, error), &facts);
  if (threads == 0 || grid == 0 || threads > p->threads)
    set_error(error, LT_METAL_INVALID,
              "kernel '%s' has 1 to %u threads in a threadgroup, and 1 or more in the grid, not "
              "%llu and %llu",
              p->kernel->name, p->threads, (unsigned long long)threads, (unsigned long long)grid);
  else if (shared > facts.threadgroup || d->threadgroup % 16 != 0)
    set_error(error, LT_METAL_INVALID,
              "kernel '%s' has a multiple of 16 bytes of threadgroup memory, at most %u, not %zu",
              p->kernel->name, facts.threadgroup, shared);
  else
    return true;
  return false;
}

/* Checks and copies the arguments. */
bool bind(Dispatch *command, const lt_MetalDispatch *d, lt_MetalError *error) {
  const char *name = command->pipeline->kernel->name;
  if (d->count < 0 || d->count > LT_METAL_ARGUMENTS) {
    set_error(error, LT_METAL_INVALID, "kernel '%s' has %d arguments", name, d->count);
    return false;
  }
  size_t bytes = VALUE_ALIGNMENT;
  for (int i = 0; i < d->count; i++)
    if (!d->arguments[i].buffer) bytes += round_up(d->arguments[i].size, VALUE_ALIGNMENT);
  command->values.reset(new char[bytes]);
  command->buffers.resize(LT_METAL_ARGUMENTS); /* a kernel may have more parameters: NULL */
  char *at = (char *)round_up((size_t)command->values.get(), VALUE_ALIGNMENT);
  for (int i = 0; i < d->count; i++) {
    const lt_MetalArgument &a = d->arguments[i];
    if (a.buffer) {
      Range range = range_of(a.buffer, a.offset, 1, error);
      if (error->status != LT_METAL_OK) return false;
      command->ranges.push_back(range);
      command->buffers[(size_t)i] = range.at;
    } else if (a.bytes) {
      if (a.size < 1 || a.size > LT_METAL_BYTES) {
        set_error(error, LT_METAL_INVALID, "argument %d of kernel '%s' has %zu bytes", i, name,
                  a.size);
        return false;
      }
      command->buffers[(size_t)i] = memcpy(at, a.bytes, a.size);
      at += round_up(a.size, VALUE_ALIGNMENT);
    }
  }
  return true;
}

void add_copy(lt_MetalCommands *commands, Copy *copy) {
  std::unique_ptr<Command> owned(copy);
  if (commands->error.status == LT_METAL_OK) commands->list.push_back(std::move(owned));
}

} // namespace
} // namespace emulated

using namespace emulated;

void lt_metal_stop(lt_MetalDevice *device) { stop_user_grids(device->index); }

void lt_metal_dispatch(lt_MetalCommands *commands, const lt_MetalDispatch *d) {
  if (commands->error.status != LT_METAL_OK) return;
  std::unique_ptr<Dispatch> command(new Dispatch());
  const Pipeline *p = command->pipeline = (const Pipeline *)d->pipeline;
  command->device = commands->queue->device;
  if (!check_size(p, d, &commands->error) || !bind(command.get(), d, &commands->error)) return;
  Grid &g = command->grid;
  auto blocks = [d](int i) { return (d->grid[i] - 1) / d->group[i] + 1; };
  g.grid = {blocks(0), blocks(1), blocks(2)};
  g.block = {d->group[0], d->group[1], d->group[2]};
  g.threads = {d->grid[0], d->grid[1], d->grid[2]};
  g.shared = (size_t)p->threadgroup + d->threadgroup;
  g.device = command->device->index;
  g.constants = &p->constants;
  g.turn = p->is_users ? user_turn(command->device->index) : 0;
  g.timeout = p->is_users ? USER_TIMEOUT : 0;
  for (int i = 0; i < 3; i++) {
    command->bindings.grid[i] = d->grid[i];
    command->bindings.group[i] = d->group[i];
  }
  commands->list.push_back(std::move(command));
}

void lt_metal_copy(lt_MetalCommands *commands, lt_MetalBuffer *to, size_t to_offset,
                   lt_MetalBuffer *from, size_t from_offset, size_t nbytes) {
  lt_MetalError *error = &commands->error;
  if (error->status != LT_METAL_OK || nbytes == 0) return;
  Copy *copy = new Copy();
  copy->to = range_of(to, to_offset, nbytes, error);
  copy->from = range_of(from, from_offset, nbytes, error);
  if (error->status == LT_METAL_OK && copy->to.at < copy->from.at + nbytes &&
      copy->from.at < copy->to.at + nbytes)
    set_error(error, LT_METAL_INVALID, "a copy within one buffer has overlapping ranges");
  add_copy(commands, copy);
}

void lt_metal_fill(lt_MetalCommands *commands, lt_MetalBuffer *buffer, size_t offset, size_t nbytes,
                   uint8_t byte) {
  if (commands->error.status != LT_METAL_OK || nbytes == 0) return;
  Copy *copy = new Copy();
  copy->to = range_of(buffer, offset, nbytes, &commands->error);
  copy->is_fill = true;
  copy->byte = byte;
  add_copy(commands, copy);
}
