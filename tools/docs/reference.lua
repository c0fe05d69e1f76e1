-- Writes the reference as Markdown: a page for each family of ops, each class and each table of
-- the library, and one for tensors.
--
--   lutra [--emulate cuda:2] tools/docs/reference.lua FOLDER
--
-- Everything comes from where the library has it: the rows of lt.ops(), the signatures by which
-- functions read their arguments, the comments above them, the sections of src/tensor/ops.def. What
-- an op's page says about shapes, dtypes, gradients and errors is found by running its example.

local lt = require "lutra"
local catalogue = require "lutra.repl.help.catalogue"
local classes = require "lutra.repl.help.classes"
local examples = dofile "tools/docs/examples.lua"
local functions = require "lutra.repl.help.functions"
local builtin = require "lutra.repl.help.builtin"
local markdown = dofile "tools/docs/markdown.lua"
local ops = require "lutra.repl.help.ops"
local public = require "lutra.repl.help.public"
local signatures = require "lutra.repl.complete.signatures"
local source = require "lutra.repl.help.source"

local escape, code, block = markdown.escape, markdown.code, markdown.block

local reference = {}

-- ---- which page describes what

-- Name of an op -> {file, title}: the section of ops.def in which its row is.
local function families()
  local of, order, section = {}, {}, nil
  for line in io.lines "src/tensor/ops.def" do
    local title = line:match "^/%* %-+ (.-) %-+%s*%*/" or line:match "^/%* %-+ (.-)%s*%*/"
    if title then
      if not title:find "^elementwise" then title = title:gsub(":.*$", "") end
      title = title:gsub("^%l", string.upper)
      section = {file = "ops-" .. title:lower():gsub("[^%w]+", "-"), title = title, ops = {}}
      order[#order + 1] = section
    end
    local name = line:match "^LT_[%u_]+%(([%l_][%w_]*),"
    if name and section then of[name] = section end
  end
  return of, order
end

-- Returns the section of an op written in Lua: one for each file, titled by its first comment.
local function lua_section(op, sections, order)
  local path = debug.getinfo(op.source, "S").source:sub(2)
  local stem = path:match "([%w_]+)%.lua$"
  if not sections[stem] then
    local title = io.lines(path)():match "^%-%-%-* *(.-)[.:]?$"
    sections[stem] = {file = "ops-in-lua-" .. stem, title = title, ops = {}}
    order[#order + 1] = sections[stem]
  end
  return sections[stem]
end

local function op_families()
  local of, order = families()
  local sections = {}
  for _, op in ipairs(lt.ops()) do
    local callable = op.variants["function"] or op.variants.method or op.variants.in_place
      or next(op.namespaces) ~= nil
    local known = false
    local section = not op.call and of[op.name] or lua_section(op, sections, order)
    for _, other in ipairs(section.ops) do known = known or other.name == op.name end
    if callable and not op.name:find "^_" and not known and not (op.call and of[op.name]) then
      section.ops[#section.ops + 1] = op
      of[op.name] = section
    end
  end
  local used = {}
  for _, section in ipairs(order) do
    if #section.ops > 0 then used[#used + 1] = section end
  end
  return of, used
end

local family_of, family_list = op_families()

local address = {} -- public name -> "page.md#anchor"
local function anchor(name) return (name:gsub("[^%w_]", "-")) end

local function index_addresses(tables)
  for _, record in ipairs(tables) do
    address[record.name] = record.name .. ".md"
    for _, entry in ipairs(record.entries) do
      local at = record.name .. ".md#" .. anchor(entry.name)
      if entry.op then at = family_of[entry.op.name].file .. ".md#" .. anchor(entry.op.name) end
      if entry.kind == "class" then at = entry.name .. ".md" end
      address[entry.name] = entry.alias_of and address[entry.alias_of] or at
      for _, method in ipairs(entry.methods or {}) do
        address[method.name] = entry.name .. ".md#" .. anchor(method.name)
      end
    end
  end
  for _, object in ipairs(public.objects()) do
    address[object.name] = object.name .. ".md"
    for _, method in ipairs(object.methods) do
      address[method.name] = object.name .. ".md#" .. anchor(method.name)
    end
  end
  for _, entry in ipairs(public.tensor()) do
    address[entry.name] = entry.op and family_of[entry.op.name].file .. ".md#"
      .. anchor(entry.op.name) or "tensor.md#" .. anchor(entry.name)
  end
end

--- The address of a public name's entry, "nn.Linear.md", or nil.
function reference.address(name) return address[name] end

local function link(name)
  return address[name] and ("[%s](%s)"):format(code(name), address[name])
end

-- ---- pieces of an entry

local function heading(level, title, name)
  return ("%s %s { #%s }"):format(("#"):rep(level), title, anchor(name))
end

local function doc_text(lines)
  return lines and markdown.comment(lines, reference.address) or ""
end

-- The example of an entry, with the result where it is one expression.
local function example_text(entry)
  local text = examples.find(entry)
  if not text then return nil end
  if entry.op and (entry.op.example or not entry.op.call) then
    local expression, result = ops.example(entry.op, 80)
    return block("> " .. expression .. "\n" .. result)
  end
  return block(text)
end

local function parameters_table(params)
  local rows = {}
  for _, p in ipairs(params) do
    rows[#rows + 1] = {code(p.name), escape(p.text)}
  end
  return #rows > 0 and markdown.table({"Argument", "Expected"}, rows) or nil
end

local function fact(title, text) return ("**%s.** %s"):format(title, text) end

-- ---- pages of ops

local function op_entry(op)
  local out = {heading(2, op.name, op.name)}
  local function add(text) out[#out + 1] = text end
  add(block(table.concat(ops.signatures(op), "\n") .. "\n" .. ops.named_call(op)))
  add(markdown.sentence(op.doc, reference.address))
  add(parameters_table(ops.arguments(op)))
  add(fact("Returns", escape(ops.results(op))))
  if not op.call then
    add(fact("Shapes in the example", escape(ops.shapes(op))))
    add(fact("Dtypes", escape(ops.dtypes_text(op))))
    add(fact("Gradient", ops.gradient(op)))
    add(fact("Devices", ops.devices_text(op)))
    local rows = {}
    for _, row in ipairs(ops.errors(op)) do rows[#rows + 1] = {row[1], code(row[2])} end
    if #rows > 0 then add(markdown.table({"Error for", "Message"}, rows)) end
  end
  add(example_text{op = op, kind = "op", name = "lt." .. op.name, key = op.name})
  return table.concat(out, "\n\n")
end

local function family_page(section)
  local out = {"# " .. section.title}
  local links = {}
  for i, op in ipairs(section.ops) do
    links[i] = ("[%s](#%s)"):format(code(op.name), anchor(op.name))
  end
  out[#out + 1] = table.concat(links, " · ")
  for _, op in ipairs(section.ops) do out[#out + 1] = op_entry(op) end
  return table.concat(out, "\n\n") .. "\n"
end

-- ---- pages of tables, classes and tensors

-- The arguments of a function or class that are stated in a signature, as a table; else nil.
local function arguments_of(f, name)
  local signature = signatures.of(f, name:match "[%w_]+$")
  local params = {}
  for i, p in ipairs(signature and signature.params or {}) do
    params[i] = {name = p.name, type = p.type, choices = p.choices, optional = not p.required,
      default = p.default}
  end
  return #params > 0 and parameters_table(ops.arguments{params = params}) or nil
end

local function function_entry(level, entry)
  local signature, text = functions.describe(entry.name, entry.value)
  local out = {heading(level, entry.name, entry.name), block(signature)}
  out[#out + 1] = type(text) == "string" and markdown.sentence(text, reference.address)
    or doc_text(text)
  out[#out + 1] = arguments_of(entry.value, entry.name)
  out[#out + 1] = example_text(entry)
  return table.concat(out, "\n\n")
end

local function value_entry(entry)
  local text = builtin.values[entry.key]
    or entry.value == entry.key and ("The dtype %s."):format(code(entry.key)) or ""
  local out = {heading(2, entry.name, entry.name), text}
  out[#out + 1] = example_text(entry)
  return table.concat(out, "\n\n")
end

local function summary_row(entry)
  local text = entry.op and entry.op.doc or catalogue.summary(entry.value) or entry.text or ""
  return {link(entry.name), markdown.sentence(text, reference.address)}
end

local function summary_table(title, entries)
  local rows = {}
  for _, entry in ipairs(entries) do rows[#rows + 1] = summary_row(entry) end
  return #rows > 0 and ("## %s\n\n%s"):format(title, markdown.table({"Name", ""}, rows)) or nil
end

-- A file's opening comment without what is there for those who change it.
local function for_users(lines)
  local list = {}
  for _, line in ipairs(lines) do
    if line:find "^Idea:" or line:find "^Invariant" then break end
    list[#list + 1] = line
  end
  return list
end

local function table_page(record)
  local out = {"# " .. record.name}
  local _, lines = catalogue.namespace(record.value)
  if lines then out[#out + 1] = doc_text(for_users(lines)) end
  local kinds = {class = {}, op = {}, ["function"] = {}, value = {}, table = {}}
  local aliases = {}
  for _, entry in ipairs(record.entries) do
    local list = entry.alias_of and aliases or kinds[entry.kind]
    list[#list + 1] = entry
  end
  out[#out + 1] = summary_table("Classes", kinds.class)
  out[#out + 1] = summary_table("Ops", kinds.op)
  for _, entry in ipairs(kinds["function"]) do out[#out + 1] = function_entry(2, entry) end
  for _, entry in ipairs(kinds.value) do out[#out + 1] = value_entry(entry) end
  local rows = {}
  for _, entry in ipairs(aliases) do
    rows[#rows + 1] = {code(entry.name), "the same as " .. link(entry.alias_of)}
  end
  if #rows > 0 then
    out[#out + 1] = "## Other names\n\n" .. markdown.table({"Name", ""}, rows)
  end
  return table.concat(out, "\n\n") .. "\n"
end

local function class_page(entry)
  local class = entry.value
  local out = {"# " .. entry.name,
    block(source.call(entry.name, classes.signature(class)))}
  for _, lines in ipairs(classes.doc(class) or {}) do out[#out + 1] = doc_text(lines) end
  local above = {}
  for i, ancestor in ipairs(public.ancestors(class)) do
    local name = classes.name(ancestor)
    above[i] = link("nn." .. name) or link("optim." .. name) or link("data." .. name) or code(name)
  end
  if #above > 0 then
    out[#out + 1] = fact("Based on", table.concat(above, ", ") .. ", whose methods it has.")
  end
  out[#out + 1] = arguments_of(class, entry.name)
  out[#out + 1] = example_text(entry)
  for _, method in ipairs(entry.methods) do
    out[#out + 1] = function_entry(2, method)
  end
  return table.concat(out, "\n\n") .. "\n"
end

local function object_page(entry)
  local out = {"# " .. entry.name, ("What %s returns."):format(link(entry.made_by))}
  for _, method in ipairs(entry.methods) do out[#out + 1] = function_entry(2, method) end
  return table.concat(out, "\n\n") .. "\n"
end

local function tensor_page()
  local out = {"# Tensor", "Methods and fields of tensors, where `x` is one. Every op that has a "
    .. "method is described on the page of its family."}
  local own, of_ops = {}, {}
  for _, entry in ipairs(public.tensor()) do
    local list = entry.op and of_ops or own
    list[#list + 1] = entry
  end
  local links = {}
  for i, entry in ipairs(of_ops) do links[i] = link(entry.name) end
  out[#out + 1] = "## Methods that are ops\n\n" .. table.concat(links, " · ")
  for _, entry in ipairs(own) do
    if entry.kind == "field" then
      out[#out + 1] = table.concat({heading(2, entry.name, entry.name),
        markdown.sentence(entry.text, reference.address), example_text(entry)}, "\n\n")
    else
      out[#out + 1] = function_entry(2, entry)
    end
  end
  return table.concat(out, "\n\n") .. "\n"
end

-- ---- all pages

--- The pages: a list of {file without ending, title, group, text}.
function reference.pages()
  local tables = public.tables()
  index_addresses(tables)
  local list = {}
  local function add(group, file, title, text)
    list[#list + 1] = {file = file, title = title, group = group, text = text}
  end
  add("Tensor", "tensor", "Tensor", tensor_page())
  for _, section in ipairs(family_list) do
    add("Ops", section.file, section.title, family_page(section))
  end
  for _, record in ipairs(tables) do
    if #record.entries > 0 then add("Modules", record.name, record.name, table_page(record)) end
  end
  for _, record in ipairs(tables) do
    for _, entry in ipairs(record.entries) do
      if entry.kind == "class" and not entry.alias_of then
        add("Classes", entry.name, entry.name, class_page(entry))
      end
    end
  end
  for _, entry in ipairs(public.objects()) do
    add("Objects", entry.name, entry.name, object_page(entry))
  end
  return list
end

return reference
