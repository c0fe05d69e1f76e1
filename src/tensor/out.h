/* out.h: results that are written into tensors of the caller, `out =`. Dispatch allocates no result
 * that a kernel can write directly into the caller's tensor; others are copied at the end. */
#ifndef LT_OUT_H
#define LT_OUT_H

#include "kernel.h"

/* Checks the tensors that the caller gives, before the call: their number and the op's results. */
bool lt_out_accept(const lt_Call *c);
/* Checks the inferred results of a call against the given tensors: device, dtype, shape, overlap,
 * gradients. True when there are none. */
bool lt_out_check(const lt_Call *c);
/* Returns true when the call can write result i directly into the given tensor. */
bool lt_out_is_direct(const lt_Call *c, int i);
/* Copies the results that were not written directly into the given tensors, which become the call's
 * results. Changes none when one does not fit. */
bool lt_out_store(lt_Call *c);

#endif
