/* worker.h: threads of the host that run ops beside its program, such as the workers of a
 * DataLoader: their ops run on one thread, and they have a default generator of their own. */
#ifndef LT_WORKER_H
#define LT_WORKER_H

#include "lutra.h"

/* Makes this thread a worker with `own` as its default generator, which stays valid meanwhile.
 * NULL: no longer. */
void lt_worker_begin(lt_Generator *own);
/* Returns the generator of this thread if it is a worker, else NULL. */
lt_Generator *lt_worker_generator(void);
/* Returns whether lt_interrupt_flag is set, and clears it; a worker leaves it to the program's
 * thread. */
bool lt_interrupt_take(void);

#endif
