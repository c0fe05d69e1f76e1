--- The record of a run, which the lint's rules read.
--
-- The core's events come from a reader (event_reader.lua). Two things that the core does not
-- report are observed while the session is open: reads of lt.clock and os.clock, as a timing
-- requires a synchronization before it, and steps of optimizers, whose state may be on another
-- device than the parameters.

local args = require "lutra.internal.args"
local collective_record = require "lutra.placement.collective_record"
local core = require "lutra.core"
local element_loops = require "lutra.placement.element_loops"
local event_reader = require "lutra.placement.event_reader"
local provenance = require "lutra.placement.provenance"

local LintSession = {}
LintSession.__index = LintSession

-- Returns the line of the user's program that is running, "train.lua:12", or nil.
local function user_line()
  for level = 2, math.huge do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if not args.is_library(info) then return info.short_src .. ":" .. info.currentline end
  end
end

-- Replaces the function t[name] by wrap(original), and adds the restoration to self.undo.
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

-- Adds the state tensors of an optimizer that are on another device than their parameter to a
-- list.
local function check_state(misplaced_states, optimizer)
  local is_tensor = require("lutra").is_tensor
  for p, state in pairs(optimizer.state) do
    for key, value in pairs(state) do
      if is_tensor(value) and value.ndim > 0 and value.device ~= p.device then
        table.insert(misplaced_states, {where = user_line(), name = optimizer.__name, key = key,
          bytes = value.nbytes, from = value.device, to = p.device})
      end
    end
  end
end

-- The replacement functions do not reference the session, so that one in an abandoned coroutine is
-- collected, which restores the originals.
local function watch_optimizers(self)
  local misplaced_states = self.misplaced_states
  replace(self, require "lutra.optim.optimizer", "step", function(original)
    return function(optimizer, ...)
      check_state(misplaced_states, optimizer)
      return original(optimizer, ...)
    end
  end)
end

--- Returns a session, which observes until it is closed (`<close>` or :close()). It keeps the first
-- `limit` events.
function LintSession.new(limit)
  local self = setmetatable({undo = {}, misplaced_states = {}}, LintSession)
  watch_clocks(self)
  watch_optimizers(self)
  self.reader = event_reader.new(limit)
  return self
end

--- Stops observing and restores the replaced functions. May be called again.
function LintSession:close()
  for i = #self.undo, 1, -1 do self.undo[i]() end
  self.undo = {}
  if self.reader then self.reader:close() end
end
LintSession.__close, LintSession.__gc = LintSession.close, LintSession.close

local function is_accelerator(device) return device ~= "cpu" and device ~= "meta" end

-- Counts the kernels of devices, in total and those not synchronized with since the last read of
-- the clock (`launched`, by device).
local function count_kernel(record, launched, e)
  record.kernels = record.kernels + 1
  launched[e.to] = (launched[e.to] or 0) + 1
  record.elements:kernel(e)
end

-- Adds a copy to record.copies.
local function add_copy(record, downloads, e)
  e.kernels, e.first = record.kernels, downloads:of(e)
  downloads:copy(e)
  record.elements:copy(e)
  table.insert(record.copies, e)
end

--- Returns the record {copies, elements, clocks, misplaced_states, collectives, link, dropped}. A
-- copy is an event with two more fields: `kernels`, the number of kernels that the devices ran
-- before it, and `first`, the copy that transferred the same bytes from a device, or nil.
-- `elements` is described in element_loops.lua, `collectives` in collective_rules.lua. A clock is a
-- read {where, launched = the number of kernels launched since the previous read and not
-- synchronized with, device}.
function LintSession:record()
  local record = {copies = {}, elements = element_loops.new(), clocks = {},
    misplaced_states = self.misplaced_states, kernels = 0, link = self.reader.link,
    dropped = self.reader:dropped()}
  local downloads, exchanges = provenance.new(), collective_record.new()
  local launched = nil -- nil until the clock is first read
  local copied = nil -- the depth of the last copy, which belongs to an op of lower depth
  for e in self.reader:events() do
    exchanges:add(e)
    if e.kind == "op" and is_accelerator(e.to) then
      if not e.kernel then
        record.elements:view(e)
      elseif not (copied and copied > e.depth) then
        count_kernel(record, launched or {}, e)
      end
    elseif e.kind == "op" then
      downloads:op(e)
    elseif e.kind == "copy" then
      copied = e.depth
      add_copy(record, downloads, e)
      if launched and e.blocking then launched[e.from], launched[e.to] = nil, nil end
    elseif e.kind == "sync" and not e.comm then
      if launched then launched[e.to] = nil end
    elseif e.kind == "region" and e.name == "clock" then
      local device, count = next(launched or {})
      table.insert(record.clocks, {where = e.where, launched = count or 0, device = device})
      launched = {}
    end
    if e.depth == 0 then copied = nil end
  end
  record.collectives = exchanges.list
  return record
end

--- Returns the findings so far; see lt.placement.lint.
function LintSession:findings()
  return require("lutra.placement.findings").of(self:record())
end

return LintSession
