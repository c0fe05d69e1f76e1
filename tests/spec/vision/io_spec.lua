-- lt.vision.io: every kind of PNG and JPEG file against torchvision (tools/golden/image_files.py),
-- what is written, damaged files, and missing libraries.

local lt = require "lutra"
local core = require "lutra.core"
local golden = require "golden_support"
local program = require "program_support"

local io_library = lt.vision.io
local png, jpeg = core._image_libraries()
local has = {png = png, jpeg = jpeg}
local names = {png = "libpng", jpeg = "libjpeg-turbo"}

-- Defines a test that needs a library.
local function test(format, name, f)
  it(name, function()
    if not has[format] then return pending(names[format] .. " is not installed") end
    f()
  end)
end

local function unhex(text)
  return (text:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end))
end

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

local function contains(text, part) assert.is_truthy(text:find(part, 1, true), text) end

local files = golden.file "image_files"

describe("lt.vision.io decodes", function()
  for _, file in ipairs(files) do
    test(file.format, file.format .. ": " .. file.name, function()
      local bytes = unhex(file.bytes)
      for mode, t in pairs(file.modes) do
        local expected = lt.tensor(t.data, {dtype = t.dtype}):reshape(t.shape)
        local image = io_library["decode_" .. file.format](bytes, mode)
        assert.equal(tostring(expected.shape), tostring(image.shape), mode)
        assert.equal("uint8", image.dtype)
        local difference = (image:to "int32" - expected:to "int32"):abs():max():item()
        -- versions of libjpeg-turbo differ by rounding
        assert.is_true(difference <= (file.format == "jpeg" and 2 or mode:find "GRAY" and 1 or 0),
          mode .. ": " .. difference)
        assert.is_true(lt.equal(image, io_library.decode_image(bytes, mode)))
        local vector = lt.frombuffer(bytes, {dtype = "uint8"})
        assert.is_true(lt.equal(image, io_library.decode_image(vector, mode)))
      end
    end)
  end

  test("jpeg", "no CMYK, and no alpha of JPEG", function()
    for _, file in ipairs(files) do
      if file.name == "cmyk" then
        contains(message_of(io_library.decode_jpeg, unhex(file.bytes)),
          "decode_jpeg: cannot decode the image: its colors are CMYK, which is not supported")
      elseif file.format == "jpeg" then
        contains(message_of(io_library.decode_jpeg, unhex(file.bytes), "RGBA"),
          "decode_jpeg: expected mode 'UNCHANGED', 'GRAY' or 'RGB'")
      end
    end
  end)
end)

describe("damaged images are errors:", function()
  for _, format in ipairs{"png", "jpeg"} do
    test(format, format, function()
      for _, file in ipairs(files) do
        local bytes = unhex(file.bytes)
        if file.format == format and file.name ~= "cmyk" then
          for n = 0, #bytes - 1, 7 do
            local ok, message = pcall(io_library["decode_" .. format], bytes:sub(1, n))
            if not ok then
              contains(message, "decode_" .. format .. ": cannot decode the image: ")
            else -- only what follows the pixels may be missing
              assert.is_true(format == "jpeg" and n > #bytes - 16, file.name .. ": " .. n)
            end
          end
          for i = 1, #bytes, 5 do -- any other byte: an image or an error
            local other = bytes:sub(1, i - 1) .. string.char(bytes:byte(i) ~ 0x55)
              .. bytes:sub(i + 1)
            pcall(io_library["decode_" .. format], other)
          end
        end
      end
    end)
  end

  test("png", "sizes that so few bytes cannot have", function()
    local bytes = unhex(files[1].bytes)
    for _, size in ipairs{{1 << 14, 1 << 14}, {1 << 15, 1 << 15}, {0x7fffffff, 9}, {0, 9}} do
      local head = bytes:sub(1, 16) .. (">I4I4"):pack(size[1], size[2]) .. bytes:sub(25, 29)
      local other = head .. "\0\0\0\0" .. bytes:sub(34)
      contains(message_of(io_library.decode_png, other), "decode_png: cannot decode the image: ")
    end
  end)

  for format, decode in pairs{png = io_library.decode_png, jpeg = io_library.decode_jpeg} do
    test(format, "no bytes", function()
      contains(message_of(decode, lt.empty(0, {dtype = "uint8"})),
        ("decode_%s: cannot decode the image: "):format(format))
    end)
  end

  it("other formats", function()
    contains(message_of(io_library.decode_image, "GIF89a"),
      "decode_image: cannot decode the image: it is neither PNG nor JPEG")
    contains(message_of(io_library.decode_png, lt.ones(3)),
      "decode_png: expected a uint8 tensor of 1 dimension for argument 'input'")
  end)

  it("files that are no images, with their path", function()
    contains(message_of(io_library.read_image, "/nowhere/x.png"),
      'read_image: cannot open "/nowhere/x.png": ')
    contains(message_of(io_library.read_image, "/tmp"),
      'read_image: cannot read "/tmp": it is a directory')
    contains(message_of(io_library.read_file, "/dev/zero"),
      'read_file: cannot read "/dev/zero": it is not a regular file')
    local path = os.tmpname()
    contains(message_of(io_library.read_image, path),
      ('read_image: cannot decode "%s": it is neither PNG nor JPEG'):format(path))
    os.remove(path)
  end)
end)

describe("lt.vision.io writes", function()
  test("png", "PNG files that it reads", function()
    for channels = 1, 4 do
      local image = lt.randint(0, 255, {channels, 7, 5}, {dtype = "uint8"})
      for _, level in ipairs{0, 6, 9} do
        local bytes = io_library.encode_png(image, level)
        assert.equal("uint8", bytes.dtype)
        assert.is_true(lt.equal(image, io_library.decode_png(bytes)))
      end
    end
    local path = os.tmpname()
    local strided = lt.randint(0, 255, {6, 3, 4}, {dtype = "uint8"}):transpose(1, 2)
    io_library.write_png(strided, path)
    assert.is_true(lt.equal(strided, io_library.read_image(path)))
    assert.is_true(lt.equal(io_library.encode_png(strided), io_library.read_file(path)))
    lt.vision.utils.save_image(lt.rand(3, 1, 4, 4), path, {format = "png"})
    assert.equal("{3, 8, 20}", tostring(io_library.read_image(path).shape))
    os.remove(path)
  end)

  test("jpeg", "JPEG files that it reads", function()
    local ramp = (lt.arange(0, 39):reshape(1, 1, 40) * 5):expand(3, 30, 40):to "uint8"
    for _, image in ipairs{ramp, ramp[{{1, 1}}]} do
      local bytes = io_library.encode_jpeg(image, 95)
      local back = io_library.decode_image(bytes)
      assert.equal(tostring(image.shape), tostring(back.shape))
      assert.is_true((back:to "int32" - image:to "int32"):abs():max():item() <= 4)
      assert.is_true(#io_library.encode_jpeg(image, 10) < #bytes)
    end
  end)

  it("no other tensors", function()
    contains(message_of(io_library.encode_png, lt.ones(3, 2, 2)),
      "encode_png: expected a uint8 tensor for argument 'input', got \"float32\"")
    contains(message_of(io_library.encode_png, lt.ones{5, 2, 2, dtype = "uint8"}),
      "encode_png: expected shape {C, H, W} with 1 to 4 channels for argument 'input'")
    contains(message_of(io_library.encode_jpeg, lt.ones{2, 2, 2, dtype = "uint8"}),
      "encode_jpeg: expected shape {C, H, W} with 1 or 3 channels for argument 'input'")
    contains(message_of(io_library.encode_png, lt.ones{1, 2, 2, dtype = "uint8"}, 10),
      "encode_png: expected an integer from 0 to 9 for argument 'compression_level', got 10")
    contains(message_of(lt.vision.utils.save_image, lt.rand(3, 4, 4), "x.gif"),
      "save_image: expected a file name that ends in .png, .jpg or .jpeg")
  end)
end)

describe("without the libraries", function()
  it("lt.vision.io names the packages", function()
    local script = "print(pcall(lt.vision.io.decode_png, 'x')) "
      .. "print(pcall(lt.vision.io.encode_jpeg, lt.ones{3, 2, 2, dtype = 'uint8'}))"
    local result = program.shell(("LUTRA_PNG=0 LUTRA_JPEG=0 %s -e %s"):format(
      program.quote(program.program), program.quote(script)))
    contains(result.out, "decode_png: cannot load libpng 1.6: it was not found\nhint: install the "
      .. "Debian package libpng16-16")
    contains(result.out, "encode_jpeg: cannot load libjpeg-turbo: libturbojpeg was not found\n"
      .. "hint: install the Debian package libturbojpeg0")
  end)
end)
