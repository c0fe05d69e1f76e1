/* launches.h: the launches that the message of a device's error names. A device reports an error
 * later than the launch that caused it, so the last ones are recorded. */
#ifndef LT_ACCEL_LAUNCHES_H
#define LT_ACCEL_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LT_LAUNCHES 4 /* launches that a message names */

typedef struct lt_LaunchNote {
  const char *kernel, *op; /* both strings live as long as the program */
  bool in_place;
} lt_LaunchNote;

/* Returns the note of a launch for the user's op that is running. */
lt_LaunchNote lt_launch_note(const char *kernel);
/* Writes the last `count` of `launched` launches, the last one first: "softmax (of softmax), scale,
 * binary (of add_)". Launch i, from 0, is at recent[i % LT_LAUNCHES]; earlier ones are counted. */
void lt_launches_text(const lt_LaunchNote recent[LT_LAUNCHES], uint64_t launched, uint64_t count,
                      char *text, size_t size);

#endif
