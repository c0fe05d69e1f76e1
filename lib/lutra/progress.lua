--- lt.progress: a progress bar on stderr, in the format of tqdm (github.com/tqdm/tqdm).
--
--     for x, y in lt.progress(loader, {desc = "epoch 1"}) do ... end
--
--     local bar = lt.progress{total = 2000}
--     bar:update(1)  bar:set_postfix{loss = loss}  bar:write "saved"  bar:close()
--
-- draws `epoch 1:  76%|███▌ | 7568/10000 [00:33<00:10, 229.00it/s, loss=0.12]`.
--
-- In a notebook the bar is a display that is updated.
--
-- Invariant: nothing is written unless the file is a terminal (or disable = false is given). A
-- tensor in the postfix is read only when the bar is drawn, at most every `mininterval` seconds.
-- One on a device is copied asynchronously, and shown in the first drawing after the copy is done:
-- only close() synchronizes, for the last values.

local args = require "lutra.internal.args"
local numbers = require "lutra.internal.numbers"

local Bar = {__name = "progress bar"}
Bar.__index = Bar

local EIGHTHS = {[0] = " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}
local TENTHS = {[0] = " ", "1", "2", "3", "4", "5", "6", "7", "8", "9", "#"}

local SMOOTHING = 0.3 -- tqdm's: the weight of the newest interval in the shown rate
local FAST = 1e5      -- steps per second above which only every CHUNK-th step reads the clock
local CHUNK = 8

-- ---- clock, terminal, terminal width

local function of_core(name)
  local ok, core = pcall(require, "lutra.core")
  local f = ok and type(core) == "table" and rawget(core, name)
  return type(f) == "function" and f or nil
end

-- Returns the columns of the terminal on which `lutra --nproc` shows the bars of this rank, the
-- first of the job; nil when it shows none.
local function launcher_columns()
  local host = package.loaded["lutra.repl.host"]
  local width = host and host.launcher_columns
  if not width or width == 0 then return nil end
  local ok, place = pcall(require("lutra.distributed.environment").read)
  return ok and place and place.rank == 0 and width or nil
end

local function is_terminal(file)
  local fd = file == io.stderr and 2 or file == io.stdout and 1
  local isatty = of_core "isatty"
  if fd == 2 and launcher_columns() then return true end
  return fd and isatty and isatty(fd) or false
end

-- Returns the width of the line. One column stays free, so that no terminal wraps the line.
local function columns(self)
  if self.ncols then return self.ncols end
  local width = self.terminal_width and self.terminal_width(2) or launcher_columns()
  if not width or width <= 0 then width = math.tointeger(tonumber(os.getenv "COLUMNS")) or 80 end
  return math.max(10, width - 1)
end

local function shows_utf8()
  for _, name in ipairs {"LC_ALL", "LC_CTYPE", "LANG"} do
    local value = os.getenv(name)
    if value and value ~= "" then return value:lower():find "utf%-?8" ~= nil end
  end
  return false
end

-- ---- text

local function width_of(text) return utf8.len(text) or #text end

local function cut(text, width)
  if width_of(text) <= width then return text end
  return utf8.len(text) and text:sub(1, utf8.offset(text, width + 1) - 1) or text:sub(1, width)
end

-- Formats seconds as 00:33, or from an hour on as 1:02:03.
local function interval(seconds)
  local s = math.max(0, math.floor(seconds))
  local h, m = s // 3600, s // 60 % 60
  if h > 0 then return ("%d:%02d:%02d"):format(h, m, s % 60) end
  return ("%02d:%02d"):format(m, s % 60)
end

local function rate_text(rate, unit)
  if not rate or rate <= 0 then return "?" .. unit .. "/s" end
  if rate < 1 then return ("%5.2fs/%s"):format(1 / rate, unit) end
  return ("%5.2f%s/s"):format(rate, unit)
end

-- Returns a bar of `width` cells, of which the fraction `done` (0 to 1) is filled; the last filled
-- cell has eighths (ASCII: tenths).
local function draw_bar(done, width, ascii)
  local glyphs = ascii and TENTHS or EIGHTHS
  local steps = #glyphs
  local filled = math.floor(done * width * steps)
  local full, rest = filled // steps, filled % steps
  if full >= width then return glyphs[steps]:rep(width) end
  return glyphs[steps]:rep(full) .. glyphs[rest] .. (" "):rep(width - full - 1)
end

-- Formats a number as tqdm's format_num does: three digits when that is shorter.
local function number_text(value)
  local short = numbers.text(value, "%.3g"):gsub("e([+-])0", "e%1")
  local long = numbers.text(value)
  return #short < #long and short or long
end

-- Formats a value; a tensor of one element as its number. A value that cannot be read must not end
-- the loop, so errors are ignored.
local function value_text(value)
  if type(value) == "userdata" then
    local ok, item = pcall(function() return value:item() end)
    if ok then value = item end
  end
  return type(value) == "number" and number_text(value) or tostring(value)
end

-- Returns whether x is a tensor of one element on a device that runs asynchronously.
local function is_remote(x)
  local ok, remote = pcall(function()
    return type(x) == "userdata" and not x.is_cpu and not x.is_meta and x:numel() == 1
  end)
  return ok and remote
end

-- Begins to copy a tensor to the host.
local function begin_read(read, x)
  local accelerator = require "lutra.accelerator"
  read.copy = x:detach():to{"cpu", non_blocking = true}
  read.event = accelerator.current_stream(x.device):record_event()
end

-- Shows a copy that is done.
local function end_read(read)
  if not read.event or not read.event:query() then return end
  read.text, read.event = value_text(read.copy), nil
end

-- Returns the text of a tensor on a device without blocking: the value of the last copy that is
-- done, "..." before there is one.
local function remote_text(self, name, x)
  local read = self.reads[name] or {text = "..."}
  self.reads[name] = read
  pcall(function()
    end_read(read)
    if read.event then return end
    begin_read(read, x)
    end_read(read)
  end)
  return read.text
end

local function postfix_text(self)
  local postfix = self.postfix
  if type(postfix) ~= "table" then return postfix and tostring(postfix) or "" end
  local names, parts = {}, {}
  for name in pairs(postfix) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for i, name in ipairs(names) do
    local value = postfix[name]
    local text = not self.closed and is_remote(value) and remote_text(self, name, value)
      or value_text(value)
    parts[i] = tostring(name) .. "=" .. text
  end
  return table.concat(parts, ", ")
end

-- Returns the line of the bar (tqdm's format_meter) after `elapsed` seconds at `rate` steps per
-- second: the text before the bar, the bar, the text behind it; and the share that is done. Without
-- a total the bar is empty.
local function meter(self, elapsed, rate)
  local title = self.desc and self.desc ~= "" and self.desc:gsub(": $", "") .. ": " or ""
  local postfix = postfix_text(self)
  if postfix ~= "" then postfix = ", " .. postfix end
  local speed, n, total = rate_text(rate, self.unit), self.n, self.total
  local room = columns(self)
  if not total or n > total then
    return cut(("%s%d%s [%s, %s%s]"):format(title, n, self.unit, interval(elapsed), speed,
      postfix), room), "", "", 0
  end
  local done = total > 0 and n / total or 1
  local left = rate and rate > 0 and interval((total - n) / rate) or "?"
  local before = ("%s%3.0f%%|"):format(title, done * 100)
  local after = ("| %d/%d [%s<%s, %s%s]"):format(n, total, interval(elapsed), left, speed, postfix)
  local width = math.max(1, room - width_of(before) - width_of(after))
  return before, draw_bar(done, width, self.ascii), after, done
end

-- ---- drawing

-- Draws what meter returns.
local function write_line(self, before, bar, after, done)
  if self.notebook then return self.notebook.draw(before, bar, after, done) end
  local text = cut(before .. bar .. after, columns(self))
  local width = width_of(text)
  self.file:write("\r", text, (" "):rep(self.drawn_width - width))
  self.file:flush()
  self.drawn_width = width
end

local function wipe(self)
  if self.notebook then return self.notebook.clear() end
  self.file:write("\r", (" "):rep(self.drawn_width), "\r")
  self.file:flush()
  self.drawn_width = 0
end

-- Updates the smoothed rate with the steps since the last drawing. It is a quotient of two
-- exponential means, of steps and of seconds, whose equal start-up biases cancel.
local function measure(self, now)
  local dt, dn = now - self.drawn_at, self.n - self.drawn_n
  if dt > 0 and dn > 0 then
    self.mean_dt = SMOOTHING * dt + (1 - SMOOTHING) * self.mean_dt
    self.mean_dn = SMOOTHING * dn + (1 - SMOOTHING) * self.mean_dn
  end
  self.drawn_at, self.drawn_n = now, self.n
end

local function smoothed_rate(self)
  return self.mean_dt > 0 and self.mean_dn / self.mean_dt or nil
end

local function draw(self, now)
  measure(self, now)
  local rate = smoothed_rate(self)
  self.skip = rate and rate > FAST and CHUNK or 1
  write_line(self, meter(self, now - self.started, rate))
end

-- Reads the clock and draws when the last drawing was at least `mininterval` seconds ago.
local function check_clock(self, n)
  local now = self.clock()
  if now - self.drawn_at >= self.mininterval then draw(self, now) end
  self.check_at = n + self.skip
end

--- bar:update(count = 1): advances the bar by `count` steps and redraws it when it is due.
function Bar:update(count)
  args.expect(count == nil or type(count) == "number", "update", "a number", "count", count)
  local n = self.n + (count or 1)
  self.n = n
  if n >= self.check_at then check_clock(self, n) end
end

--- Shows values at the end of the bar from the next drawing on: bar:set_postfix{loss = loss}. A
-- tensor of one element is read when it is drawn, not now; one on a device is shown when its copy
-- has arrived, without blocking. A string is shown unchanged; nil removes the postfix.
function Bar:set_postfix(values) self.postfix = values end

--- Changes the text in front of the bar from the next drawing on.
function Bar:set_description(text) self.desc = text end

--- Draws the bar now.
function Bar:refresh()
  if not self.disable and not self.closed then draw(self, self.clock()) end
end

--- Prints a line on stdout above the bar.
function Bar:write(text)
  local shown = not self.disable and not self.closed and not self.notebook
  if shown then wipe(self) end
  io.stdout:write(numbers.text(text), "\n")
  io.stdout:flush()
  if shown then draw(self, self.clock()) end
end

--- Draws the bar for the last time, with the average rate; with leave = false, erases it. Further
-- calls have no effect.
function Bar:close()
  if self.closed then return end
  local _ <close> = self.closing
  self.closed = true
  self.check_at = math.huge
  if self.disable then return end
  if not self.leave then return wipe(self) end
  local elapsed = self.clock() - self.started
  write_line(self, meter(self, elapsed, elapsed > 0 and (self.n - self.initial) / elapsed or nil))
  if self.notebook then return end
  self.file:write "\n"
  self.file:flush()
end
Bar.__close = Bar.close

-- ---- looping

-- Passes the values of an iteration on, and closes the bar after the last.
local function finish_step(self, ...)
  if (...) == nil then self:close() end
  return ...
end

-- Implements the iteration of a `for` loop. The body of the previous iteration has completed, so
-- its step counts now.
function Bar:__call(_, control)
  if self.looping then
    local n = self.n + 1
    self.n = n
    if n >= self.check_at then check_clock(self, n) end
  else
    self.looping = true
    control = self.control
  end
  return finish_step(self, self.next(self.state, control))
end

local function count_up(last, i)
  if i < last then return i + 1 end
end

-- Returns an iterator over the values of a list.
local function values(list)
  local i = 0
  return function()
    i = i + 1
    if i <= #list then return list[i] end
  end
end

local function length(x)
  local meta = getmetatable(x)
  if type(meta) == "table" and meta.__len or type(x) == "table" and meta == nil then return #x end
end

-- Returns the iterator triple of an iterable, its number of steps when that is known, and the value
-- that the end of the loop closes. Raises an error for a value that cannot be iterated.
local function iterate(x)
  local kind = math.type(x) or type(x)
  if kind == "integer" then return count_up, x, 0, x end
  if kind == "function" then return x end
  local object = kind == "table" or kind == "userdata"
  local iter = kind == "table" and x.iter
  if args.is_callable(iter) then
    local f, s, c, closing = iter(x)
    local known, n = pcall(length, x) -- a stream may have no length
    return f, s, c, known and n or nil, closing
  end
  if object and args.is_callable(x) then return x, nil, nil, length(x) end
  if object and length(x) then return values(x), nil, nil, length(x) end
  args.fail("progress: expected an iterator, an object with iter(), a list or an integer for "
    .. "argument 'iterable', got %s", args.show(x))
end

-- Returns the iterable of the one-table form {loader, desc = "..."}, or `x` itself.
local function unwrap(x)
  local only = type(x) == "table" and getmetatable(x) == nil and #x == 1 and x[1]
  local wrapped = type(only) == "function" or type(only) == "table" and args.is_callable(only.iter)
  return wrapped and only or x
end

local parse = args.signature("progress", "data? iterable = nil, string? desc = nil, "
  .. "int(>=0)? total = nil, bool leave = true, bool? disable = nil, float mininterval = 0.1, "
  .. "any? file = nil, int(>=1)? ncols = nil, "
  .. "bool? ascii = nil, string unit = 'it', int(>=0) initial = 0, function? clock = nil")

-- Returns whether `file` can be written to like a file.
local function has_write(file)
  if io.type(file) then return io.type(file) == "file" end
  return type(file) == "table" and args.is_callable(file.write) and args.is_callable(file.flush)
end

--- Returns the iterator of a `for` loop over `iterable` that draws a progress bar: an iterator
-- function, an object with iter() such as a DataLoader, a list, a tensor (its rows), or n for 1 to
-- n. `total` is the number of steps, required where `#iterable` is unknown. Without an iterable,
-- returns a bar that bar:update advances.
--
-- desc is the text in front of the bar; leave = false erases the bar at the end; disable = nil
-- shows it only when `file` is a terminal, or stderr in a notebook; mininterval is the least number
-- of seconds between drawings; ncols is the width in columns, by default that of the terminal;
-- ascii = nil uses block characters in a UTF-8 locale; clock is a function that returns seconds.
-- The bar is also closed when the loop ends by break or by an error.
local function progress(...)
  local iterable, desc, total, leave, disable, mininterval, file, ncols, ascii, unit, initial,
    clock = parse(...)
  args.check(file == nil or has_write(file),
    "progress: expected a file for argument 'file', got %s", args.show(file))
  local bar = setmetatable({
    desc = desc, leave = leave, mininterval = mininterval, ncols = ncols, unit = unit,
    initial = initial, n = initial, postfix = nil, reads = {}, file = file or io.stderr,
    drawn_n = initial, drawn_width = 0, mean_dn = 0, mean_dt = 0, skip = 1, check_at = 0,
  }, Bar)
  local known
  if iterable ~= nil then
    bar.next, bar.state, bar.control, known, bar.closing = iterate(unwrap(iterable))
  else
    bar.next = function() end
  end
  bar.total = total or known
  bar.terminal_width = of_core "terminal_width"
  bar.clock = clock or of_core "clock" or os.clock
  bar.started = bar.clock()
  args.check(type(bar.started) == "number",
    "progress: expected a function that returns seconds for argument 'clock', got one that "
    .. "returned %s",
    args.show(bar.started))
  bar.drawn_at = bar.started
  if ascii == nil then ascii = not shows_utf8() end
  bar.ascii = ascii
  local notebook = bar.file == io.stderr and require("lutra.repl.front").notebook
  if notebook then bar.notebook = require("lutra.repl.rich.progress").new(notebook) end
  if disable == nil then disable = not notebook and not is_terminal(bar.file) end
  bar.disable = disable
  if disable then bar.check_at = math.huge else draw(bar, bar.started) end
  if iterable == nil then return bar end
  return bar, nil, nil, bar
end

return progress
