/* plan_graph.c: runs a part of a plan as one graph of the device, which replays its steps.
 *
 * A graph works on fixed memory. Inputs, and what the backward pass reads, are copied into it
 * before a replay, results are copied out of it; captured tensors are used where they are. The
 * first run of a part executes its steps, the second captures them. While a backward pass is
 * outstanding, its saved memory is in use: then the steps are executed.
 *
 * A part whose capture fails has no graph, which changes nothing but the time of a run. */
#include "plan.h"

enum { MOST_CAPTURES = 3 }; /* of a part, as captured tensors get other memory */

static const char *address_of(const lt_PlanSlot *s) {
  return s->storage ? (const char *)s->storage->data + s->offset : NULL;
}

static bool is_captured(const lt_Plan *p, int slot) {
  return slot >= p->ninputs && slot < p->saved_slot;
}

/* Frees the graphs, and forgets the captured tensors. */
static void drop_graphs(lt_Plan *p) {
  const lt_Backend *b = lt_device_backend(p->device.type);
  for (int part = 0; part < 2; part++) {
    if (p->graph[part]) b->graphs.destroy(p->graph[part]);
    p->graph[part] = NULL;
  }
  for (int i = p->ninputs; p->fixed && i < p->saved_slot; i++) {
    lt_storage_release(p->fixed[i].storage);
    p->fixed[i] = (lt_PlanSlot){NULL, 0};
  }
}

void lt_plan_graphs_free(lt_Plan *p) {
  drop_graphs(p);
  for (int i = 0; p->fixed && i < p->nslots; i++) lt_storage_release(p->fixed[i].storage);
  free(p->fixed);
  p->fixed = NULL;
}

/* Notes why the plan has no graphs. */
static void refuse(lt_Plan *p, const char *why) {
  snprintf(p->no_graph, sizeof p->no_graph, "%s", why);
  lt_plan_graphs_free(p);
}

/* Allocates the fixed memory. */
static bool make_fixed(lt_Plan *p) {
  p->fixed = calloc((size_t)p->nslots, sizeof *p->fixed);
  if (!p->fixed) return lt_fail_memory();
  for (int i = 0; i < p->nslots; i++) {
    int64_t bytes = i == p->saved_slot ? p->saved_bytes : p->slot_bytes[i];
    if (is_captured(p, i)) continue;
    p->fixed[i].storage = lt_storage_new(p->device, (size_t)bytes);
    if (!p->fixed[i].storage) return false;
  }
  return true;
}

lt_Storage *lt_plan_fixed_saved(lt_Plan *p) {
  if (!p->graphs || p->no_graph[0] || !p->ran[LT_FORWARD]) return NULL;
  if (!p->fixed && !make_fixed(p)) {
    refuse(p, lt_error());
    return NULL;
  }
  lt_Storage *s = p->fixed[p->saved_slot].storage;
  return atomic_load(&s->refs) == 1 ? lt_storage_retain(s) : NULL;
}

/* Returns whether the captured tensors of the slots are where the graphs use them. */
static bool same_captured(const lt_Plan *p, const lt_PlanSlot *slot) {
  for (int i = p->ninputs; i < p->saved_slot; i++)
    if (slot[i].storage && p->fixed[i].storage && address_of(&slot[i]) != address_of(&p->fixed[i]))
      return false;
  return true;
}

/* Keeps the captured tensors of the slots where the graphs will use them. */
static void fix_captured(lt_Plan *p, const lt_PlanSlot *slot) {
  for (int i = p->ninputs; i < p->saved_slot; i++)
    if (slot[i].storage && !p->fixed[i].storage)
      p->fixed[i] = (lt_PlanSlot){lt_storage_retain(slot[i].storage), slot[i].offset};
}

/* Captures the steps of a part on the fixed memory, on this stream, which is the current one. NULL
 * with the error. */
static lt_Graph *capture_on(lt_Plan *p, int part, lt_Stream *stream) {
  const lt_Backend *b = lt_device_backend(p->device.type);
  lt_ErrorSlot kept;
  lt_Graph *g = b->graphs.begin(b, stream, 0);
  if (!g) return NULL;
  bool ok = lt_plan_run_steps(p, part, p->fixed);
  lt_error_keep(&kept);
  bool ended = b->graphs.end(g);
  if (ok && ended) return g;
  if (ended) lt_error_restore(&kept); /* else the first error of the capture is in the slot */
  lt_error_keep(&kept);
  b->graphs.destroy(g);
  lt_error_restore(&kept);
  return NULL;
}

/* Captures a part on a stream of its own. */
static bool capture(lt_Plan *p, int part) {
  const lt_Backend *b = lt_device_backend(p->device.type);
  int index = p->device.index;
  lt_Stream *side = b->streams.create(b, index, 0);
  lt_ErrorSlot kept;
  if (!side) return false;
  if (b->streams.set_current(b, index, side)) p->graph[part] = capture_on(p, part, side);
  lt_error_keep(&kept);
  (void)b->streams.set_current(b, index, p->stream);
  b->streams.destroy(side);
  lt_error_restore(&kept);
  return p->graph[part] != NULL;
}

/* Queues a copy between a slot of a call and its fixed memory. */
static bool copy(const lt_Plan *p, const lt_PlanSlot *to, const lt_PlanSlot *from, int64_t bytes) {
  if (!bytes || address_of(to) == address_of(from)) return true;
  return lt_device_backend(p->device.type)
      ->memory.copy(p->device, (char *)to->storage->data + to->offset, p->device, address_of(from),
                    (size_t)bytes, p->stream, true);
}

/* Copies what the part reads, replays its graph, and copies what it makes. */
static bool replay(lt_Plan *p, int part, const lt_PlanSlot *slot) {
  const lt_Backend *b = lt_device_backend(p->device.type);
  for (int i = 0; i < p->nslots; i++)
    if (slot[i].storage && p->slot_part[i] != part && !is_captured(p, i) && i != p->saved_slot &&
        !copy(p, &p->fixed[i], &slot[i], p->slot_bytes[i]))
      return false;
  if (!b->graphs.replay(p->graph[part], p->stream)) return false;
  for (int i = 0; i < p->nslots; i++)
    if (p->slot_part[i] == part && !copy(p, &slot[i], &p->fixed[i], p->slot_bytes[i])) return false;
  for (int i = 0; part == LT_FORWARD && i < p->ncaptured; i++)
    if (p->wrote[i]) atomic_fetch_add(&slot[p->ninputs + i].storage->version, 1);
  lt_plan_note_streams(p, slot);
  return lt_check_interrupt();
}

/* Returns whether the part has a graph for these slots; makes it if it is time to. */
static bool has_graph(lt_Plan *p, int part, const lt_PlanSlot *slot) {
  if (!p->graphs || p->no_graph[0] || lt_thread()->capturing ||
      lt_stream_current(p->device) != p->stream)
    return false;
  if (!p->ran[part]) { /* libraries and kernels get ready */
    p->ran[part] = true;
    return false;
  }
  if (!p->fixed && !make_fixed(p)) {
    refuse(p, lt_error());
    return false;
  }
  if (p->counts.gradients && slot[p->saved_slot].storage != p->fixed[p->saved_slot].storage)
    return false;
  if (!same_captured(p, slot)) {
    if (part == LT_BACKWARD) return false;
    drop_graphs(p);
  }
  if (p->graph[part]) return true;
  if (++p->captures[part] > MOST_CAPTURES) {
    refuse(p, "the captured tensors change from call to call");
    return false;
  }
  fix_captured(p, slot);
  if (capture(p, part)) return true;
  if (!lt_stopped()) refuse(p, lt_error());
  return false;
}

bool lt_plan_run_part(lt_Plan *p, int part, const lt_PlanSlot *slot) {
  return has_graph(p, part, slot) ? replay(p, part, slot) : lt_plan_run_steps(p, part, slot);
}
