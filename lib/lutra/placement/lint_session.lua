--- What a lint knows of a run: the story that the rules read.
--
-- A listener hears the core. Two things that the core does not see are watched here, as long as the
-- watch is open: reads of lt.clock and os.clock, for a timing needs a wait before it, and steps of
-- optimizers, whose state may be left behind on another device.

local args = require "lutra.internal.args"
local core = require "lutra.core"
local element_loops = require "lutra.placement.element_loops"
local event_reader = require "lutra.placement.event_reader"
local provenance = require "lutra.placement.provenance"

local Watch = {}
Watch.__index = Watch

-- The user's line that is running.
local function user_line()
  for level = 2, math.huge do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if not args.is_library(info) then return info.short_src .. ":" .. info.currentline end
  end
end

-- Puts a function in the place of t[name]; undone by what is in self.undo.
local function replace(self, t, name, wrap)
  local original = rawget(t, name)
  if type(original) ~= "function" then return end
  local own = wrap(original)
  rawset(t, name, own)
  table.insert(self.undo, function()
    if rawget(t, name) == own then rawset(t, name, original) end
  end)
end

local function marked(clock)
  return function()
    local mark = core._trace.region "clock"
    if mark then mark:close() end
    return clock()
  end
end

local function watch_clocks(self)
  local program_os = rawget(_G, "os")
  if type(program_os) == "table" then replace(self, program_os, "clock", marked) end
  replace(self, require "lutra", "clock", marked)
end

-- Notes the parameters of an optimizer whose state is elsewhere in the list `strays`.
local function look_at_state(strays, optimizer)
  local is_tensor = require("lutra").is_tensor
  for p, state in pairs(optimizer.state) do
    for key, value in pairs(state) do
      if is_tensor(value) and value.ndim > 0 and value.device ~= p.device then
        table.insert(strays, {where = user_line(), name = optimizer.__name, key = key,
          bytes = value.nbytes, from = value.device, to = p.device})
      end
    end
  end
end

-- What is put in the place of other functions does not hold the watch: one in a coroutine that was
-- abandoned is collected, which undoes it.
local function watch_optimizers(self)
  local strays = self.strays
  replace(self, require "lutra.optim.optimizer", "step", function(original)
    return function(optimizer, ...)
      look_at_state(strays, optimizer)
      return original(optimizer, ...)
    end
  end)
end

--- A watch, which must be closed (`<close>`, or :close()). It keeps `limit` events.
function Watch.new(limit)
  local self = setmetatable({undo = {}, strays = {}}, Watch)
  watch_clocks(self)
  watch_optimizers(self)
  self.listener = event_reader.new(limit)
  return self
end

function Watch:close()
  for i = #self.undo, 1, -1 do self.undo[i]() end
  self.undo = {}
  if self.listener then self.listener:close() end
end
Watch.__close, Watch.__gc = Watch.close, Watch.close

local function is_accelerator(device) return device ~= "cpu" and device ~= "meta" end

-- Counts the kernels of devices, and those that nobody has waited for since a read of the clock.
local function count_kernel(story, launched, e)
  story.kernels = story.kernels + 1
  launched[e.to] = (launched[e.to] or 0) + 1
  story.elements:kernel(e)
end

-- Hears of a copy: a row of story.copies.
local function add_copy(story, came, e)
  e.kernels, e.first = story.kernels, came:of(e)
  came:copy(e)
  story.elements:copy(e)
  table.insert(story.copies, e)
end

--- The story: {copies, elements, clocks, strays, link}. A copy is an event with the fields
-- `kernels`, how many the devices ran before it, and `first`: the copy that brought the same bytes
-- from a device, or nil. For elements see elements.lua. A clock is a read {where, launched = how
-- many kernels were started since the read before, and not waited for}.
function Watch:story()
  local story = {copies = {}, elements = element_loops.new(), clocks = {}, strays = self.strays,
    kernels = 0, link = self.listener.link, dropped = self.listener:dropped()}
  local came = provenance.new()
  local launched = nil -- until the clock is read
  local copied = nil -- the depth of the copy that an op around it did
  for e in self.listener:events() do
    if e.kind == "op" and is_accelerator(e.to) then
      if not e.kernel then
        story.elements:view(e)
      elseif not (copied and copied > e.depth) then
        count_kernel(story, launched or {}, e)
      end
    elseif e.kind == "op" then
      came:op(e)
    elseif e.kind == "copy" then
      copied = e.depth
      add_copy(story, came, e)
      if launched and e.blocking then launched[e.from], launched[e.to] = nil, nil end
    elseif e.kind == "sync" then
      if launched then launched[e.to] = nil end
    elseif e.kind == "region" and e.name == "clock" then
      local device, count = next(launched or {})
      table.insert(story.clocks, {where = e.where, launched = count or 0, device = device})
      launched = {}
    end
    if e.depth == 0 then copied = nil end
  end
  return story
end

--- What the rules find, up to now: see placement.lint.
function Watch:findings()
  return require("lutra.placement.findings").of(self:story())
end

return Watch
