-- No op is named outside its row of ops.def. Reads the sources and fails where one is.
-- Run it from the repository's root: `lua5.4 tests/op_names.lua`.
--
-- What is peculiar to an op stands in its row (a rule, a trait, a mark in the signature) or in the
-- op's own functions: its inference, its composite, its gradient and its kernels. All other code
-- may name an op for one reason only, to run it: `lt_do(mul, ...)`, `lt_call(LT_OP_to, ...)`,
-- `x:sum()`. It may not ask which op it has got. So these are refused:
--
-- * in C, but for the kernels (src/cpu and src/cuda without their device.c): to compare or to index
--   with an id (`== LT_OP_x`, `case LT_OP_x`, `[LT_OP_x]`), also in inference, composites and
--   gradients, where a function that serves several ops takes what differs as an argument; to
--   compare a name with a string (`strcmp(name, "x")`); a table of names (`{"x", FLAG}`)
-- * in Lua: to compare a field `op`, `name` or `call` with a string, and a table of names
--   (`x = true`, `x = "moved"`)
--
-- Excepted are lines in which the word is another thing that has the name of an op.

local except = {
  ["src/tensor/ops.c"] = {any = "a type"},
  ["src/vm-bindings/describe.c"] = {copy = "a trait"},
  ["src/vm-bindings/guard.c"] = {log = "a level of the guard"},
  ["src/vm-bindings/print.c"] = {full = "a profile of printing"},
  ["lib/lutra/internal/memory_summary.lua"] = {all = "a pool of memory"},
  ["lib/lutra/nn/losses.lua"] = {mean = "a value of `reduction`", sum = "a value of `reduction`"},
  ["lib/lutra/optim/optimizer.lua"] = {copy = "an argument of x:to"},
  ["lib/lutra/placement/chrome.lua"] = {copy = "a kind of event"},
  ["lib/lutra/placement/listener.lua"] = {where = "an option of the recorder"},
  ["lib/lutra/repl/complete/names.lua"] = {any = "a variable"},
  ["lib/lutra/repl/complete/tokens.lua"] = {t = "a letter behind a backslash"},
  ["lib/lutra/repl/workspace/format.lua"] = {view = "a field of a saved tensor"},
  ["lib/lutra/internal/summary.lua"] = {mean = "a heading"},
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
  for _, pattern in ipairs {'[%.:]op%s*[=~]=%s*"([%w_]+)"', '[%.:]name%s*[=~]=%s*"([%w_]+)"',
    '[%.:]call%s*[=~]=%s*"([%w_]+)"', "%f[%w_]([%a_][%w_]*)%s*=%s*true%f[^%w_]",
    '%[%s*"([%w_]+)"%s*%]%s*=%s*true', '[{,]%s*([%a_][%w_]*)%s*=%s*"'} do
    for name in line:gmatch(pattern) do found[#found + 1] = name end
  end
  return found
end

local function is_kernel(file)
  return (file:find "^src/cpu/" or file:find "^src/cuda/") and not file:find "/device%.c$"
end

-- The op that a line asks for, or nil. `names` holds the ops.
local function objection(file, line, names)
  if is_kernel(file) then return nil end
  local code = file:find "%.lua$" and line:gsub("%-%-.*", "") or line
  for _, name in ipairs((file:find "%.lua$" and asked_in_lua or asked_in_c)(code)) do
    local op = names[name] and name or file:find "%.lua$" and names[name:match "^(.-)_?$"] and name
    if op and not (except[file] or {})[op] then return op end
  end
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
local function judge(refused, file, line)
  local names = {_norm = true, detach = true, to = true, fill = true, log = true, where = true}
  check((objection(file, line, names) ~= nil) == refused, ("%s in %s must be %s"):format(line, file,
    refused and "refused" or "allowed"))
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
judge(false, "lib/lutra/a.lua", '  if e.kind == "to" then')
judge(false, "lib/lutra/a.lua", "  x:to(device) -- to = true")
judge(false, "lib/lutra/placement/listener.lua", "  record{where = true}")

-- The sources.
local rows = io.open("src/tensor/ops.def")
local names = names_of(rows and rows:read "a" or "")
check(next(names) ~= nil, "no ops in src/tensor/ops.def: run this from the repository's root")
local used = {}
for file in io.popen("find src lib/lutra -name '*.[ch]' -o -name '*.lua' | sort"):lines() do
  local number, why = 0, {}
  for line in io.lines(file) do
    number = number + 1
    local op = objection(file, line, names)
    if op then
      why[#why + 1] = ("%s:%d: asks whether an op is \"%s\": let its row say what it is"):format(
        file, number, op)
    end
  end
  used[file] = true
  check(#why == 0, table.concat(why, "\n       "))
end
for file in pairs(except) do check(used[file], file .. " is excepted, and is not there") end

checks.finish()
