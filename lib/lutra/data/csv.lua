--- data.read_csv: a CSV file as columns of inferred types.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Csv = require "lutra.data.csv_data"
local fields = require "lutra.data.csv_fields"

-- ---- types of columns

local TRUE = {["true"] = true, True = true, TRUE = true}
local FALSE = {["false"] = true, False = true, FALSE = true}
local INFINITE = {inf = math.huge, Inf = math.huge, infinity = math.huge, Infinity = math.huge}

-- Returns the number in a string, nil when it is none. Only decimal numbers count, with a point in
-- any locale.
local function to_number(text)
  local sign, digits = text:match "^%s*([+-]?)([%w.+-]+)%s*$"
  if not digits then return nil end
  if INFINITE[digits] then return sign == "-" and -math.huge or math.huge end
  if not digits:find "^%d*%.?%d*[eE]?[+-]?%d*$" or not digits:find "%d" then return nil end
  return tonumber(sign .. digits)
end

-- Returns the values of a column as booleans, nil unless all are.
local function booleans(texts, missing)
  local values = {}
  for i, text in ipairs(texts) do
    if missing[i] or not (TRUE[text] or FALSE[text]) then return nil end
    values[i] = TRUE[text] or false
  end
  return #values > 0 and values or nil
end

-- Returns the values of a column as numbers, NaN for missing ones, and whether all are integers;
-- nil unless all others are numbers.
local function numbers(texts, missing)
  local values, whole, any = {}, true, false
  for i, text in ipairs(texts) do
    local value = missing[i] and lt.nan or to_number(text)
    if not value then return nil end
    any = any or not missing[i]
    whole = whole and math.type(value) == "integer"
    values[i] = value
  end
  return any and values or nil, whole
end

-- Returns the values of a column: a bool, int64 or float64 tensor, or a list of strings.
local function infer(texts, missing)
  local flags = booleans(texts, missing)
  if flags then return lt.tensor(flags, {device = "cpu"}) end
  local values, whole = numbers(texts, missing)
  if not values then
    for i in pairs(missing) do texts[i] = "" end
    return texts
  end
  return lt.tensor(values, {dtype = whole and "int64" or "float64", device = "cpu"})
end

-- ---- reading

local parse = args.signature("read_csv", "string path, string delimiter = ',', "
  .. "bool header = true, list? names = nil, list? columns = nil, any? missing_values = nil, "
  .. "'nan'|'error' missing = 'nan', any? quote = nil, int(>=0) skip = 0, "
  .. "int(>=0)? max_rows = nil")

local MISSING = {"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"}

local function set_of(list)
  local set = {}
  for _, text in ipairs(list) do set[text] = true end
  return set
end

local function read_all(path)
  local file, reason = io.open(path, "rb")
  args.check(file, "read_csv: cannot open %s", reason)
  local text, failure = file:read "a"
  file:close()
  args.check(text, "read_csv: cannot read %s: %s", path, failure)
  return text
end

-- Returns the names of the columns from the first record, or column_1, column_2, ...
local function column_names(options, first)
  local names = options.names
  if not names then
    names = {}
    for i = 1, #first do names[i] = options.header and first[i] or "column_" .. i end
  end
  args.check(#names == #first, "read_csv: expected %d names for argument 'names', got %d", #first,
    #names)
  local seen = {}
  for i, name in ipairs(names) do
    args.expect(type(name) == "string", "read_csv", "a string", ("names[%d]"):format(i), name)
    args.check(not seen[name], "read_csv: expected different names of columns, got '%s' for the "
      .. "columns %s and %d\nhint: names = {...}", name, seen[name] or 0, i)
    seen[name] = i
  end
  return names, seen
end

-- Collects the texts of all records by column, and which are missing.
local function collect(options, reader, first, names)
  local texts, missing = {}, {}
  for k = 1, #names do texts[k], missing[k] = {}, {} end
  local is_missing, rows = set_of(options.missing_values), 0
  local values, columns = first, {}
  if options.header then values, columns = reader:record() end
  while values and rows < (options.max_rows or math.huge) do
    rows = rows + 1
    if #values ~= #names then
      error({line = reader.record_line, column = columns[math.min(#values, #names + 1)] or 1,
        message = ("expected %d fields, as in the first line, got %d"):format(#names, #values)}, 0)
    end
    for k = 1, #names do
      texts[k][rows] = values[k]
      if is_missing[values[k]] then
        if options.missing == "error" then
          error({line = reader.record_line, column = columns[k] or 1,
            message = ("expected a value of the column '%s', got %q"):format(names[k],
              values[k])}, 0)
        end
        missing[k][rows] = true
      end
    end
    values, columns = reader:record()
  end
  return texts, missing, rows
end

-- Returns which columns are read: a set of numbers, from names or numbers.
local function chosen(options, names, number_of)
  if not options.columns then return nil end
  local set = {}
  for i, column in ipairs(options.columns) do
    local k = number_of[column] or (math.type(column) == "integer" and names[column] and column)
    args.expect(k, "read_csv", "the name or number of a column", ("columns[%d]"):format(i), column)
    set[k] = true
  end
  return set
end

local function read(options, text)
  local reader = fields.reader(text, options.delimiter, options.quote)
  for _ = 1, options.skip do
    local line_end = text:find("\n", reader.position, true) or #text
    reader.position, reader.line = line_end + 1, reader.line + 1
    reader.line_start = line_end + 1
  end
  local first = reader:record()
  if not first then
    error({line = reader.line, column = 1, message = "the file has no lines"}, 0)
  end
  local names, number_of = column_names(options, first)
  local wanted = chosen(options, names, number_of)
  local texts, missing, rows = collect(options, reader, first, names)
  local csv = setmetatable({names = {}, columns = {}, missing = {}, rows = rows}, Csv)
  for k, name in ipairs(names) do
    if not wanted or wanted[k] then
      csv.names[#csv.names + 1] = name
      local count = 0
      for _ in pairs(missing[k]) do count = count + 1 end
      csv.missing[name] = count
      csv.columns[name] = infer(texts[k], missing[k])
    end
  end
  return csv
end

--- data.read_csv(path, {delimiter = ",", header = true, names, columns, missing_values, missing =
-- "nan", quote = '"', skip = 0, max_rows}): reads a file in the CSV format of RFC 4180.
--
-- The first line has the names of the columns; with `header = false` it has values, and the names
-- are `names`, or column_1, column_2 and so on. `columns` chooses columns by name or number. `skip`
-- lines at the start are not read, and at most `max_rows` records are. `quote = false` reads quotes
-- as any other character.
--
-- A column of true and false is a bool tensor, of integers an int64 tensor, of other numbers a
-- float64 tensor, and any other a list of strings. A value is missing when it is one of
-- `missing_values`, by default an empty field, NA, NaN or null: a number is then NaN, a string "";
-- with missing = "error" it is an error.
--
-- The result has the fields `names` (a list), `columns` (values by name), `missing` (the number of
-- missing values by name) and `rows`; csv:tensor() combines columns. Raises an error with line and
-- column for a file that cannot be read, or whose lines differ in the number of fields.
local function read_csv(...)
  local path, delimiter, header, names, columns, missing_values, missing, quote, skip, max_rows =
    parse(...)
  args.path("read_csv", "path", path)
  args.check(#delimiter == 1 and not delimiter:find "[\r\n]",
    "read_csv: expected one character for argument 'delimiter', got %q", delimiter)
  if quote == nil then quote = '"' end
  args.check(quote == false or (type(quote) == "string" and #quote == 1 and quote ~= delimiter),
    "read_csv: expected one character or false for argument 'quote', got %s", args.show(quote))
  missing_values = missing_values == nil and MISSING or missing_values
  args.expect(args.is_plain(missing_values), "read_csv", "a list of strings", "missing_values",
    missing_values)
  local options = {delimiter = delimiter, header = header, names = names, columns = columns,
    missing_values = missing_values, missing = missing, quote = quote, skip = skip,
    max_rows = max_rows}
  local ok, result = pcall(read, options, read_all(path))
  if ok then return result end
  if type(result) ~= "table" then error(result, 0) end
  return args.fail("read_csv: cannot read %s:%d:%d: %s", path, result.line, result.column,
    result.message)
end

return read_csv
