--- The command :set: the options of the prompt.

local options = require "lutra.repl.options"
local style = require "lutra.repl.style"

local set = {}

local function line(row)
  local text = ("  %-14s %-8s "):format(row.name, options.text(row))
  local doc = row.doc
  if #text + #doc > style.width() then return text .. "\n      " .. style.paint("faint", doc) end
  return text .. style.paint("faint", doc)
end

local function fail(why) error("set: " .. why, 0) end

--- `:set` lists the options, `:set items` shows one, `:set items 100` or `:set items = 100` changes
-- it for this session; require("lutra.repl").set{items = 100} in init.lua changes it for all
-- sessions.
function set.set(_, text)
  if text == "" then
    for _, row in ipairs(options.rows) do io.stdout:write(line(row), "\n") end
    return
  end
  local name, value = text:match "^(%S-)%s*=%s*(.*)$"
  if not name then name, value = text:match "^(%S+)%s*(.*)$" end
  local row, why = options.find(name)
  if not row then fail(why) end
  if value ~= "" then
    value = value:match "^([\"'])(.*)%1$" and value:sub(2, -2) or value
    local ok, wrong = options.set(name, value)
    if not ok then fail(wrong) end
  end
  io.stdout:write(line(row), "\n")
end

return set
