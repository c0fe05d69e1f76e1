/* images.c: PNG and JPEG for lutra.vision.io, and strings of the bytes of tensors. The formats are
 * implemented in src/tensor/io. */
#include "bindings.h"
#include "io/image.h"

/* Raises an error unless the elements of t can be read on the CPU in order. */
static void check_memory(lua_State *L, const char *name, const lt_Tensor *t) {
  if (lt_tensor_device(t).type != LT_DEVICE_cpu || !lt_tensor_is_contiguous(t))
    lt_lua_error(L, "%s: expected a contiguous tensor on the CPU for argument 'input'", name);
}

/* Raises an error unless t is a uint8 tensor of `ndim` dimensions that check_memory accepts. */
static void check_bytes(lua_State *L, const char *name, const lt_Tensor *t, int ndim) {
  if (t->dtype != LT_uint8 || t->ndim != ndim)
    lt_lua_error(L,
                 "%s: expected a uint8 tensor of %d dimensions for argument 'input', got %s of "
                 "shape %s",
                 name, ndim, lt_dtype_name(t->dtype), lt_shape_text(t->ndim, t->shape));
  check_memory(L, name, t);
}

/* Returns the bytes at index 1: a string, or a contiguous uint8 vector on the CPU. */
static const void *bytes_at(lua_State *L, const char *name, size_t *n) {
  if (lua_type(L, 1) == LUA_TSTRING) return lua_tolstring(L, 1, n);
  lt_Tensor *t = lt_lua_check(L, 1, name, "input");
  check_bytes(L, name, t, 1);
  *n = (size_t)t->numel;
  return lt_tensor_data(t);
}

typedef lt_Tensor *Decoder(const void *bytes, size_t n, lt_ImageMode mode);
typedef lt_Tensor *Encoder(const lt_Tensor *image, int number);

static int push_decoded(lua_State *L, const char *name, Decoder *decode) {
  size_t n;
  lt_ImageMode mode = (lt_ImageMode)luaL_checkinteger(L, 2);
  lt_lua_enter(L, lt_lua_state(L));
  lt_Box *box = lt_lua_box(L);
  const void *bytes = bytes_at(L, name, &n);
  box->tensor = decode(bytes, n, mode);
  if (!box->tensor) lt_lua_fail(L, name);
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* `channels` has bit n where the format has images of n channels. */
static int push_encoded(lua_State *L, const char *name, Encoder *encode, int channels) {
  int number = (int)luaL_checkinteger(L, 2);
  lt_lua_enter(L, lt_lua_state(L));
  lt_Box *box = lt_lua_box(L);
  lt_Tensor *image = lt_lua_check(L, 1, name, "input");
  check_bytes(L, name, image, 3);
  if (image->numel == 0 || image->shape[2] > 4 || !(channels >> image->shape[2] & 1))
    lt_lua_error(L, "%s: expected an image {H, W, C} with %s channels for argument 'input', got %s",
                 name, channels & 1 << 4 ? "1 to 4" : "1 or 3",
                 lt_shape_text(image->ndim, image->shape));
  box->tensor = encode(image, number);
  if (!box->tensor) lt_lua_fail(L, name);
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* _decode_png(bytes, mode) -> uint8 {H, W, C}; modes by their numbers */
static int decode_png(lua_State *L) { return push_decoded(L, "decode_png", lt_png_decode); }
/* _decode_jpeg(bytes, mode) -> uint8 {H, W, C} */
static int decode_jpeg(lua_State *L) { return push_decoded(L, "decode_jpeg", lt_jpeg_decode); }
/* _encode_png(image, level) -> the bytes of uint8 {H, W, C} */
static int encode_png(lua_State *L) {
  return push_encoded(L, "encode_png", lt_png_encode, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4);
}
/* _encode_jpeg(image, quality) -> the bytes of uint8 {H, W, C} */
static int encode_jpeg(lua_State *L) {
  return push_encoded(L, "encode_jpeg", lt_jpeg_encode, 1 << 1 | 1 << 3);
}

/* _image_libraries() -> names of the libraries for PNG and JPEG; false for a missing one */
static int image_libraries(lua_State *L) {
  const char *names[] = {lt_png_name(), lt_jpeg_name()};
  for (int i = 0; i < 2; i++) {
    if (names[i])
      lua_pushstring(L, names[i]);
    else
      lua_pushboolean(L, 0);
  }
  return 2;
}

/* _bytes(tensor) -> a string of the memory of a contiguous tensor on the CPU */
static int bytes_of(lua_State *L) {
  lt_lua_enter(L, lt_lua_state(L));
  lt_Tensor *t = lt_lua_push_alias(L, 1, "_bytes", "tensor");
  check_memory(L, "_bytes", t);
  lua_pushlstring(L, lt_tensor_data(t), (size_t)t->numel * lt_dtype_size(t->dtype));
  return 1;
}

void lt_lua_open_images(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"_decode_png", decode_png},
                                    {"_decode_jpeg", decode_jpeg},
                                    {"_encode_png", encode_png},
                                    {"_encode_jpeg", encode_jpeg},
                                    {"_bytes", bytes_of},
                                    {"_image_libraries", image_libraries},
                                    {NULL, NULL}};
  (void)methods;
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
