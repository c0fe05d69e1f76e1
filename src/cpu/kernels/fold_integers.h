/* fold_integers.h: the loops of fold_body.h for one type of integers T, of which U is the unsigned
 * one, and LOWEST and HIGHEST are the limits. Complex types, which use none of these, are like
 * them. */
#define ROW_FOLD        LOOPS
#define ROW_FOLD_WIDE   NOTHING
#define ENTRY_FOLD      ENTRY
#define ENTRY_FOLD_WIDE NOTHING
#include "fold_body.h"
#undef U
#undef LOWEST
#undef HIGHEST
