--- What a measurement measures: the fields of a Timer that describe its code, and their text.
--
-- A task is a plain table {stmt, setup, label, sub_label, description, env, num_threads}.

local args = require "lutra.internal.args"

local task = {}

task.fields = {"stmt", "setup", "label", "sub_label", "description", "env", "num_threads"}

local parse = args.signature("Measurement", "string stmt = '', string setup = '', "
  .. "string? label = nil, string? sub_label = nil, string? description = nil, "
  .. "string? env = nil, int(>=1) num_threads = 1")

--- Returns a task with the fields of a table, checked; raises an error of Measurement for other
-- fields.
function task.new(fields)
  local values, new = next(fields) and table.pack(parse(fields)) or table.pack(parse()), {}
  for i, name in ipairs(task.fields) do new[name] = values[i] end
  return new
end

--- Returns a string that is the same for tasks with the same fields only.
function task.key(t)
  local parts = {}
  for i, name in ipairs(task.fields) do
    parts[i] = t[name] == nil and "nil" or ("%q"):format(t[name])
  end
  return table.concat(parts, " ")
end

-- Indents the lines with text by two spaces.
local function indented(text)
  return (("\n" .. text):gsub("\n([^\n]*%S)", "\n  %1"):sub(2))
end

--- Returns the title of a task: its label, or its code.
function task.title(t)
  local sub_label = t.sub_label ~= "" and t.sub_label or nil
  if t.label or not t.stmt:find "\n" then
    return (t.label or t.stmt) .. (sub_label and ": " .. sub_label or "")
  end
  return ("stmt:%s\n%s"):format(sub_label and (" (%s)"):format(sub_label) or "", indented(t.stmt))
end

local function setup_text(t)
  if t.setup == "" then return "" end
  return t.setup:find "\n" and "setup:\n" .. indented(t.setup) or "setup: " .. t.setup
end

--- Returns the lines that describe a task.
function task.summary(t)
  local sections = {}
  for _, text in ipairs {task.title(t), t.description or "", setup_text(t)} do
    if text ~= "" then
      sections[#sections + 1] = text:find "\n" and text .. "\n" or text
    end
  end
  return table.concat(sections, "\n")
end

return task
