-- Runs the cases that tools/opinfo/generate.py writes: results, dtypes, shapes and gradients of
-- PyTorch's operator database.
--
--     build/lutra tools/opinfo/run.lua [--from DIR] [-v] [-vv] [--isolate] [--passing FILE]
--       [ROW...]
--
-- ROW is a row ("nn.functional.gelu") with its variants (not with --exact) or a pattern of Lua with
-- `%`; without ROW all rows of DIR.
-- -v prints the first failure of each kind of call and dtype, -vv all; --isolate runs each row in a
-- process of its own, with a time limit. A row passes when all of its cases pass; calls with
-- `out =` are counted apart. --passing appends "row<tab>case" to FILE for each case that passes.
-- LUTRA_TEST_DEVICE names the device.

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local from, verbose, isolate, exact, wanted = "build/opinfo", 0, false, false, {}
local passing -- file to which the cases that pass are appended
do
  local i = 1
  while arg[i] do
    local a = arg[i]
    if a == "--from" then
      i = i + 1
      from = arg[i]
    elseif a == "-v" then verbose = 1
    elseif a == "-vv" then verbose = 2
    elseif a == "--isolate" then isolate = true
    elseif a == "--exact" then exact = true
    elseif a == "--passing" then
      i = i + 1
      passing = arg[i]
    else wanted[#wanted + 1] = a
    end
    i = i + 1
  end
end

local function names()
  local list, found = {}, assert(io.popen('ls "' .. from .. '"'))
  for name in found:lines() do
    name = name:match "^(.*)%.lua$"
    local take = #wanted == 0
    for _, w in ipairs(wanted) do
      take = take or name == w or name and w:find("%", 1, true) and name:find("^" .. w .. "$")
        or not exact and name and name:sub(1, #w + 1) == w .. "."
    end
    if name and take then list[#list + 1] = name end
  end
  found:close()
  return list
end

-- Runs a row; returns the numbers of cases that pass and of cases, and the same of `out =`.
local function run_row(name)
  local harness = dofile(here .. "/harness.lua")
  local ok, file = pcall(harness.open, from, name)
  if not ok then
    print(name .. ": cannot read: " .. tostring(file))
    return 0, 1, 0, 0
  end
  local passed, total, out_passed, out_total = 0, 0, 0, 0
  local shown, texts = {}, {}
  local list = passing and assert(io.open(passing, "a"))
  harness.run(file, function(case, text)
    if case.k == "out" then
      out_total = out_total + 1
      if not text then out_passed = out_passed + 1 end
    else
      total = total + 1
      if not text then passed = passed + 1 end
    end
    if list and not text then list:write(name, "\t", case.id, "\n") end
    local kind = case.k .. case.d
    if text and (verbose == 2 or verbose == 1 and not shown[kind] and case.k ~= "out") then
      shown[kind] = true
      texts[#texts + 1] = ("    %s: %s"):format(case.id, text)
    end
  end)
  if list then list:close() end
  print(("%s: %d/%d%s%s"):format(name, passed, total, passed == total and "" or "  FAIL",
    out_total > 0 and ("  out %d/%d"):format(out_passed, out_total) or ""))
  for _, text in ipairs(texts) do print(text) end
  return passed, total, out_passed, out_total
end

local function run_isolated(name)
  local command = ('timeout 300 "%s" "%s" --from "%s" --exact %s %s "%s" 2>&1'):format(
    arg[-1], arg[0], from, passing and ('--passing "%s"'):format(passing) or "",
    verbose == 2 and "-vv" or verbose == 1 and "-v" or "", name)
  local pipe = assert(io.popen(command))
  local passed, total, a, b = 0, 1, 0, 0
  local found = false
  for line in pipe:lines() do
    local row, p, t = line:match "^(%S+): (%d+)/(%d+)"
    if row == name then
      passed, total, found = tonumber(p), tonumber(t), true
      a, b = line:match "out (%d+)/(%d+)"
    end
    if not line:match "^rows: " and not line:match "^cases: " then print(line) end
  end
  pipe:close()
  if not found then print(name .. ": 0/1  FAIL: the process ended") end
  return passed, total, tonumber(a or 0), tonumber(b or 0)
end

local rows, complete, cases, all, outs, all_outs = 0, 0, 0, 0, 0, 0
for _, name in ipairs(names()) do
  local passed, total, o, oo = (isolate and run_isolated or run_row)(name)
  if total > 0 then
    rows = rows + 1
    if passed == total then complete = complete + 1 end
    cases, all, outs, all_outs = cases + passed, all + total, outs + o, all_outs + oo
  end
end
print(("rows: %d of %d pass completely"):format(complete, rows))
print(("cases: %d of %d pass; with out: %d of %d"):format(cases, all, outs, all_outs))
