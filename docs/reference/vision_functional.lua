-- Examples of lt.vision.transforms.functional.
local lt = require "lutra"

-- An image: uint8 {C, H, W}
local image = lt.arange(0, 3 * 4 * 6 - 1):reshape(3, 4, 6):to "uint8"

-- Layouts and dtypes
print(lt.vision.transforms.functional.to_tensor(lt.zeros{8, 6, 3, dtype = "uint8"}).shape)  --> {3, 8, 6}
print(lt.vision.transforms.functional.pil_to_tensor(image:permute(2, 3, 1)).dtype)  --> uint8
print(lt.vision.transforms.functional.to_image(image[1]).shape)  --> {1, 4, 6}
print(lt.vision.transforms.functional.to_dtype(image, "float32", true):max())  --> tensor(0.2784)
print(lt.vision.transforms.functional.convert_image_dtype(image, "int16").dtype)  --> int16

-- Normalization of each channel
local x = lt.vision.transforms.functional.to_tensor(image)
print(lt.vision.transforms.functional.normalize(x, {0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}).shape)

-- Sizes
print(table.unpack(lt.vision.transforms.functional.get_dimensions(image)))  --> 3	4	6
print(table.unpack(lt.vision.transforms.functional.get_image_size(image)))  --> 6	4
print(lt.vision.transforms.functional.resize(image, {8, 8}).shape)  --> {3, 8, 8}
print(lt.vision.transforms.functional.resize(image, 2, "bicubic").shape)  --> {3, 2, 3}

-- Interpolation modes: strings
local modes = {lt.vision.transforms.functional.InterpolationMode.NEAREST,
  lt.vision.transforms.functional.InterpolationMode.NEAREST_EXACT,
  lt.vision.transforms.functional.InterpolationMode.BILINEAR,
  lt.vision.transforms.functional.InterpolationMode.BICUBIC}
print(table.concat(modes, " "))  --> nearest nearest-exact bilinear bicubic

-- Crops: offsets count from 0
print(lt.vision.transforms.functional.crop(image, 1, 2, 2, 3)[{1, 1, 1}]:item())  --> 8
print(lt.vision.transforms.functional.center_crop(image, {2, 2}).shape)  --> {3, 2, 2}
print(lt.vision.transforms.functional.resized_crop(image, 0, 0, 2, 2, {4, 4}).shape)  --> {3, 4, 4}
print(#lt.vision.transforms.functional.five_crop(image, 2))  --> 5
print(#lt.vision.transforms.functional.ten_crop(image, 2))  --> 10

-- Flips and borders
print(lt.vision.transforms.functional.horizontal_flip(image)[{1, 1, 1}]:item())  --> 5
print(lt.vision.transforms.functional.hflip(image)[{1, 1, 1}]:item())  --> 5
print(lt.vision.transforms.functional.vertical_flip(image)[{1, 1, 1}]:item())  --> 18
print(lt.vision.transforms.functional.vflip(image)[{1, 1, 1}]:item())  --> 18
print(lt.vision.transforms.functional.pad(image, {1, 2}, 0, "edge").shape)  --> {3, 8, 8}

-- Warps
print(lt.vision.transforms.functional.rotate(image, 90, {expand = true}).shape)  --> {3, 6, 4}
print(lt.vision.transforms.functional.affine(image, 10, {1, 0}, 1.2, {5, 0}).shape)  --> {3, 4, 6}
local from, to = {{0, 0}, {5, 0}, {5, 3}, {0, 3}}, {{1, 0}, {5, 1}, {5, 3}, {0, 2}}
print(lt.vision.transforms.functional.perspective(image, from, to).shape)  --> {3, 4, 6}

-- Colors
print(lt.vision.transforms.functional.adjust_brightness(image, 2):max():item())  --> 142
print(lt.vision.transforms.functional.adjust_contrast(image, 0.5).dtype)  --> uint8
print(lt.vision.transforms.functional.adjust_saturation(image, 0).shape)  --> {3, 4, 6}
print(lt.vision.transforms.functional.adjust_hue(image, 0.25).shape)  --> {3, 4, 6}
print(lt.vision.transforms.functional.adjust_gamma(image, 0.5).dtype)  --> uint8
print(lt.vision.transforms.functional.adjust_sharpness(image, 2).shape)  --> {3, 4, 6}
print(lt.vision.transforms.functional.rgb_to_grayscale(image).shape)  --> {1, 4, 6}
print(lt.vision.transforms.functional.to_grayscale(image, 3).shape)  --> {3, 4, 6}
print(lt.vision.transforms.functional.grayscale_to_rgb(image[{{1, 1}}]).shape)  --> {3, 4, 6}
print(lt.vision.transforms.functional.invert(image)[{1, 1, 1}]:item())  --> 255
print(lt.vision.transforms.functional.posterize(image, 2):max():item())  --> 64
print(lt.vision.transforms.functional.solarize(image, 10):max():item())  --> 245
print(lt.vision.transforms.functional.autocontrast(image):max():item())  --> 255
print(lt.vision.transforms.functional.equalize(image).shape)  --> {3, 4, 6}
print(lt.vision.transforms.functional.permute_channels(image, {3, 2, 1})[{1, 1, 1}]:item())  --> 48

-- Blur, noise, erasing
print(lt.vision.transforms.functional.gaussian_blur(image, 3, 0.5).dtype)  --> uint8
print(lt.vision.transforms.functional.gaussian_noise(image).shape)  --> {3, 4, 6}
print(lt.vision.transforms.functional.erase(image, 0, 0, 2, 3, 0):sum():item())  --> 2052
