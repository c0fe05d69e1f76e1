-- lt.utils.tensorboard: the bytes of event files by their specification (TFRecord, Protocol
-- Buffers), and what TensorBoard's own reader finds in them, where Python has it.

local lt = require "lutra"
local event_file = require "lutra.utils.tensorboard.event_file"
local files = require "lutra.files"
local support = require "program_support"

local SummaryWriter = lt.utils.tensorboard.SummaryWriter

local folder
before_each(function() folder = support.folder() end)
after_each(function() support.remove(folder) end)

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

-- Returns the contents of the event file in a folder; its name starts as PyTorch's do.
local function read(path)
  local names = {}
  for _, name in ipairs(assert(files.list(path))) do
    if name:find "^events%.out%.tfevents%.%d%d%d%d%d%d%d%d%d%d%." then names[#names + 1] = name end
  end
  assert.equal(1, #names)
  local file <close> = assert(io.open(path .. "/" .. names[1], "rb"))
  return file:read "a", names[1]
end

-- Returns the data of the records of a file; checks lengths and sums.
local function records(bytes)
  local list, at = {}, 1
  while at <= #bytes do
    local n, sum = ("<I8I4"):unpack(bytes, at)
    assert.equal(event_file.masked(bytes:sub(at, at + 7)), sum)
    local data = bytes:sub(at + 12, at + 11 + n)
    assert.equal(event_file.masked(data), (("<I4"):unpack(bytes, at + 12 + n)))
    list[#list + 1] = data
    at = at + 16 + n
  end
  return list
end

describe("event files", function()
  it("have CRC-32C sums", function()
    -- RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms
    assert.equal(0xE3069283, event_file.crc32c "123456789")
    assert.equal(0x8A9136AA, event_file.crc32c(("\0"):rep(32)))
    assert.equal(0x62A8AB43, event_file.crc32c(("\255"):rep(32)))
    assert.equal(0, event_file.crc32c "")
    assert.equal(0xa282ead8, event_file.masked "")
    local crc = 0xE3069283
    assert.equal(((crc >> 15 | crc << 17) + 0xa282ead8) & 0xFFFFFFFF, event_file.masked "123456789")
  end)

  it("have the bytes of the specification", function()
    local w = SummaryWriter(folder)
    w:add_scalar("loss", 0.5, 3, {walltime = 2})
    w:add_scalar("loss", lt.tensor(0.25), {walltime = 2})
    w:add_scalar("n", 1, -1, 2)
    w:close()
    local list = records((read(folder)))
    assert.equal(4, #list)
    assert.equal("\9", list[1]:sub(1, 1))
    assert.equal("\26\13brain.Event:2", list[1]:sub(10))
    local time = "\9" .. ("<d"):pack(2)
    assert.equal(time .. "\16\3\42\13\10\11\10\4loss\21\0\0\0\63", list[2])
    assert.equal(time .. "\42\13\10\11\10\4loss\21\0\0\128\62", list[3])
    assert.equal(time .. "\16" .. ("\255"):rep(9) .. "\1\42\10\10\8\10\1n\21\0\0\128\63", list[4])
  end)

  it("are complete after every event", function()
    local w = SummaryWriter{log_dir = folder, filename_suffix = ".x"}
    for i = 1, 3 do
      w:add_scalar("a", i, i)
      local bytes, name = read(folder)
      assert.equal(i + 1, #records(bytes))
      assert.matches("%.x$", name)
    end
    w:flush()
    assert.equal(folder, w:get_logdir())
    w:close()
    w:close()
    assert.matches("add_scalar: cannot write: the SummaryWriter is closed",
      fails(w.add_scalar, w, "a", 1), 1, true)
  end)

  it("continue in another file after a record that was cut off", function()
    local w = SummaryWriter(folder)
    local path = w._file.path
    local file = w._file.file
    w:add_scalar("loss", 0.5, 1)
    w._file.file = { -- as on a full disk, which takes 5 bytes
      close = function() return file:close() end,
      write = function(_, record)
        file:write(record:sub(1, 5))
        return nil, "No space left on device"
      end,
    }
    assert.matches("SummaryWriter: cannot write " .. path .. ": No space left on device",
      fails(w.add_scalar, w, "loss", 0.25, 2), 1, true)
    w._file.folder = folder .. "/missing"
    assert.matches("SummaryWriter: cannot write " .. folder .. "/missing/",
      fails(w.add_scalar, w, "loss", 0.25, 2), 1, true)
    w._file.folder = folder
    w:add_scalar("loss", 0.125, 3)
    w:add_scalar("loss", 1, 4)
    w:close()
    local later = {}
    for _, name in ipairs(assert(files.list(folder))) do
      if folder .. "/" .. name ~= path then later[#later + 1] = folder .. "/" .. name end
    end
    assert.equal(1, #later)
    local cut <close> = assert(io.open(path, "rb"))
    local whole <close> = assert(io.open(later[1], "rb"))
    assert.equal(2, #records(cut:read "a":sub(1, -6)))
    assert.equal(3, #records(whole:read "a"))
  end)

  it("are in runs/ by default", function()
    local result = support.shell(("cd %s && %s -e %s 2>&1; ls runs"):format(support.quote(folder),
      support.quote(support.program), support.quote(
      "local w = lt.utils.tensorboard.SummaryWriter{comment = '_x'} w:add_scalar('a', 1)")))
    assert.matches("^%u%l%l%d%d_%d%d%-%d%d%-%d%d_.+_x\n$", result.out)
  end)

  it("of several scalars are in folders of their own", function()
    local w = SummaryWriter(folder .. "/a/b")
    w:add_scalars("run/x", {sin = 0, cos = lt.tensor(1)}, 2)
    w:add_scalars("run/x", {sin = 0})
    w:close()
    assert.equal(3, #records((read(folder .. "/a/b/run_x_sin"))))
    assert.equal(2, #records((read(folder .. "/a/b/run_x_cos"))))
  end)

  it("get none of several scalars when one is no number", function()
    local w <close> = SummaryWriter(folder)
    assert.matches("add_scalars: expected a number or a tensor of one element for argument "
      .. "'tag_scalar_dict[z]'", fails(w.add_scalars, w, "run", {a = 1, z = "x"}), 1, true)
    assert.is_nil(files.list(folder .. "/run_a"))
  end)
end)

-- ---- TensorBoard's reader

local script = debug.getinfo(1, "S").source:match "^@(.*)tensorboard_spec" .. "read_events.py"

-- Returns a Python that has TensorBoard, or nil.
local function find_python()
  for _, python in ipairs{os.getenv "LUTRA_TEST_PYTHON" or "python3", "python3"} do
    if os.execute(support.quote(python) .. " -c 'import tensorboard, PIL, numpy' >/dev/null 2>&1")
    then
      return python
    end
  end
end

local python = find_python()

-- Returns the lines that the reader prints about a folder.
local function lines_of(path)
  local result = support.shell(("%s %s %s 2>/dev/null"):format(support.quote(python),
    support.quote(script), support.quote(path)))
  local lines = {}
  for line in result.out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

local function reader_finds(expected, path)
  assert.same(expected, lines_of(path or folder))
end

describe("TensorBoard's reader", function()
  local function test(name, f)
    it(name, function()
      if not python then return pending "no python3 with tensorboard" end
      f(SummaryWriter(folder))
    end)
  end

  test("finds scalars and text", function(w)
    for i = 1, 3 do w:add_scalar("loss/train", 1 / i, i) end
    w:add_scalar("new", 2.5, 7, {new_style = true})
    w:add_scalar("double", 0.1, 7, {new_style = true, double_precision = true})
    w:add_text("note", "hello *world*", 1)
    w:close()
    reader_finds{"scalar loss/train 1:1 2:0.5 3:0.333333", "tensor double 7 [0.1]",
      "tensor new 7 [2.5]", "tensor note/text_summary 1 [b'hello *world*']"}
  end)

  test("finds images", function(w)
    w:add_image("chw", lt.tensor{{{0, 1.}, {.5, 2.}}}, 3)
    w:add_image("hw", lt.tensor({{0, 1}, {5, 255}}, {dtype = "uint8"}), 3, {dataformats = "HW"})
    w:add_image("hwc", lt.tensor({{{1, 2, 3, 4}}}, {dtype = "uint8"}), 3, {dataformats = "HWC"})
    w:add_images("batch", lt.ones(10, 1, 2, 1) * lt.arange(10):reshape(10, 1, 1, 1) / 255, 3)
    w:close()
    reader_finds{"image batch 3 8 4 (4, 8, 3) [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]",
      "image chw 3 2 2 (2, 2, 3) [0, 0, 0, 255, 255, 255, 127, 127, 127, 255, 255, 255]",
      "image hw 3 2 2 (2, 2, 3) [0, 0, 0, 1, 1, 1, 5, 5, 5, 255, 255, 255]",
      "image hwc 3 1 1 (1, 1, 4) [1, 2, 3, 4]"}
  end)

  test("finds histograms", function(w)
    w:add_histogram("bins", {1, 2, 3, 4}, 1, {bins = 2})
    w:add_histogram("limits", lt.tensor{1, 2, 2, 2}, 2, {bins = {0, 1, 2, 3, 4}})
    w:close()
    -- PyTorch 2.15's make_histogram
    reader_finds{"histogram bins 1 1 4 4 10 30 ['1', '2.5', '4'] ['0', '2', '2']",
      "histogram limits 2 1 2 4 7 13 ['1', '2', '3'] ['0', '1', '3']"}
  end)

  test("finds audio", function(w)
    w:add_audio("sound", lt.zeros(1, 100), 1, {sample_rate = 8000})
    w:close()
    reader_finds{"audio sound 1 8000.0 100 244"}
  end)

  test("finds the graph of a module", function(w)
    local nn = lt.nn
    local net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 3)))
    local Net = nn.Module:extend "Net"
    function Net:init()
      self.body = net
      self.head = nn.Linear(3, 1)
    end
    function Net:forward(x) return self.head(self.body(x) * 2) end
    w:add_graph(Net(), lt.ones(4, 2))
    w:close()
    reader_finds{"node input/input_1 IO Node []", "node Net/body/1 Linear ['input/input_1']",
      "node Net/body/2/1 ReLU ['Net/body/1']", "node Net/body/2/2 Linear ['Net/body/2/1']",
      "node Net/head Linear ['Net/body/2/2']", "node output/output_1 IO Node ['Net/head']"}
  end)

  test("finds hyperparameters", function(w)
    w:add_hparams({lr = 0.1, name = "x", flag = true}, {["hparam/acc"] = lt.tensor(10.)},
      {run_name = "r"})
    w:add_hparams({lr = 0.1}, {accuracy = 1})
    w:close()
    local lines = lines_of(folder .. "/r")
    assert.equal("scalar hparam/acc 0:10", lines[1])
    local text = table.concat(lines, "\n")
    for _, piece in ipairs{'name: "lr"     type: DATA_TYPE_FLOAT64',
      'name: "name"     type: DATA_TYPE_STRING', 'name: "flag"     type: DATA_TYPE_BOOL',
      'tag: "hparam/acc"', "status: STATUS_SUCCESS",
      'key: "lr"     value {       number_value: 0.1', 'string_value: "x"', "bool_value: true"} do
      support.has(text, piece)
    end
  end)
end)

describe("a SummaryWriter", function()
  it("writes histograms of PyTorch's default bins", function()
    local w = SummaryWriter(folder)
    w:add_histogram("h", lt.tensor{-1, 0, 0.5, 2, 2, 3}, 1)
    w:close()
    local event = records((read(folder)))[2]
    -- PyTorch 2.15: make_histogram of these values with its default bins
    local n, size = 595, 595 * 8
    local buckets, limits = {}, {("<" .. ("d"):rep(n)):unpack(event, #event - 2 * size - 2)}
    for i, x in ipairs{("<" .. ("d"):rep(n)):unpack(event, #event - size + 1)} do
      if i <= n and x ~= 0 then buckets[i - 1] = x end
    end
    assert.same({[1] = 1, [292] = 1, [575] = 1, [590] = 2, [594] = 1}, buckets)
    assert.equal(-1.0089710279437536, limits[1])
    assert.equal(-0.917246389039776, limits[2])
    assert.equal(3.1665833053880363, limits[n])
  end)

  it("refuses what is not valid", function()
    local w <close> = SummaryWriter(folder)
    for text, call in pairs{
      ["add_scalar: expected a number or a tensor of one element for argument 'scalar_value'"] =
        {w.add_scalar, w, "a", "x"},
      ["add_scalar: expected a string for argument 'tag'"] = {w.add_scalar, w, 3, 3},
      ["add_scalars: expected a table of numbers for argument 'tag_scalar_dict'"] =
        {w.add_scalars, w, "a", 3},
      ["add_image: expected a tensor of 3 dimensions"] = {w.add_image, w, "a", lt.ones(2, 2)},
      ["add_image: expected 1, 3 or 4 channels, got 2"] = {w.add_image, w, "a", lt.ones(2, 2, 2)},
      ["add_image: expected the letters of NCHW, CHW or HW"] =
        {w.add_image, w, "a", lt.ones(3, 2, 2), {dataformats = "XYZ"}},
      ["add_image: expected a tensor with elements"] = {w.add_image, w, "a", lt.ones(3, 0, 2)},
      ["add_images: expected a tensor of 4 dimensions"] = {w.add_images, w, "a", lt.ones(3, 2, 2)},
      ["add_histogram: expected values, got none"] = {w.add_histogram, w, "a", lt.ones(0)},
      ["add_histogram: expected finite values"] = {w.add_histogram, w, "a", lt.tensor{lt.nan}},
      ["add_histogram: expected \"tensorflow\", a number of bins or a list of limits"] =
        {w.add_histogram, w, "a", {1}, {bins = "auto"}},
      ["add_text: expected a string for argument 'text_string'"] = {w.add_text, w, "a", 3},
      ["add_graph: expected a module for argument 'model'"] = {w.add_graph, w, 3},
      ["add_graph: expected a tensor or a list of arguments"] =
        {w.add_graph, w, lt.nn.Linear(1, 1)},
      ["add_hparams: expected a number, string or boolean"] = {w.add_hparams, w, {a = {}}, {}},
      ["add_audio: expected a vector"] = {w.add_audio, w, "a", lt.ones(2, 3)},
      ["SummaryWriter: expected a string for argument 'log_dir'"] = {SummaryWriter, 3},
      ["SummaryWriter: cannot create the folder"] = {SummaryWriter, "/dev/null/x"},
    } do
      assert.matches(text, fails(table.unpack(call)), 1, true)
    end
    assert.equal(1, #records((read(folder)))) -- nothing was written
  end)
end)
