/* png.c: PNG images by libpng 1.6. The prototypes are those of its manual; png_struct and
 * png_info are opaque. Its errors jump to the setjmp of the call. */
#include "image.h"
#include "dynamic_library.h"
#include "file.h"

#include <pthread.h>
#include <setjmp.h>

#define DECODE "decode_png"
#define ENCODE "encode_png"

/* Constants of png.h. */
enum { COLOR = 2, ALPHA = 4 }; /* bits of the color type */
enum { GRAY = 0, RGB = 2, GRAY_ALPHA = 4, RGB_ALPHA = 6 };
enum { FILLER_AFTER = 1, INFO_TRNS = 0x10, SILENT = 1 };
enum { CHUNK_BYTES = 8 << 20, CHUNKS = 1000 }; /* limits of chunks that are not pixels */
/* zlib expands by at most 1032; the rest is for the checksums of tiny images. */
enum { EXPANSION = 1032, SLACK = 1 << 16 };

typedef void Callback(void *png, uint8_t *bytes, size_t n);
typedef void Report(void *png, const char *text);

/* Functions: name without "png_", result, parameters. */
#define FUNCTIONS(F)                                                                               \
  F(get_libpng_ver, const char *, (const void *png))                                               \
  F(create_read_struct, void *, (const char *version, void *user, Report *error, Report *warning)) \
  F(create_write_struct, void *,                                                                   \
    (const char *version, void *user, Report *error, Report *warning))                             \
  F(create_info_struct, void *, (void *png))                                                       \
  F(destroy_read_struct, void, (void **png, void **info, void **end_info))                         \
  F(destroy_write_struct, void, (void **png, void **info))                                         \
  F(set_read_fn, void, (void *png, void *user, Callback *read))                                    \
  F(set_write_fn, void, (void *png, void *user, Callback *write, void (*flush)(void *png)))        \
  F(get_io_ptr, void *, (const void *png))                                                         \
  F(get_error_ptr, void *, (const void *png))                                                      \
  F(error, void, (const void *png, const char *text))                                              \
  F(set_user_limits, void, (void *png, uint32_t width, uint32_t height))                           \
  F(set_chunk_cache_max, void, (void *png, uint32_t chunks))                                       \
  F(set_chunk_malloc_max, void, (void *png, size_t bytes))                                         \
  F(read_info, void, (void *png, void *info))                                                      \
  F(get_IHDR, uint32_t,                                                                            \
    (const void *png, const void *info, uint32_t *width, uint32_t *height, int *depth, int *color, \
     int *interlace, int *compression, int *filter))                                               \
  F(get_valid, uint32_t, (const void *png, const void *info, uint32_t flag))                       \
  F(set_expand, void, (void *png))                                                                 \
  F(set_scale_16, void, (void *png))                                                               \
  F(set_strip_alpha, void, (void *png))                                                            \
  F(set_add_alpha, void, (void *png, uint32_t filler, int flags))                                  \
  F(set_gray_to_rgb, void, (void *png))                                                            \
  F(set_rgb_to_gray, void, (void *png, int on_error, double red, double green))                    \
  F(set_interlace_handling, int, (void *png))                                                      \
  F(read_update_info, void, (void *png, void *info))                                               \
  F(get_channels, uint8_t, (const void *png, const void *info))                                    \
  F(get_rowbytes, size_t, (const void *png, const void *info))                                     \
  F(read_row, void, (void *png, uint8_t *row, uint8_t *display))                                   \
  F(read_end, void, (void *png, void *info))                                                       \
  F(set_IHDR, void,                                                                                \
    (void *png, void *info, uint32_t width, uint32_t height, int depth, int color, int interlace,  \
     int compression, int filter))                                                                 \
  F(set_compression_level, void, (void *png, int level))                                           \
  F(write_info, void, (void *png, void *info))                                                     \
  F(write_row, void, (void *png, const uint8_t *row))                                              \
  F(write_end, void, (void *png, void *info))

#define FIELD(name, result, parameters) result(*name) parameters;
static struct { FUNCTIONS(FIELD) } png;
#undef FIELD

static bool found;
static char title[64]; /* "libpng 1.6.39" */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- loading --------------------------------------------------------------------------------- */

static bool read_functions(void *library) {
  bool ok = true;
#define FIND(name, result, parameters) ok = ok && lt_library_find(library, "png_" #name, &png.name);
  FUNCTIONS(FIND)
#undef FIND
  return ok;
}

static void load(void) {
  static const char *const names[] = {"libpng16.so.16", "libpng16.16.dylib", "libpng16.dylib",
                                      NULL};
  found = lt_library_load("LUTRA_PNG", names, read_functions);
  if (found) snprintf(title, sizeof title, "libpng %s", png.get_libpng_ver(NULL));
}

const char *lt_png_name(void) {
  pthread_once(&once, load);
  return found ? title : NULL;
}

static bool loaded(const char *function) {
  return lt_png_name() || (lt_error_set("%s: cannot load libpng 1.6: it was not found\nhint: "
                                        "install the Debian package libpng16-16",
                                        function),
                           false);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* One call of this file: the library's objects, and what is read or written. */
typedef struct Work {
  jmp_buf jump;
  const char *failure; /* the start of messages */
  void *png, *info;
  const uint8_t *in; /* the bytes that are not read yet */
  size_t left;
  lt_ImageMode mode;
  lt_Tensor *image;
  uint8_t *out; /* malloc'ed */
  size_t used, room;
  bool memory; /* out of memory: the error is set */
} Work;

static void fail(void *p, const char *text) {
  Work *w = png.get_error_ptr(p);
  if (!w->memory) lt_error_set("%s: %s", w->failure, text);
  longjmp(w->jump, 1);
}

static void ignore(void *p, const char *text) { (void)p, (void)text; }

/* Fails with the error that is set already. */
static void fail_as_set(Work *w) {
  w->memory = true;
  png.error(w->png, "");
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_bytes(void *p, uint8_t *to, size_t n) {
  Work *w = png.get_io_ptr(p);
  if (n > w->left) png.error(p, "it is truncated");
  memcpy(to, w->in, n);
  w->in += n;
  w->left -= n;
}

/* Asks for 8 bits and the channels of the mode. */
static void set_conversions(Work *w, int color) {
  bool transparent = (color & ALPHA) || png.get_valid(w->png, w->info, INFO_TRNS);
  bool to_gray = w->mode == LT_IMAGE_GRAY || w->mode == LT_IMAGE_GRAY_ALPHA;
  bool to_color = w->mode == LT_IMAGE_RGB || w->mode == LT_IMAGE_RGB_ALPHA;
  bool to_alpha = w->mode == LT_IMAGE_GRAY_ALPHA || w->mode == LT_IMAGE_RGB_ALPHA;
  png.set_expand(w->png);
  png.set_scale_16(w->png);
  if ((color & COLOR) && to_gray) png.set_rgb_to_gray(w->png, SILENT, 0.2989, 0.587);
  if (!(color & COLOR) && to_color) png.set_gray_to_rgb(w->png);
  if (transparent && (to_gray || to_color) && !to_alpha) png.set_strip_alpha(w->png);
  if (!transparent && to_alpha) png.set_add_alpha(w->png, 255, FILLER_AFTER);
}

/* Fails unless so few bytes can contain so many pixels. */
static void check_size(Work *w, uint32_t width, uint32_t height, int depth, int color, size_t n) {
  int channels = color & 1 ? 1 : ((color & COLOR) ? 3 : 1) + ((color & ALPHA) ? 1 : 0);
  uint64_t row = ((uint64_t)width * (uint64_t)channels * (uint64_t)depth + 7) / 8 + 1;
  if ((int64_t)width * height > LT_IMAGE_PIXELS) png.error(w->png, "it has more than 2^28 pixels");
  if (row * height > (uint64_t)n * EXPANSION + SLACK)
    png.error(w->png, "it is truncated: it has too few bytes for its size");
}

static void read_image(Work *w) {
  uint32_t width, height;
  int depth, color, interlace, compression, filter;
  size_t n = w->left;
  png.set_read_fn(w->png, w, read_bytes);
  png.set_user_limits(w->png, LT_IMAGE_SIDE, LT_IMAGE_SIDE);
  png.set_chunk_cache_max(w->png, CHUNKS);
  png.set_chunk_malloc_max(w->png, CHUNK_BYTES);
  png.read_info(w->png, w->info);
  png.get_IHDR(w->png, w->info, &width, &height, &depth, &color, &interlace, &compression, &filter);
  check_size(w, width, height, depth, color, n);
  set_conversions(w, color);
  int passes = png.set_interlace_handling(w->png);
  png.read_update_info(w->png, w->info);
  int64_t channels = png.get_channels(w->png, w->info);
  int64_t shape[] = {height, width, channels};
  if (png.get_rowbytes(w->png, w->info) != (size_t)(width * channels))
    png.error(w->png, "its rows have another size than its pixels");
  w->image = lt_empty(LT_uint8, lt_cpu(), 3, shape);
  if (!w->image) fail_as_set(w);
  uint8_t *pixels = lt_tensor_data(w->image);
  if (passes > 1) memset(pixels, 0, (size_t)(height * width * channels));
  for (int pass = 0; pass < passes; pass++)
    for (uint32_t y = 0; y < height; y++)
      png.read_row(w->png, pixels + (size_t)y * width * (size_t)channels, NULL);
  png.read_end(w->png, NULL);
}

/* Runs `work` between the library's create and destroy; false when it jumped out. */
static bool run(Work *w, void (*work)(Work *)) {
  if (setjmp(w->jump)) return false;
  work(w);
  return true;
}

lt_Tensor *lt_png_decode(const void *bytes, size_t n, lt_ImageMode mode) {
  if (!loaded(DECODE)) return NULL;
  Work w = {.failure = DECODE ": cannot decode the image", .in = bytes, .left = n, .mode = mode};
  w.png = png.create_read_struct(png.get_libpng_ver(NULL), &w, fail, ignore);
  w.info = w.png ? png.create_info_struct(w.png) : NULL;
  bool ok = false;
  if (w.info)
    ok = run(&w, read_image);
  else
    lt_error_memory(DECODE ": out of memory");
  if (w.png) png.destroy_read_struct(&w.png, &w.info, NULL);
  if (ok) return w.image;
  lt_release(w.image);
  return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_bytes(void *p, uint8_t *from, size_t n) {
  Work *w = png.get_io_ptr(p);
  if (w->room - w->used < n) {
    size_t room = w->room + n > 2 * w->room ? w->room + n + 4096 : 2 * w->room;
    uint8_t *out = realloc(w->out, room);
    if (!out) {
      lt_error_memory(ENCODE ": out of memory");
      fail_as_set(w);
    }
    w->out = out;
    w->room = room;
  }
  memcpy(w->out + w->used, from, n);
  w->used += n;
}

static void flush_bytes(void *p) { (void)p; }

static void write_image(Work *w) {
  static const int colors[] = {GRAY, GRAY_ALPHA, RGB, RGB_ALPHA};
  const int64_t *shape = w->image->shape;
  png.set_write_fn(w->png, w, write_bytes, flush_bytes);
  png.set_user_limits(w->png, LT_IMAGE_SIDE, LT_IMAGE_SIDE);
  png.set_IHDR(w->png, w->info, (uint32_t)shape[1], (uint32_t)shape[0], 8, colors[shape[2] - 1], 0,
               0, 0);
  png.write_info(w->png, w->info);
  const uint8_t *row = lt_tensor_data(w->image);
  for (int64_t y = 0; y < shape[0]; y++, row += shape[1] * shape[2]) png.write_row(w->png, row);
  png.write_end(w->png, w->info);
}

lt_Tensor *lt_png_encode(const lt_Tensor *image, int level) {
  if (!loaded(ENCODE)) return NULL;
  lt_Tensor *bytes = NULL;
  Work w = {.failure = ENCODE ": cannot encode the image", .image = lt_file_bytes(ENCODE, image)};
  if (!w.image) return NULL;
  w.png = png.create_write_struct(png.get_libpng_ver(NULL), &w, fail, ignore);
  w.info = w.png ? png.create_info_struct(w.png) : NULL;
  if (w.info) {
    png.set_compression_level(w.png, level);
    if (run(&w, write_image)) {
      int64_t n = (int64_t)w.used;
      bytes = lt_empty(LT_uint8, lt_cpu(), 1, &n);
      if (bytes) memcpy(lt_tensor_data(bytes), w.out, w.used);
    }
  } else {
    lt_error_memory(ENCODE ": out of memory");
  }
  if (w.png) png.destroy_write_struct(&w.png, &w.info);
  free(w.out);
  lt_release(w.image);
  return bytes;
}
