/* image.h: PNG by libpng and JPEG by libjpeg-turbo, which are loaded when they are first used.
 *
 * Images are untrusted: the sizes in a header are limited, and must be possible for the number of
 * bytes, before memory is allocated. A function that fails returns NULL with the reason in the
 * error slot, "<function>: <why>", and leaks nothing. The libraries never end the process. Thread
 * safe.
 */
#ifndef LT_IMAGE_H
#define LT_IMAGE_H

#include "lutra.h"

/* What a reader converts an image to, as torchvision's ImageReadMode. */
typedef enum lt_ImageMode {
  LT_IMAGE_UNCHANGED,
  LT_IMAGE_GRAY,
  LT_IMAGE_GRAY_ALPHA,
  LT_IMAGE_RGB,
  LT_IMAGE_RGB_ALPHA
} lt_ImageMode;

enum { LT_IMAGE_SIDE = 1 << 15 };          /* the largest width and height */
#define LT_IMAGE_PIXELS ((int64_t)1 << 28) /* the largest product of both */

/* Decodes a PNG image to uint8 {H, W, C}. 16 bits are reduced to 8, palettes become colors. */
lt_Tensor *lt_png_decode(const void *bytes, size_t n, lt_ImageMode mode);
/* Encodes uint8 {H, W, C} with 1 to 4 channels on the CPU, at a level from 0 to 9, as a vector of
 * bytes. */
lt_Tensor *lt_png_encode(const lt_Tensor *image, int level);
/* Returns the library's name and version; NULL when it is missing. Loads it. */
const char *lt_png_name(void);

/* Decodes a JPEG image to uint8 {H, W, C}, C is 1 or 3. CMYK is an error. */
lt_Tensor *lt_jpeg_decode(const void *bytes, size_t n, lt_ImageMode mode);
/* Encodes uint8 {H, W, C} with 1 or 3 channels on the CPU, with a quality from 1 to 100, as a
 * vector of bytes. */
lt_Tensor *lt_jpeg_encode(const lt_Tensor *image, int quality);
const char *lt_jpeg_name(void);

#endif
