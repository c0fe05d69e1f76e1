/* jpeg.c: JPEG images by libjpeg-turbo's TurboJPEG API, version 2: it returns errors, where the API
 * of libjpeg ends the process. */
#include "image.h"
#include "dynamic_library.h"
#include "file.h"

#include <pthread.h>

#define DECODE "decode_jpeg"
#define ENCODE "encode_jpeg"

/* Constants of turbojpeg.h. */
enum { PIXEL_RGB = 0, PIXEL_GRAY = 6 };
enum { SPACE_GRAY = 2, SPACE_CMYK = 3, SPACE_YCCK = 4 };
enum { SAMPLES_420 = 2, SAMPLES_GRAY = 3 };
enum { ACCURATE_DCT = 4096, LIMIT_SCANS = 32768 };
/* A progressive image with more scans needs minutes for few bytes. */
enum { SCANS = 100 };
/* A block of 64 pixels has at least one bit; arithmetic coding needs less. */
enum { EXPANSION = 4096, SLACK = 1 << 16 };

/* Functions: name without "tj", result, parameters. */
#define FUNCTIONS(F)                                                                               \
  F(InitDecompress, void *, (void))                                                                \
  F(InitCompress, void *, (void))                                                                  \
  F(Destroy, int, (void *handle))                                                                  \
  F(DecompressHeader3, int,                                                                        \
    (void *handle, const uint8_t *bytes, unsigned long n, int *width, int *height, int *samples,   \
     int *space))                                                                                  \
  F(Decompress2, int,                                                                              \
    (void *handle, const uint8_t *bytes, unsigned long n, uint8_t *pixels, int width, int pitch,   \
     int height, int format, int flags))                                                           \
  F(Compress2, int,                                                                                \
    (void *handle, const uint8_t *pixels, int width, int pitch, int height, int format,            \
     uint8_t **bytes, unsigned long *n, int samples, int quality, int flags))                      \
  F(Free, void, (uint8_t * bytes))                                                                 \
  F(GetErrorStr2, char *, (void *handle))

#define FIELD(name, result, parameters) result(*name) parameters;
static struct { FUNCTIONS(FIELD) } jpeg;
#undef FIELD

static bool found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool read_functions(void *library) {
  bool ok = true;
#define FIND(name, result, parameters) ok = ok && lt_library_find(library, "tj" #name, &jpeg.name);
  FUNCTIONS(FIND)
#undef FIND
  return ok;
}

static void load(void) {
  static const char *const names[] = {"libturbojpeg.so.0", "libturbojpeg.0.dylib",
                                      "libturbojpeg.dylib", NULL};
  found = lt_library_load("LUTRA_JPEG", names, read_functions);
}

const char *lt_jpeg_name(void) {
  pthread_once(&once, load);
  return found ? "libjpeg-turbo" : NULL;
}

static bool loaded(const char *function) {
  return lt_jpeg_name() || (lt_error_set("%s: cannot load libjpeg-turbo: libturbojpeg was not "
                                         "found\nhint: install the Debian package libturbojpeg0",
                                         function),
                            false);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the number of scans: markers FF DA outside of segments; at most SCANS + 1. */
static int count_scans(const uint8_t *bytes, size_t n) {
  int scans = 0;
  for (size_t i = 2; i + 3 < n && scans <= SCANS;) {
    uint8_t marker = bytes[i + 1];
    if (bytes[i] != 0xff || marker == 0xff) {
      i++;
      continue;
    }
    bool alone = marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8);
    if (marker == 0xd9) break;
    if (marker == 0xda) scans++;
    i += 2 + (alone ? 0 : (size_t)bytes[i + 2] << 8 | bytes[i + 3]);
  }
  return scans;
}

/* Returns true when a call's result is an image: after success, or after a warning that leaves it
 * complete. The library's error code does not tell: it says warning for an error after one. */
static bool is_complete(void *handle, int failed, const char **why) {
  if (!failed) return true;
  *why = jpeg.GetErrorStr2(handle);
  return strstr(*why, "extraneous bytes before") || strstr(*why, "unknown JFIF revision");
}

/* Reads and checks the header. `why`: the reason of a failure. */
static bool read_header(void *handle, const uint8_t *bytes, size_t n, int *width, int *height,
                        int *space, const char **why) {
  int samples;
  if (!is_complete(handle, jpeg.DecompressHeader3(handle, bytes, n, width, height, &samples, space),
                   why))
    return false;
  if (*width < 1 || *height < 1)
    *why = "it has no pixels";
  else if (*width > LT_IMAGE_SIDE || *height > LT_IMAGE_SIDE ||
           (int64_t)*width * *height > LT_IMAGE_PIXELS)
    *why = "it has more than 2^15 rows or columns, or more than 2^28 pixels";
  else if ((uint64_t)*width * (uint64_t)*height > (uint64_t)n * EXPANSION + SLACK)
    *why = "it is truncated: it has too few bytes for its size";
  else if (*space == SPACE_CMYK || *space == SPACE_YCCK)
    *why = "its colors are CMYK, which is not supported";
  else if (count_scans(bytes, n) > SCANS)
    *why = "it has more than 100 scans";
  else
    return true;
  return false;
}

/* Decodes with a handle of the library. */
static lt_Tensor *decode(void *handle, const uint8_t *bytes, size_t n, lt_ImageMode mode,
                         const char **why) {
  int width, height, space;
  if (!read_header(handle, bytes, n, &width, &height, &space, why)) return NULL;
  bool gray = mode == LT_IMAGE_GRAY || (mode == LT_IMAGE_UNCHANGED && space == SPACE_GRAY);
  int64_t shape[] = {height, width, gray ? 1 : 3};
  lt_Tensor *image = lt_empty(LT_uint8, lt_cpu(), 3, shape);
  if (!image) return NULL;
  memset(lt_tensor_data(image), 0, (size_t)image->numel);
  int failed = jpeg.Decompress2(handle, bytes, n, lt_tensor_data(image), width, 0, height,
                                gray ? PIXEL_GRAY : PIXEL_RGB, ACCURATE_DCT | LIMIT_SCANS);
  if (is_complete(handle, failed, why)) return image;
  lt_release(image);
  return NULL;
}

lt_Tensor *lt_jpeg_decode(const void *bytes, size_t n, lt_ImageMode mode) {
  if (!loaded(DECODE)) return NULL;
  if (mode == LT_IMAGE_GRAY_ALPHA || mode == LT_IMAGE_RGB_ALPHA)
    return lt_error_set(DECODE ": expected mode 'UNCHANGED', 'GRAY' or 'RGB': JPEG has no alpha");
  void *handle = jpeg.InitDecompress();
  if (!handle) return lt_error_memory(DECODE ": out of memory");
  const char *why = NULL;
  lt_Tensor *image = decode(handle, bytes, n, mode, &why);
  if (!image && why) lt_error_set(DECODE ": cannot decode the image: %s", why);
  jpeg.Destroy(handle);
  return image;
}

/* ---- writing --------------------------------------------------------------------------------- */

lt_Tensor *lt_jpeg_encode(const lt_Tensor *image, int quality) {
  if (!loaded(ENCODE)) return NULL;
  lt_Tensor *pixels = lt_file_bytes(ENCODE, image), *result = NULL;
  if (!pixels) return NULL;
  void *handle = jpeg.InitCompress();
  uint8_t *bytes = NULL;
  unsigned long n = 0;
  bool gray = pixels->shape[2] == 1;
  if (!handle) {
    lt_error_memory(ENCODE ": out of memory");
  } else if (jpeg.Compress2(handle, lt_tensor_data(pixels), (int)pixels->shape[1], 0,
                            (int)pixels->shape[0], gray ? PIXEL_GRAY : PIXEL_RGB, &bytes, &n,
                            gray ? SAMPLES_GRAY : SAMPLES_420, quality, ACCURATE_DCT) != 0) {
    lt_error_set(ENCODE ": cannot encode the image: %s", jpeg.GetErrorStr2(handle));
  } else {
    int64_t size = (int64_t)n;
    result = lt_empty(LT_uint8, lt_cpu(), 1, &size);
    if (result) memcpy(lt_tensor_data(result), bytes, n);
  }
  if (bytes) jpeg.Free(bytes);
  if (handle) jpeg.Destroy(handle);
  lt_release(pixels);
  return result;
}
