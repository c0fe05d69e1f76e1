--- The command :transfers: the copies between devices and the synchronizations of a piece of code.

local device_map = require "lutra.repl.device_map"
local command_line = require "lutra.repl.command_line"
local occupancy = require "lutra.repl.occupancy"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local transfers = {}

local usage = ":transfers [--svg FILE] CODE"
local EVENTS = 200000 -- the limit of events, which bounds the memory of an endless loop

-- The last trace of each session, with its code and the devices' memory after it: {trace, code,
-- devices}.
local last = setmetatable({}, {__mode = "k"})

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- Returns the memory in use on the devices that the program has used. Unreachable tensors are
-- collected first; the second collection frees what finalizers of the first released.
local function remaining_memory(session)
  collectgarbage()
  collectgarbage()
  return occupancy.collect(session, require("lutra.core")._trace.devices())
end

-- Returns the trace as text for the terminal.
local function text_of(seen)
  local lanes = require "lutra.internal.plot.lanes"
  local picture = lanes.read(seen.trace.events)
  local width = style.width() - 1
  local view = {width = width, utf8 = texts.is_utf8(), paint = style.paint}
  local lines = lines_of(seen.trace:table(width))
  if #picture.lanes > 0 then
    if #lines > 1 then lines[1] = style.paint("heading", lines[1]) end
    for _, line in ipairs(lanes.lines(picture, view)) do lines[#lines + 1] = line end
    lines[#lines + 1] = texts.wrap(lanes.totals(picture), width, 2)
    if not picture.virtual and #picture.lanes > 1 then
      lines[#lines + 1] = style.paint("faint", texts.wrap(lanes.note, width, 2))
    end
    for _, line in ipairs(device_map.short(seen.devices, view)) do lines[#lines + 1] = line end
  end
  local text = table.concat(lines, "\n")
  return texts.is_utf8() and text or (text:gsub("µs", "us"))
end

local function picture_of(seen)
  local lanes = require "lutra.internal.plot.lanes"
  local picture = lanes.read(seen.trace.events)
  local text = seen.trace:table(100)
  if #picture.lanes > 0 then
    text = text .. "\n" .. texts.wrap(lanes.totals(picture), 100, 2)
    if not picture.virtual and #picture.lanes > 1 then
      text = text .. "\n" .. texts.wrap(lanes.note, 100, 2)
    end
  end
  local lines = lines_of(text)
  local view = {width = 100, utf8 = true, paint = function(_, part) return part end}
  for _, line in ipairs(#picture.lanes > 0 and device_map.short(seen.devices, view) or {}) do
    lines[#lines + 1] = line
  end
  return require("lutra.internal.plot.lanes_svg").text(picture, seen.code, lines)
end

local function show(seen)
  require("lutra.repl.rich.show")(text_of(seen), function()
    return {["image/svg+xml"] = picture_of(seen)}
  end)
end

-- Returns true, or nil and the reason.
local function write_svg(seen, path)
  local ok, why = require("lutra.repl.files").write(path, picture_of(seen))
  if ok then io.stdout:write("wrote the picture to ", path, "\n") end
  return ok, why and "transfers: cannot write " .. why
end

-- Calls f and records its events; returns its packed results. When f fails, the events until then
-- are shown before the error.
local function listen(session, f, code, path)
  local seen = {code = code}
  local function take(listener)
    seen.trace = require("lutra.placement.trace").new(listener)
    seen.devices = remaining_memory(session)
    last[session] = seen
  end
  local listener <close> = require("lutra.placement.event_reader").new(EVENTS)
  local after <close> = setmetatable({}, {__close = function(_, failure) -- luacheck: ignore after
    if failure == nil then return end
    take(listener)
    show(seen)
    local ok, why = true, nil
    if path then ok, why = write_svg(seen, path) end
    if not ok then session:print_error(why) end
  end})
  local results = table.pack(f())
  take(listener)
  return results
end

--- `:transfers CODE` runs the code once, as a cell: its value is shown and stored in _. Then it
-- prints the copies between devices and the synchronizations, grouped by line; below a timeline of
-- the host and of each stream, with the share of time that it was busy; then the memory still in
-- use on each device that was used, after a garbage collection. On emulated devices with a link
-- (--emulate cuda:2,link=pcie4) times are those of the link, the same on every run. Without code
-- it shows the last trace again. --svg FILE also writes it as a picture, which a notebook
-- shows, too.
function transfers.transfers(session, text)
  local values, code = command_line.leading_options("transfers", text,
    {["--svg"] = command_line.text}, usage, true)
  local path = values["--svg"]
  if code:match "%S" then
    local f, made = session:compile(code, "transfers")
    if not f then error(made:match "^[^\n]*", 0) end -- without the excerpt of the line
    session:results(listen(session, f, code, path), made.quiet)
  elseif not last[session] then
    error("transfers: expected code, got none, and no earlier code was traced\nhint: " .. usage, 0)
  end
  show(last[session])
  if not path then return end
  local ok, why = write_svg(last[session], path)
  if not ok then error(why, 0) end
end

return transfers
