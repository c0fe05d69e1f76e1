--- lt.utils.tensorboard.SummaryWriter: writes event files for TensorBoard.

local lt = require "lutra"
local args = require "lutra.internal.args"
local event_file = require "lutra.utils.tensorboard.event_file"
local files = require "lutra.files"
local ordered_map = require "lutra.internal.ordered_map"
local protobuf = require "lutra.internal.protobuf"
local summaries = require "lutra.utils.tensorboard.summaries"

local SummaryWriter = require "lutra.internal.class"("SummaryWriter",
  "lt.utils.tensorboard.SummaryWriter")

local parse_writer = args.signature("SummaryWriter", "string? log_dir = nil, string comment = '', "
  .. "int? purge_step = nil, int max_queue = 10, float flush_secs = 120, "
  .. "string filename_suffix = ''")

--- tensorboard.SummaryWriter(log_dir, {comment, purge_step, filename_suffix}): writes an event file
-- into the folder `log_dir`, which is created; by default "runs/Nov23_14-05-00_HOST", with
-- `comment` after it. `purge_step` makes TensorBoard hide earlier events from that step on. Each
-- event is flushed at once, so `max_queue` and `flush_secs` have no effect. Raises an error when
-- the folder or the file cannot be created.
function SummaryWriter:init(...)
  local log_dir, comment, purge_step, _, _, suffix = parse_writer(...)
  if not log_dir or log_dir == "" then
    local _, host = files.process()
    log_dir = "runs/" .. os.date "%b%d_%H-%M-%S" .. "_" .. host .. comment
  end
  self.log_dir, self._suffix, self._others = args.path("SummaryWriter", "log_dir", log_dir), suffix,
    {}
  self._file = event_file.new(log_dir, suffix)
  if purge_step then self._file:add(protobuf.bytes(7, protobuf.int(1, 1)), purge_step) end
end

function SummaryWriter:__tostring() return ("SummaryWriter(%q)"):format(self.log_dir) end

-- Returns the event file; raises an error after close.
local function file_of(self, title)
  return args.check(self._file, "%s: cannot write: the SummaryWriter is closed", title)
end

-- Writes a value of a summary.
local function put(self, title, value, step, walltime)
  file_of(self, title):add_value(value, step, walltime)
end

-- Returns a number, also of a tensor of one element.
local function number(title, name, x)
  if lt.is_tensor(x) then x = x:item() end
  if type(x) == "boolean" then x = x and 1 or 0 end
  args.expect(type(x) == "number", title, "a number or a tensor of one element", name, x)
  return x
end

local STEP = "int? global_step = nil"

-- Calls a parser whose second argument is a table of names. As the last of two arguments it would
-- be read as options.
local function parse_names(parse, ...)
  if select("#", ...) ~= 2 then return parse(...) end
  return parse{...}
end

local parse_scalar = args.signature("add_scalar", "string tag, any scalar_value, " .. STEP
  .. ", float? walltime = nil, bool new_style = false, bool double_precision = false")

--- w:add_scalar(tag, scalar_value, global_step): writes a number, or a tensor of one element. With
-- `new_style` it is written as a tensor, of float64 with `double_precision`. Raises an error for
-- other values.
function SummaryWriter:add_scalar(...)
  local tag, x, step, walltime, new_style, is_double = parse_scalar(...)
  x = number("add_scalar", "scalar_value", x)
  put(self, "add_scalar", new_style and summaries.tensor_scalar(tag, x, is_double)
    or summaries.scalar(tag, x), step, walltime)
end

local parse_scalars = args.signature("add_scalars", "string main_tag, any tag_scalar_dict, "
  .. STEP .. ", float? walltime = nil")

--- w:add_scalars(main_tag, tag_scalar_dict, global_step): writes numbers that are shown in one
-- chart, a table of them by name. Each has an event file of its own, in the folder
-- log_dir/main_tag_name. Raises an error unless all are numbers.
function SummaryWriter:add_scalars(...)
  local main_tag, values, step, walltime = parse_names(parse_scalars, ...)
  args.expect(type(values) == "table" and not lt.is_tensor(values), "add_scalars",
    "a table of numbers", "tag_scalar_dict", values)
  file_of(self, "add_scalars")
  local tags, numbers = ordered_map.keys(values), {}
  for i, tag in ipairs(tags) do
    numbers[i] = number("add_scalars", ("tag_scalar_dict[%s]"):format(tag), values[tag])
  end
  for i, tag in ipairs(tags) do
    local folder = ("%s/%s_%s"):format(self.log_dir, main_tag:gsub("/", "_"),
      (tostring(tag):gsub("/", "_")))
    self._others[folder] = self._others[folder] or event_file.new(folder, self._suffix)
    self._others[folder]:add_value(summaries.scalar(main_tag, numbers[i]), step, walltime)
  end
end

local parse_histogram = args.signature("add_histogram", "string tag, any values, " .. STEP
  .. ", any? bins = nil, float? walltime = nil, int? max_bins = nil")

--- w:add_histogram(tag, values, global_step, {bins}): writes the distribution of the elements of a
-- tensor or a list. `bins` are "tensorflow" (powers of 1.1), a number of bins of one width, or a
-- list of limits. `max_bins` is not supported. Raises an error for no values, NaN and infinite
-- ones.
function SummaryWriter:add_histogram(...)
  local tag, values, step, bins, walltime, max_bins = parse_histogram(...)
  args.check(max_bins == nil, "add_histogram: max_bins is not supported yet\nhint: bins = N")
  if not lt.is_tensor(values) then values = lt.tensor(values, {dtype = "float64"}) end
  put(self, "add_histogram", summaries.histogram("add_histogram", tag, values,
    bins or "tensorflow"), step, walltime)
end

local parse_image = args.signature("add_image", "string tag, Tensor img_tensor, " .. STEP
  .. ", float? walltime = nil, string dataformats = 'CHW'")

--- w:add_image(tag, img_tensor, global_step, {dataformats}): writes an image of 1, 3 or 4 channels:
-- floats from 0 to 1, or uint8. `dataformats` names its dimensions: "CHW", "HWC" or "HW". Raises an
-- error for other shapes.
function SummaryWriter:add_image(...)
  local tag, x, step, walltime, format = parse_image(...)
  put(self, "add_image", summaries.image("add_image", tag, x, format), step, walltime)
end

local parse_images = args.signature("add_images", "string tag, Tensor img_tensor, " .. STEP
  .. ", float? walltime = nil, string dataformats = 'NCHW'")

--- w:add_images(tag, img_tensor, global_step, {dataformats}): writes a batch of images as one, at
-- most 8 in a row. `dataformats` is "NCHW" or "NHWC". Raises an error for other shapes.
function SummaryWriter:add_images(...)
  local tag, x, step, walltime, format = parse_images(...)
  put(self, "add_images", summaries.image("add_images", tag, x, format), step, walltime)
end

local parse_audio = args.signature("add_audio", "string tag, Tensor snd_tensor, " .. STEP
  .. ", int(>=1) sample_rate = 44100, float? walltime = nil")

--- w:add_audio(tag, snd_tensor, global_step, {sample_rate}): writes samples from -1 to 1, a vector
-- or {1, frames}. Raises an error for other shapes.
function SummaryWriter:add_audio(...)
  local tag, x, step, rate, walltime = parse_audio(...)
  put(self, "add_audio", summaries.audio("add_audio", tag, x, rate), step, walltime)
end

local parse_text = args.signature("add_text", "string tag, string text_string, " .. STEP
  .. ", float? walltime = nil")

--- w:add_text(tag, text_string, global_step): writes a string, which TensorBoard shows as Markdown.
-- Raises an error unless it is a string.
function SummaryWriter:add_text(...)
  local tag, text, step, walltime = parse_text(...)
  put(self, "add_text", summaries.text(tag, text), step, walltime)
end

local parse_graph = args.signature("add_graph", "any model, any? input_to_model = nil, "
  .. "bool verbose = false, bool use_strict_trace = true")

--- w:add_graph(model, input_to_model): writes the graph of a module: its layers and the tensors
-- that pass between them. It is called once, with a tensor or a list of arguments, without
-- gradients. `verbose` and `use_strict_trace` have no effect. Raises an error without a module or
-- an input.
function SummaryWriter:add_graph(...)
  local model, inputs = parse_graph(...)
  args.expect(lt.nn.is_module(model), "add_graph", "a module", "model", model)
  args.expect(inputs ~= nil, "add_graph", "a tensor or a list of arguments", "input_to_model",
    inputs)
  local file = file_of(self, "add_graph")
  if lt.is_tensor(inputs) or type(inputs) ~= "table" then inputs = {inputs} end
  file:add(protobuf.bytes(4, require("lutra.utils.tensorboard.graph").of(model, inputs)))
end

local parse_hparams = args.signature("add_hparams", "any hparam_dict, any metric_dict, "
  .. "any? hparam_domain_discrete = nil, string? run_name = nil, " .. STEP)

--- w:add_hparams(hparam_dict, metric_dict, {run_name}): writes the hyperparameters of a run
-- (numbers, strings, booleans by name) and its results (numbers), into the folder log_dir/run_name;
-- the name is the time by default. `hparam_domain_discrete` has no effect. Raises an error for
-- other values.
function SummaryWriter:add_hparams(...)
  local parameters, metrics, _, run_name, step = parse_names(parse_hparams, ...)
  args.expect(type(parameters) == "table", "add_hparams", "a table", "hparam_dict", parameters)
  args.expect(type(metrics) == "table", "add_hparams", "a table", "metric_dict", metrics)
  local names, plain = ordered_map.keys(parameters), {}
  for _, name in ipairs(names) do
    local x = parameters[name]
    if lt.is_tensor(x) then x = x:item() end
    args.expect(type(x) == "number" or type(x) == "string" or type(x) == "boolean", "add_hparams",
      "a number, string or boolean", ("hparam_dict.%s"):format(tostring(name)), x)
    plain[name] = x
  end
  local numbers, metric_names = {}, ordered_map.keys(metrics)
  for _, name in ipairs(metric_names) do
    numbers[name] = number("add_hparams", ("metric_dict.%s"):format(tostring(name)), metrics[name])
  end
  run_name = run_name or ("%.6f"):format(files.now())
  local run <close> = SummaryWriter(self.log_dir .. "/" .. run_name)
  for _, value in ipairs(summaries.hparams(names, plain, metric_names)) do
    put(run, "add_hparams", value, step)
  end
  for _, name in ipairs(metric_names) do run:add_scalar(name, numbers[name], step) end
end

--- w:get_logdir(): returns the folder of the event file.
function SummaryWriter:get_logdir() return self.log_dir end

--- w:flush(): does nothing, as every event is written at once; for programs that call it.
function SummaryWriter.flush() end

--- w:close(): closes the event files. Later writes are errors. A `local w <close>` is closed at the
-- end of its block.
function SummaryWriter:close()
  if self._file then self._file:close() end
  self._file = nil
  for _, other in pairs(self._others or {}) do other:close() end
  self._others = {}
end

SummaryWriter.__close = SummaryWriter.close

return SummaryWriter
