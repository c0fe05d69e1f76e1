--- Notebook files (.ipynb): nbformat 4.0 to 4.5 are read, 4.5 is written.
--
-- A notebook is a table {cells, metadata}; a cell is a table
--
--     kind      "code", "markdown" or "raw"
--     source    its text
--     tags      a list of strings
--     id        a string that is unique in the notebook, or nil: one is chosen when it is written
--     outputs   of code: a list of decoded outputs
--     count     of code: the number of its execution, or nil
--     metadata  other metadata: an ordered table
--     attachments  files of a markdown cell, decoded, or nil
--
-- Invariant: what this module does not know in metadata and outputs is written as it was read.

local json = require "lutra.internal.json"
local ordered_map = require "lutra.internal.ordered_map"

local notebook_file = {}

local function wrong(message, ...) error({message = message:format(...)}, 0) end

-- Returns whether a decoded value is an object; arrays are plain tables.
local function is_object(value) return ordered_map.is(value) end

local function is_list(value)
  return type(value) == "table" and not ordered_map.is(value) and value ~= json.null
end

-- Returns a multi-line string, which is stored as a string or as a list of lines; nil for others.
local function joined(value)
  if type(value) == "string" then return value end
  if not is_list(value) then return nil end
  for _, line in ipairs(value) do
    if type(line) ~= "string" then return nil end
  end
  return table.concat(value)
end

-- Marks the arrays in a decoded value, so that empty ones are written as arrays. Returns the value.
local function marked(value)
  if type(value) ~= "table" or value == json.null then return value end
  for _, inner in pairs(value) do marked(inner) end
  return is_list(value) and json.array(value) or value
end

-- ---- reading

local kinds = {code = true, markdown = true, raw = true}

local function read_tags(metadata)
  local tags = {}
  for _, tag in ipairs(is_list(metadata.tags) and metadata.tags or {}) do
    if type(tag) == "string" then tags[#tags + 1] = tag end
  end
  metadata.tags = nil
  return tags
end

-- Reads the cell number i; `seen` has the ids of the cells before it.
local function read_cell(cell, i, seen)
  if not is_object(cell) or not kinds[cell.cell_type] then
    wrong("expected a cell of type code, markdown or raw as cell %d", i)
  end
  local source = joined(cell.source)
  if not source then wrong("expected a string or a list of strings as source of cell %d", i) end
  local metadata = is_object(cell.metadata) and cell.metadata or ordered_map.new()
  local id = cell.id
  local valid = type(id) == "string" and #id <= 64 and id:find "^[%w_-]+$" and not seen[id]
  if valid then seen[id] = true end
  return {
    kind = cell.cell_type, source = source, tags = read_tags(metadata), id = valid and id or nil,
    metadata = metadata, count = math.tointeger(cell.execution_count),
    outputs = cell.cell_type == "code" and (is_list(cell.outputs) and cell.outputs or {}) or nil,
    attachments = is_object(cell.attachments) and cell.attachments or nil,
  }
end

local function read_notebook(text)
  local value, why = json.decode((text:gsub("^\xEF\xBB\xBF", "")))
  if not value then wrong("it is not valid JSON: %s", why) end
  if not is_object(value) or math.type(value.nbformat) ~= "integer" then
    wrong "expected a JSON object with the field nbformat"
  end
  if value.nbformat ~= 4 then
    wrong("expected nbformat 4, got %d\nhint: jupyter nbconvert --to notebook --nbformat 4 FILE",
      value.nbformat)
  end
  if not is_list(value.cells) then wrong "expected a list of cells" end
  local cells, seen = {}, {}
  for i, cell in ipairs(value.cells) do cells[i] = read_cell(cell, i, seen) end
  return {cells = cells, metadata = is_object(value.metadata) and value.metadata
    or ordered_map.new()}
end

--- Parses the text of a notebook file. Returns the notebook, or nil and the reason.
function notebook_file.decode(text)
  local ok, result = pcall(read_notebook, text)
  if ok then return result end
  if type(result) ~= "table" then error(result, 0) end
  return nil, result.message
end

-- ---- writing

--- Returns the metadata of a notebook for Lutra's kernel.
function notebook_file.metadata()
  return ordered_map.new{
    {"kernelspec", ordered_map.new{
      {"display_name", "Lua 5.4 (Lutra)"}, {"language", "lua"}, {"name", "lutra"}}},
    {"language_info", ordered_map.new{{"codemirror_mode", "lua"}, {"file_extension", ".lua"},
      {"mimetype", "text/x-lua"}, {"name", "lua"}, {"pygments_lexer", "lua"},
      {"version", _VERSION:match "[%d.]+"}}},
  }
end

--- Returns an empty notebook for Lutra's kernel.
function notebook_file.new() return {cells = {}, metadata = notebook_file.metadata()} end

--- Returns a new cell.
function notebook_file.cell(kind, source, tags)
  return {kind = kind, source = source, tags = tags or {}, metadata = ordered_map.new(),
    outputs = kind == "code" and {} or nil}
end

-- Splits a string into lines with their ends, the usual form in notebook files.
local function lines_of(text)
  local list = json.array{}
  for line in text:gmatch "[^\n]*\n?" do
    if line ~= "" then list[#list + 1] = line end
  end
  return list
end

-- Returns the id of each cell: its own, or one made of its number where it has none of its own.
local function ids_of(cells)
  local ids, taken = {}, {}
  for i, cell in ipairs(cells) do
    if cell.id and not taken[cell.id] then ids[i], taken[cell.id] = cell.id, true end
  end
  for i in ipairs(cells) do
    local n = i
    while not ids[i] do
      local id = ("cell-%d"):format(n)
      if not taken[id] then ids[i], taken[id] = id, true end
      n = n + #cells
    end
  end
  return ids
end

local function write_cell(cell, id)
  local metadata = ordered_map.new()
  for name, value in pairs(cell.metadata) do metadata[name] = marked(value) end
  if #cell.tags > 0 then metadata.tags = json.array{table.unpack(cell.tags)} end
  local out = ordered_map.new{{"attachments", cell.attachments}, {"cell_type", cell.kind}}
  if cell.kind == "code" then out.execution_count = cell.count or json.null end
  out.id = id
  out.metadata = metadata
  if cell.kind == "code" then out.outputs = marked(json.array(cell.outputs or {})) end
  out.source = lines_of(cell.source)
  return out
end

--- Returns the text of the file of a notebook.
function notebook_file.encode(notebook)
  local cells, ids = json.array{}, ids_of(notebook.cells)
  for i, cell in ipairs(notebook.cells) do cells[i] = write_cell(cell, ids[i]) end
  return json.indented(ordered_map.new{
    {"cells", cells}, {"metadata", marked(notebook.metadata)}, {"nbformat", 4},
    {"nbformat_minor", 5},
  }) .. "\n"
end

return notebook_file
