--- The command :prof: a profile of a piece of code.

local command_line = require "lutra.repl.command_line"
local style = require "lutra.repl.style"

local prof = {}

local usage = ":prof [--sort KEY] [--by op|line] [--rows N] [--trace FILE] CODE"

local known = {
  ["--sort"] = command_line.one_of("time", "total", "calls", "bytes", "name"),
  ["--by"] = command_line.one_of("op", "line"),
  ["--rows"] = command_line.count,
  ["--trace"] = command_line.text,
}

--- `:prof CODE` runs the code once, as a cell: its value is shown and stored in _. Then it prints a
-- table of the ops: calls, time, bytes, device, and copies. --trace FILE also writes the events
-- for Perfetto.
function prof.prof(session, text)
  local values, code = command_line.leading_options("prof", text, known, usage)
  local f, made = session:compile(code, "prof")
  if not f then error(made:match "^[^\n]*", 0) end -- without the excerpt of the line
  local packed = table.pack(require("lutra.profiler").profile(f))
  local profile = packed[1]
  session:results(table.pack(table.unpack(packed, 2, packed.n)), made.quiet)
  io.stdout:write(profile:table{
    sort_by = values["--sort"],
    group_by = values["--by"],
    row_limit = values["--rows"] or 25,
    width = style.width(),
  }, "\n")
  local path = values["--trace"]
  if path then
    local ok, why = pcall(profile.export_chrome_trace, profile, path)
    if not ok then
      profile:close()
      error("prof: " .. why, 0)
    end
    io.stdout:write(("wrote %s: open it at ui.perfetto.dev or chrome://tracing\n"):format(path))
  end
  profile:close()
end

return prof
