-- No op is named outside its row of ops.def. Reads the sources and fails where one is.
-- Run it from the repository's root: `lua5.4 tests/op_names.lua`.
--
-- What is peculiar to an op stands in its row (a rule, a trait, a mark in the signature) or in the
-- op's own functions: its inference, its composite, its gradient and its kernels. All other code
-- may name an op for one reason only, to run it: `lt_do(mul, ...)`, `lt_call(LT_OP_to, ...)`,
-- `x:sum()`. It may not ask which op it has got. So these are refused:
--
-- * in C, but for the kernels (src/cpu, src/cuda and src/mps without their device.c): to compare or
--   to index with an id (`== LT_OP_x`, `case LT_OP_x`, `[LT_OP_x]`), also in inference, composites
--   and gradients, where a function that serves several ops takes what differs as an argument; to
--   compare a name with a string (`strcmp(name, "x")`); a table of names (`{"x", FLAG}`)
-- * in Lua: to compare `op`, or a field `name` or `call`, with a string, and a table of names
--   (`x = true`, `x = "moved"`; of more than one op: `x = 2`, `x = function`, an array of strings)
--
-- Excepted are lines in which the word is another thing that has the name of an op, in a file or in
-- all files of a folder.

local except = {
  ["src/tensor/ops.c"] = {any = "a type"},
  ["src/vm-bindings/describe.c"] = {copy = "a trait", linear = "a trait"},
  ["src/vm-bindings/guard.c"] = {log = "a level of the guard"},
  ["src/vm-bindings/print.c"] = {full = "a profile of printing"},
  ["lib/lutra/distributions/"] = {real = "a constraint", positive = "a constraint"},
  ["lib/lutra/internal/memory_summary.lua"] = {all = "a pool of memory"},
  ["lib/lutra/nn/losses.lua"] = {mean = "a value of `reduction`", sum = "a value of `reduction`"},
  ["lib/lutra/optim/base/state_dict.lua"] = {copy = "an argument of x:to"},
  ["lib/lutra/optim/lr_scheduler/one_cycle.lua"] = {cos = "a value of `anneal_strategy`",
    linear = "a value of `anneal_strategy`"},
  ["lib/lutra/optim/swa_utils/swalr.lua"] = {cos = "a value of `anneal_strategy`",
    linear = "a value of `anneal_strategy`"},
  ["lib/lutra/nn/initializers.lua"] = {linear = "a nonlinearity", sigmoid = "a nonlinearity",
    tanh = "a nonlinearity", relu = "a nonlinearity"},
  ["lib/lutra/placement/chrome.lua"] = {copy = "a kind of event", to = "a field of an event",
    where = "a field of an event"},
  ["lib/lutra/placement/event_reader.lua"] = {where = "an option of the recorder"},
  ["lib/lutra/repl/complete/names.lua"] = {any = "a variable"},
  ["lib/lutra/repl/complete/tokens.lua"] = {t = "a letter behind a backslash"},
  ["lib/lutra/repl/workspace/format.lua"] = {view = "a field of a saved tensor"},
  ["lib/lutra/vision/transforms/conversions.lua"] = {clip = "an argument"},
  ["lib/lutra/vision/transforms/pixels.lua"] = {clip = "an argument"},
  ["lib/lutra/internal/summary.lua"] = {mean = "a heading"},
  ["lib/lutra/repl/other_languages.lua"] = {cat = "a command of IPython",
    mv = "a command of IPython"},
  ["lib/lutra/repl/rich/tensor.lua"] = {min = "a statistic", max = "a statistic",
    mean = "a statistic", std = "a statistic"},
  ["lib/lutra/repl/help/ops.lua"] = {any = "a type of an argument"},
  ["lib/lutra/repl/stubs.lua"] = {add = "an operator of Lua", sub = "an operator of Lua",
    mul = "an operator of Lua", div = "an operator of Lua", pow = "an operator of Lua"},
  -- Teaching texts call ops by name, and see whether the reader's program does.
  ["lib/lutra/repl/lesson/see.lua"] = {linear = "what a lesson looks for"},
  -- A method of its own in C, whose arguments no row describes.
  ["lib/lutra/repl/complete/values.lua"] = {to = "the method: a device or a dtype"},
}

-- The names of ops, from their rows.
local function names_of(text)
  local names = {}
  for name in ("\n" .. text):gmatch "\nLT_%u+%(([%w_]+)," do names[name] = true end
  return names
end

-- The ids that a line of C compares or indexes with, and the names that it compares or lists.
local function asked_in_c(line)
  local found = {}
  local function add(pattern, test)
    for a, b in line:gmatch(pattern) do
      if not b or test(a) then found[#found + 1] = b or a end
    end
  end
  add "[=!]=%s*LT_OP_([%w_]+)"
  add "LT_OP_([%w_]+)%s*[=!]="
  add "%f[%w]case%s+LT_OP_([%w_]+)"
  add "%[LT_OP_([%w_]+)%]"
  local function is_name(operand)
    return operand:find "%f[%w]name%f[^%w_]" or operand:find "%f[%w_]op%f[^%w_]"
      or operand:find "%f[%w_]call%f[^%w_]"
  end
  add('strn?cmp%(([^,]*),%s*"([%w_]+)"', is_name)
  add '{"([%w_]+)",%s*[%u%d{]'
  return found
end

local function asked_in_lua(line)
  local found = {}
  for _, pattern in ipairs {'%f[%w_]op%s*[=~]=%s*"([%w_]+)"', '[%.:]name%s*[=~]=%s*"([%w_]+)"',
    '[%.:]call%s*[=~]=%s*"([%w_]+)"', "%f[%w_]([%a_][%w_]*)%s*=%s*true%f[^%w_]",
    '%[%s*"([%w_]+)"%s*%]%s*=%s*true', '[{,]%s*([%a_][%w_]*)%s*=%s*"'} do
    for name in line:gmatch(pattern) do found[#found + 1] = name end
  end
  return found
end

-- The words that a line of Lua lists: strings in an array, and keys of numbers or functions.
local function listed_in_lua(line)
  local found = {}
  for list in (line:find '^%s*"' and "{" .. line or line):gmatch '{%s*("[^{}]*)' do
    for word in (list .. ","):gmatch '"([%w_]+)"%s*,' do found[#found + 1] = word end
  end
  for _, value in ipairs {"%-?%.?%d", "function"} do
    for word in ("," .. line):gmatch("[{,]%s*([%a_][%w_]*)%s*=%s*" .. value) do
      found[#found + 1] = word
    end
  end
  return found
end

local function is_kernel(file)
  local device = file:match "^src/(%w+)/"
  return (device == "cpu" or device == "cuda" or device == "mps") and not file:find "/device%.c$"
end

-- The ops among these words: the names that Lua has for them, in place too. `names` holds the ops.
local function ops_among(words, file, names)
  local found, here, folder = {}, except[file] or {}, except[file:match "^.*/"] or {}
  for _, word in ipairs(words) do
    local op = names[word] or file:find "%.lua$" and names[word:match "^(.-)_?$"]
    if op and not here[word] and not folder[word] then found[#found + 1] = word end
  end
  return found
end

-- The op that a line asks for, or nil. One word in a list may be any word that an op has, too; two
-- of a line, or one beside one of the line before, are a list of ops. `before` is the line before.
local function objection(file, line, names, before)
  if is_kernel(file) then return nil end
  if not file:find "%.lua$" then return ops_among(asked_in_c(line), file, names)[1] end
  local code, last = line:gsub("%-%-.*", ""), (before or ""):gsub("%-%-.*", "")
  local asked = ops_among(asked_in_lua(code), file, names)[1]
  if asked then return asked end
  local listed = ops_among(listed_in_lua(code), file, names)
  local beside = #ops_among(listed_in_lua(last), file, names) > 0
  return (#listed > 1 or beside) and listed[1] or nil
end

local checks = dofile "tests/checks.lua"
local check = checks.check

-- The rules themselves: what they must refuse, they refuse.
local some = names_of [[
LT_KERNEL(_norm, norm, 0, "(Tensor self)", "A norm.")
LT_VIEW(detach, F | M, LT_SIG1, "The same memory, outside the graph.")
 *   LT_VIEW(name, ...)
LT_ELEMENTWISE(fill, 1, SELF, FI, a, a, I, "(Tensor self, Scalar value)",
]]
check(some._norm and some.detach and some.fill and not some.name, "rows must be read")
local function judge(refused, file, line, before)
  local names = {_norm = true, detach = true, to = true, fill = true, log = true, where = true}
  check((objection(file, line, names, before) ~= nil) == refused,
    ("%s in %s must be %s"):format(line, file, refused and "refused" or "allowed"))
end
judge(true, "src/tensor/a.c", "  if (c->op == LT_OP_detach) return true;")
judge(true, "src/tensor/infer_a.c", "  return LT_OP__norm != c->op;")
judge(true, "src/tensor/a.c", "  case LT_OP_to:")
judge(true, "src/vm-bindings/a.c", "  [LT_OP_to] = 1,")
judge(true, "src/cuda/device.c", "  if (op == LT_OP_fill)")
judge(true, "src/vm-bindings/a.c", '  if (strcmp(p->name, "to") == 0)')
judge(true, "src/vm-bindings/a.c", '  if (!strcmp(call, "to"))')
judge(true, "src/vm-bindings/guard.c", '    {"to", ANY},')
judge(false, "src/vm-bindings/guard.c", '    {"log", LOG, ALLOW},')
judge(false, "src/vm-bindings/a.c", '    {"to", method_to},')
judge(false, "src/vm-bindings/a.c", "  lt_OpId op = list ? LT_OP_to : LT_OP_detach;")
judge(false, "src/tensor/a.c", "  return lt_do_(LT_OP_to, false, c->arg, 2, 0);")
judge(false, "src/tensor/a.c", '  if (!strcmp(reduction, "to"))')
judge(false, "src/tensor/a.c", "  if (op == LT_OP_COUNT)")
judge(false, "src/cpu/a.c", "  if (l->op == LT_OP_fill) return fill(l);")
judge(true, "lib/lutra/a.lua", '  if e.op == "to" then')
judge(true, "lib/lutra/a.lua", '  if e.name == "fill_" then')
judge(true, "lib/lutra/a.lua", "local scalar = {item = true, to = true}")
judge(true, "lib/lutra/a.lua", '  ["to"] = true,')
judge(true, "lib/lutra/a.lua", '  if op == "to" then')
judge(true, "lib/lutra/a.lua", "local through = {fill = 1, to = 2}")
judge(true, "lib/lutra/a.lua", '  for _, op in ipairs {"fill", "to"} do')
judge(true, "lib/lutra/a.lua", '  "to"}', '  "fill",')
judge(true, "lib/lutra/a.lua", "  to = function(x) return x end,", "  fill = function() end,")
judge(false, "lib/lutra/a.lua", "  local lanes = {fill = 1, wait = 2}")
judge(false, "lib/lutra/a.lua", '  f("fill", "to")')
judge(false, "lib/lutra/a.lua", '  if e.kind == "to" then')
judge(false, "lib/lutra/a.lua", "  x:to(device) -- to = true")
judge(false, "lib/lutra/placement/event_reader.lua", "  record{where = true}")

-- The sources.
local rows = io.open("src/tensor/ops.def")
local names = names_of(rows and rows:read "a" or "")
check(next(names) ~= nil, "no ops in src/tensor/ops.def: run this from the repository's root")
local used = {}
for file in io.popen("find src lib/lutra -name '*.[ch]' -o -name '*.lua' | sort"):lines() do
  local number, why, before = 0, {}, nil
  for line in io.lines(file) do
    number = number + 1
    local op = objection(file, line, names, before)
    before = line
    if op then
      why[#why + 1] = ("%s:%d: asks whether an op is \"%s\": let its row say what it is"):format(
        file, number, op)
    end
  end
  used[file], used[file:match "^.*/"] = true, true
  check(#why == 0, table.concat(why, "\n       "))
end
for file in pairs(except) do check(used[file], file .. " is excepted, and is not there") end

checks.finish()
