--- Compares what src/mps/metal*.m use of Apple's frameworks with the declarations in
--- tests/apple/include: each selector, function, constant and type must be declared there with the
--- page of its documentation, and docs/metal-apis.md must list them.
---
---   lua5.4 tests/apple/apis.lua AST.json...           checks; AST.json: clang -ast-dump=json
---   lua5.4 tests/apple/apis.lua --write AST.json...   writes docs/metal-apis.md
---
--- Ends with `N passed, N failed, N skipped`: each API is one check, and the list is one.

local headers = {
  "Metal/Metal.h", "MetalPerformanceShaders/MetalPerformanceShaders.h", "Foundation/Foundation.h",
  "os/signpost.h",
}
local sources = { "src/mps/metal.m", "src/mps/metal_commands.m", "src/mps/metal_objects.h" }
local list = "docs/metal-apis.md"

local function contents(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

-- ---- declarations -------------------------------------------------------------------------------

--- Returns the selector of a method's declaration.
local function selector_of(declaration)
  local text = declaration:gsub("__attribute__%s*%b()", ""):gsub("API_%u+%b()", "")
    :gsub("^[-+]%s*%b()", ""):gsub(":%s*%b()%s*[%w_]+", ":"):gsub(",%s*%.%.%.", "")
  return (text:gsub("NS_RETURNS_RETAINED", ""):gsub("[%s;]", ""))
end

--- Returns the names that a declaration introduces: selectors, constants, functions, types.
local function names_of(declaration)
  if declaration:find "^[-+]" then return { selector_of(declaration) } end
  local plain = declaration:gsub("__attribute__%s*%b()", ""):gsub("API_%u+%b()", "")
  if plain:find "^@property" then
    local name = plain:match "([%w_]+)%s*;"
    return { name, "set" .. name:sub(1, 1):upper() .. name:sub(2) .. ":" }
  end
  local kind = plain:match "^%s*@[ip]%a+%s+([%w_]+)"
  if kind then return { kind } end
  local enum = plain:match "NS_%u+%(%s*[%w_]+%s*,%s*([%w_]+)%)"
  if enum then
    local names = { enum, since = {} }
    for row in declaration:match("%b{}"):gmatch "[{,]%s*([^,{}]+)" do
      local constant = row:match "^[%w_]+"
      names[#names + 1] = constant
      if constant then names.since[constant] = row:match "API_AVAILABLE%(macos%(([%d.]+)" end
    end
    return names
  end
  local name = plain:match "^#define%s+([%w_]+)" or plain:match "%(%^([%w_]+)%)"
    or plain:match "([%w_]+)%s*%b()[^()]*$" or plain:match "([%w_]+)%s*;%s*$"
  return { name }
end

--- Returns a list of { page, owner, available, names... } of one header.
local function declarations(path)
  local found, page, owner, text = {}, nil, nil, nil
  local function finish()
    local names = names_of(text)
    names.page, names.header = page, path
    local since = names.since and text:match "}(.*)" or text
    names.available = since:match "API_AVAILABLE%(macos%(([%d.]+)"
      or text:match "API_DEPRECATED%(\"[^\"]*\",%s*macos%(([%d.]+)"
    names.owner = owner
    if text:find "@interface" or text:find "@protocol" then
      owner = names[1]
      names.owner, names.container = nil, true
      found.available = names.available
    end
    names.available = names.available or (names.owner and found.available)
    found[#found + 1] = names
    page, text = nil, nil
  end
  for line in contents(path):gmatch "[^\n]+" do
    local comment = line:match "^%s*//%s*(%S+)$"
    if comment then
      page = (page or "") .. comment
    elseif line:find "^@end" then
      owner = nil
    elseif page or text then
      text = text and text .. "\n" .. line or line
      local open = select(2, text:gsub("{", "")) - select(2, text:gsub("}", ""))
      local opens = text:find "@interface" or text:find "@protocol" or text:find "^#define"
      if open == 0 and (opens or line:find ";%s*$" or line:find "}%s*$") then finish() end
    end
  end
  return found
end

local declared, order = {}, {}
for _, header in ipairs(headers) do
  for _, names in ipairs(declarations("tests/apple/include/" .. header)) do
    order[#order + 1] = names
    for _, name in ipairs(names) do
      declared[name] = declared[name] or {}
      table.insert(declared[name], names)
    end
  end
end

-- ---- uses ---------------------------------------------------------------------------------------

local write = arg[1] == "--write"
local used = {}
for i = write and 2 or 1, #arg do
  local tree = contents(arg[i])
  for selector in tree:gmatch '"selector": "([^"]+)"' do used[selector] = "selector" end
  for kind, name in tree:gmatch '"kind": "(%a+)Decl",%s*"name": "([^"]+)"' do
    local counts = kind == "EnumConstant" or kind == "Function" or kind == "Var"
    if counts then used[name] = kind end
  end
end
local own = {} -- the methods of classes that the sources define
for _, path in ipairs(sources) do
  local text = contents(path):gsub("/%*.-%*/", ""):gsub('"[^"\n]*"', "")
  for method in text:gmatch "\n([-+] %b()[^;{]+);" do own[selector_of(method)] = true end
  for name in text:gmatch "[%a_][%w_]*" do
    if name:find "^MTL%u" or name:find "^MPS%u" or name:find "^NS%u" or name:find "^os_%l"
      or name:find "^dispatch_%l" or name:find "^DISPATCH_" then
      used[name] = used[name] or "type"
    end
  end
end
for name, kind in pairs(used) do -- of the C library, of Lutra
  local apple = kind == "selector" or kind == "type" or name:find "^MTL" or name:find "^MPS"
    or name:find "^NS" or name:find "^os_" or name:find "^dispatch_"
  if not apple or own[name] then used[name] = nil end
end

-- ---- the list -----------------------------------------------------------------------------------

local out = {
  "# Apple's APIs",
  "",
  "Each API of macOS that the device `mps` uses (`src/mps/metal.m`, `src/mps/metal_commands.m`),",
  "the first macOS that has it, and its documentation. A test compares this list with the sources;",
  "`tests/apple/check --write` writes it. [mps.md](mps.md) describes the device.",
  "",
}
local last
for _, names in ipairs(order) do
  local shown, since = {}, names.available
  for _, name in ipairs(names) do
    if used[name] then
      shown[#shown + 1] = "`" .. name .. "`"
      local own_since = names.since and names.since[name]
      if own_since and tonumber(own_since) > tonumber(since or 0) then since = own_since end
    end
  end
  if #shown > 0 then
    local framework = names.header:match "include/(%a+)"
    if framework ~= last then
      last = framework
      table.move({ "## " .. framework, "", "| API | of | macOS | documentation |",
        "| --- | --- | --- | --- |" }, 1, 4, #out + 1, out)
    end
    local page = names.page:gsub(" ", "")
    out[#out + 1] = ("| %s | %s | %s | [%s](<%s%s>) |"):format(table.concat(shown, ", "),
      names.owner and "`" .. names.owner .. "`" or "", since or "", page:match "[^/]+/?$",
      "https://developer.apple.com/documentation/", page)
  end
end
local text = table.concat(out, "\n"):gsub("\n## ", "\n\n## "):gsub("\n\n\n", "\n\n") .. "\n"

local passed, failed = 0, 0
local function check(ok, message)
  if ok then passed = passed + 1 else failed = failed + 1 print(message) end
end

local sorted = {}
for name in pairs(used) do sorted[#sorted + 1] = name end
table.sort(sorted)
for _, name in ipairs(sorted) do
  check(declared[name],
    ("apple: tests/apple/include does not declare %s (%s) with its page"):format(name, used[name]))
end
check(#sorted > 100, "apple: found only " .. #sorted .. " APIs in the sources")
if write then
  local file = assert(io.open(list, "w"))
  file:write(text)
  file:close()
end
local file = io.open(list)
check(file and file:read "a" == text,
  "apple: " .. list .. " is not current: run tests/apple/check --write")
print(("%d passed, %d failed, 0 skipped"):format(passed, failed))
os.exit(failed == 0)
