--- The command :where: the memory of a tensor, and the parts of its storage that it and other
-- tensors cover.

local bars = require "lutra.internal.plot.bars"
local core = require "lutra.core"
local command_line = require "lutra.repl.command_line"
local inspect = require "lutra.repl.inspect"
local nearest = require "lutra.internal.nearest"
local storage = require "lutra.internal.plot.storage"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local where = {}

local LISTED = 200 -- the maximum number of tensors of a module or a table
local VIEWS = 6 -- the maximum number of bars of a storage
local NAMES, NAME = 20, 60 -- the maximum number of names of a storage, and columns of each
local LABEL, BAR = 16, 40 -- columns of a bar's name and of a bar, unless each element has a column

local words = {used = "its elements", part = "partly", free = "rest"}

-- Returns the paths that lead to this memory, such as "a, b.weight", or nil.
local function names_of(t, holders)
  local names, seen, left = {}, {}, 0
  for _, holder in ipairs(holders[core._memory(t)] or {}) do
    if not seen[holder.path] then
      if #names < NAMES then
        names[#names + 1] = texts.cut(holder.path, NAME)
      else
        left = left + 1
      end
    end
    seen[holder.path] = true
  end
  if #names == 0 then return nil end
  local more = left > 0 and (" and %s more"):format(texts.count(left)) or ""
  return table.concat(names, ", ") .. more
end

local function address(t, offset)
  if t.device == "meta" then return "none: a tensor on meta has no data" end
  if t:data_ptr() == 0 then return "none: it is empty" end
  return ("0x%x"):format(t:data_ptr() - offset * t.itemsize)
end

local function part_of(t)
  local _, bytes = core._memory(t)
  local part = t.nbytes
  if part == bytes then return texts.bytes(part) .. ", all of its storage" end
  return ("%s, of a storage of %s%s"):format(texts.bytes(part), texts.bytes(bytes),
    part > bytes and ": elements are repeated" or "")
end

-- Returns what t is a view of, "x" or "a tensor that no variable holds", when it is known.
local function base_of(t, holders)
  local base = core._base(t)
  if not base then return nil end
  for _, holder in ipairs(holders[core._memory(base)] or {}) do
    if holder.tensor == base then return holder.path end
  end
  return ("a tensor %s that no variable holds"):format(inspect.shape(base))
end

local function list(strides)
  return "{" .. table.concat(strides, ", ") .. "}"
end

local function view_of(t)
  return {offset = t:storage_offset(), shape = t.shape, strides = t:stride(), itemsize = t.itemsize}
end

-- Returns a key that is equal for tensors which cover the same elements.
local function key_of(t)
  return ("%d %s %s %s"):format(t:storage_offset(), inspect.shape(t), list(t:stride()), t.dtype)
end

-- Returns the views on the storage of t, t first: a list as in lutra.internal.plot.storage, each
-- with the names of the tensors that cover exactly it; and the number of views beyond VIEWS.
local function views_of(t, holders, expression)
  local own = view_of(t)
  local views, by_key, left = {own}, {[key_of(t)] = own}, 0
  for _, holder in ipairs(holders[core._memory(t)] or {}) do
    local key = key_of(holder.tensor)
    local view = by_key[key]
    if not view then
      view = view_of(holder.tensor)
      by_key[key] = view
      if #views < VIEWS then views[#views + 1] = view else left = left + 1 end
    end
    if not view.name then
      view.name = holder.path
    elseif #view.name <= NAME then
      view.name = view.name .. ", " .. holder.path
    end
  end
  own.name = own.name or expression
  return views, left
end

-- Returns rows of {title, text} about one tensor.
local function describe(t, holders)
  local rows = {}
  local _, bytes = core._memory(t)
  local function add(title, text) rows[#rows + 1] = {title, text} end
  add("device", t.device .. (t:is_pinned() and ", pinned memory" or ""))
  add("storage", address(t, t:storage_offset()))
  add("offset", texts.plural(t:storage_offset(), "element"))
  add("shape", inspect.shape(t) .. " " .. t.dtype)
  add("strides", list(t:stride()) .. (t:is_contiguous() and ", contiguous" or ", not contiguous"))
  add("bytes", part_of(t))
  local extent = storage.extent(view_of(t), bytes)
  if extent then add("extent", extent) end
  local base = base_of(t, holders)
  if base then add("view of", base) end
  local names = names_of(t, holders)
  if names then add("held by", names) end
  if t.requires_grad then
    add("grad", t.grad_fn and "result of " .. t.grad_fn
      or t.grad and "leaf, its grad is on " .. t.grad.device or "leaf, no grad yet")
  end
  return rows
end

local function legend(count, width, seen)
  local items, text = {}, bars.marks(texts.is_utf8())
  for _, kind in ipairs {"used", "part", "free"} do
    if seen[kind] then items[#items + 1] = text[kind] .. " " .. words[kind] end
  end
  items[#items + 1] = count == width and "a column is an element"
    or "a column is about " .. texts.plural((count + width // 2) // width, "element")
  return texts.items(items, style.width() - 1)
end

local function more_views(left) return ("and %s"):format(texts.plural(left, "more view")) end

-- Appends a bar of the storage for each view on it to a list of lines.
local function draw(lines, t, holders, expression)
  local _, bytes = core._memory(t)
  local count = bytes // t.itemsize
  if count == 0 then return end
  local views, left = views_of(t, holders, expression)
  local label, seen = 6, {}
  for _, view in ipairs(views) do
    label = math.max(label, math.min(LABEL, texts.width(view.name)))
  end
  local room = style.width() - 1 - label - 5
  local width = count <= room and count or math.min(BAR, room)
  for _, view in ipairs(views) do
    local columns = storage.columns(view, bytes, width)
    for _, kind in ipairs(columns) do seen[kind] = true end
    lines[#lines + 1] = "  " .. texts.pad(texts.cut(view.name, label), label) .. " "
      .. bars.line(columns, texts.is_utf8(), style.paint)
  end
  if left > 0 then lines[#lines + 1] = "  " .. more_views(left) end
  for _, line in ipairs(legend(count, width, seen)) do
    lines[#lines + 1] = style.paint("faint", line)
  end
end

-- Returns the description of a tensor as text for the terminal.
local function text_of(t, holders, expression)
  local lines = {}
  for i, row in ipairs(describe(t, holders)) do
    lines[i] = style.paint("name", texts.pad(row[1], 9))
      .. texts.wrap(row[2], style.width() - 1, 9)
  end
  draw(lines, t, holders, expression)
  return table.concat(lines, "\n")
end

local function picture_of(t, holders, name)
  local _, bytes = core._memory(t)
  local lines, views, left = {}, views_of(t, holders, name)
  for _, row in ipairs(describe(t, holders)) do
    for line in (texts.pad(row[1], 9) .. texts.wrap(row[2], 90, 9)):gmatch "[^\n]+" do
      lines[#lines + 1] = line
    end
  end
  if left > 0 then table.insert(lines, 1, more_views(left)) end
  return require("lutra.internal.plot.storage_svg").text{
    title = name, bytes = bytes, itemsize = t.itemsize, views = views, lines = lines,
  }
end

local function show_tensor(t, holders, expression)
  require("lutra.repl.rich.show")(text_of(t, holders, expression), function()
    return {["image/svg+xml"] = picture_of(t, holders, expression)}
  end)
end

local function write_svg(t, holders, name, path)
  local ok, why = require("lutra.repl.files").write(path, picture_of(t, holders, name))
  if not ok then error("where: cannot write " .. why, 0) end
  io.stdout:write("wrote the picture to ", path, "\n")
end

local columns = {
  {key = "path", title = "tensor", rank = 2, least = 10},
  {key = "shape", title = "shape", rank = 5, least = 8},
  {key = "dtype", title = "dtype", rank = 6, least = 5},
  {key = "device", title = "device", rank = 1, least = 6},
  {key = "address", title = "address", rank = 3, least = 14},
  {key = "bytes", title = "bytes", rank = 4, least = 8, right = true},
}

-- Prints a line for every tensor of a module or a table.
local function show_all(value, name)
  local rows, count = {}, 0
  inspect.tensors(value, "", function(path, t)
    count = count + 1
    if count > LISTED then return end
    rows[count] = {
      path = path, shape = inspect.shape(t), dtype = t.dtype, device = t.device,
      address = t.device == "meta" and "none" or ("0x%x"):format(t:data_ptr()),
      bytes = texts.bytes(inspect.bytes(t)),
    }
  end, nil, function(path)
    count = count + 1
    if count <= LISTED then rows[count] = {path = path, shape = "freed"} end
  end)
  if count == 0 then error(("where: cannot find a tensor in %s"):format(name), 0) end
  local lines = texts.table(columns, rows, style.width() - 1)
  io.stdout:write(style.paint("heading", lines[1]), "\n", table.concat(lines, "\n", 2), "\n")
  if count > LISTED then
    io.stdout:write(("... %s\n"):format(texts.plural(count - LISTED, "more tensor")))
  end
end

-- Raises the error for a value that cannot be shown, with a suggestion.
local function fail(session, expression, value, wanted)
  local near
  if value == nil and expression:match "^[%a_][%w_]*$" then
    local names = {}
    for name in session:variables() do names[#names + 1] = name end
    near = nearest.find(expression, names)
  end
  error(("where: expected %s, got %s%s"):format(wanted,
    inspect.is_module(value) and "a module" or inspect.a(value),
    near and ("\nhint: did you mean '%s'?"):format(near) or ""), 0)
end

local function show(session, value, expression)
  if core._is_freed(value) then
    io.stdout:write(expression, " was freed: it has no memory\n")
  elseif core.is_tensor(value) then
    show_tensor(value, inspect.holders(inspect.variables(session)), expression)
  elseif type(value) == "table" then
    show_all(value, expression)
  else
    fail(session, expression, value, "a tensor, a module or a table of tensors")
  end
end

--- The address is that of the storage's first byte; `held by` lists the variables, and paths below
-- them, that share it. Each bar shows the storage from its first to its last element, one for each
-- tensor that covers other elements. For a module or a table: a line for each tensor in it. --svg
-- FILE writes the bars as a picture, which a notebook shows, too.
function where.where(session, text)
  local expression, options = command_line.options("where", text, {svg = "value"})
  local values = inspect.values(session, "where", expression)
  if options.svg then
    if values.n == 1 and core.is_tensor(values[1]) and not core._is_freed(values[1]) then
      local holders = inspect.holders(inspect.variables(session))
      return write_svg(values[1], holders, expression, options.svg)
    end
    fail(session, expression, values[1], "one tensor for option --svg")
  end
  for i = 1, math.max(values.n, 1) do
    if i > 1 then io.stdout:write "\n" end
    show(session, values[i], values.n < 2 and expression or "value " .. i)
  end
end

return where
