/* bodies.h: all bodies (each.h). C includes this header once for each T, without guards; the other
 * languages, in which bodies are templates, include it once. */
#include "grid_bodies.h"
#include "pad_bodies.h"
#include "pooling_bodies.h"
#include "resample_bodies.h"
#include "unfold_bodies.h"
