-- Writes small valid files into FOLDER/fuzz_NAME.corpus for each libFuzzer target fuzz_NAME.c,
-- which starts with them: random bytes are seldom the start of an image.
--
--   build/lutra tests/fuzz/seeds/write.lua FOLDER

local lt = require "lutra"
local files = require "lutra.files"

local folder = assert(arg[1], "expected a folder")

-- Returns the path of a seed of a target; its folder is created.
local function seed(target, name)
  local path = ("%s/fuzz_%s.corpus"):format(folder, target)
  assert(files.make(path))
  return ("%s/seed_%s"):format(path, name)
end

local function write(path, bytes)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(bytes))
end

-- The first byte of an input of the images' targets selects the mode, and for PNG whether sums are
-- corrected.
local MODES = 5
local libraries = {png = lt.vision.io.encode_png, jpeg = lt.vision.io.encode_jpeg}
for target, encode in pairs(libraries) do
  for channels = 1, 4 do
    local image = lt.randint(0, 255, {channels, 17, 20}, {dtype = "uint8"})
    local ok, bytes = pcall(encode, image)
    for mode = 0, ok and 2 * MODES - 1 or -1 do
      local path = seed(target, channels .. "_" .. mode)
      write(path, string.char(mode) .. string.char(table.unpack(bytes:totable())))
    end
  end
end

for i, dtype in ipairs{"float32", "uint8", "int64", "bool", "complex64"} do
  lt.save_npy(seed("npy", dtype), lt.ones({i, 3}, {dtype = dtype}))
end
lt.save_safetensors(seed("safetensors", "some"), {a = lt.ones(2, 3), b = lt.ones(3):half(),
  c = lt.zeros(0)}, {note = "x"})
write(seed("idx", "bytes"), "\0\0\8\2\0\0\0\2\0\0\0\3abcdef")
write(seed("idx", "int16"), "\0\0\11\1\0\0\0\2abcd")

-- A signed message (HMAC-SHA256 of its parts with the key "secret", by OpenSSL), one without a
-- signature, and one with a part missing.
local function frames(...)
  local list = {}
  for i, frame in ipairs{...} do list[i] = string.char(#frame) .. frame end
  return table.concat(list)
end
local header = '{"msg_id":"1","msg_type":"shutdown_request","version":"5.3"}'
write(seed("kernel", "signed"), frames("id", "<IDS|MSG>",
  "e731f1e30c356b5ed20978918d6f3f7aaad07cb26388fa9c39173127a16c62e0",
  header, "{}", "{}", '{"restart":true,"value":"x\\n"}', "buffer"))
write(seed("kernel", "unsigned"),
  frames("<IDS|MSG>", "", header, "{}", "[1, {}]", '{"a":[-1.5e3]}'))
write(seed("kernel", "short"), frames("id", "<IDS|MSG>", "", header, "{}", "{}"))
