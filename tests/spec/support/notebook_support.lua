--- A stub of the notebook's front end (lutra.repl.front) that records what is shown.

local front = require "lutra.repl.front"

local support = {}

--- Calls f(log) with a notebook; log is the list of the calls of its methods: {method, arguments}.
-- Returns what f returns. The notebook is removed also when f fails.
function support.notebook(f)
  local log, stub = {}, {}
  for _, method in ipairs {"display", "update", "clear", "page"} do
    stub[method] = function(_, ...) log[#log + 1] = {method, ...} end
  end
  local _ <close> = setmetatable({}, {__close = function() front.notebook = nil end})
  front.notebook = stub
  return f(log)
end

--- Runs inputs in a new session with a notebook, in which `lt` is a variable. Returns the log, and
-- the texts of the results that the session would print.
function support.cells(inputs)
  local session, results = require("lutra.repl.session").new(), {}
  session:mark_builtin()
  session.locals:set("lt", require "lutra")
  function session:show(values)
    results[#results + 1] = self and
      require("lutra.repl.format_value").values(table.unpack(values, 1, values.n))
  end
  local log = support.notebook(function(log)
    for _, input in ipairs(inputs) do session:execute(input) end
    return log
  end)
  session:restore_globals()
  return log, results
end

--- Returns HTML without its elements: the text that is read, its parts separated by a space.
function support.text_of(html)
  local text = html:gsub("<[^>]*>", " "):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
  return (text:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&amp;", "&"))
end

--- Returns the cells of the rows of the tables in HTML: a list of lists of texts, headers included.
function support.rows_of(html)
  local rows = {}
  for row in html:gmatch "<tr>(.-)</tr>" do
    local cells = {}
    for cell in row:gmatch "<t[hd][^>]*>(.-)</t[hd]>" do
      cells[#cells + 1] = support.text_of(cell)
    end
    rows[#rows + 1] = cells
  end
  return rows
end

--- Returns the bytes of base64, decoded by coreutils.
function support.decoded(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local pipe = assert(io.popen("base64 -d < " .. path))
  local bytes = pipe:read "a"
  pipe:close()
  os.remove(path)
  return bytes
end

return support
