-- The project's texts use the field's terms. Reads every text that a person reads (documents,
-- comments, and the strings of the sources) and fails where one has a word or a form of error
-- message that the terms below replace.
-- Run it from the repository's root: `lua5.4 tests/language.lua [PATH...]`; with paths only the
-- files whose names begin so are read. `--count` prints the number of findings per term.
--
-- A term: {a Lua pattern of the lower-case text, what is written instead, where = "strings" or nil
-- for comments, strings and documents}. A pattern between %f[%w] and %f[%W] matches whole words.

local function word(pattern) return "%f[%w_]" .. pattern .. "%f[^%w_]" end

local terms = {
  {word "wants", "expected"}, {word "wanted", "expected, required"}, {word "came", "got"},
  {word "told", "reported, notified, described"}, {word "complains?", "reports, raises an error"},
  {word "complained", "reported, raised an error"},
  {word "mend", "fix"}, {word "mends", "fixes"}, {word "mended", "fixed"},
  {word "mending", "fixing"}, {word "ways? out", "hint"},
  {word "somebody", "the host, the caller"}, {word "everybody", "all streams, all threads"},
  {word "host waits", "the host blocks"}, {word "waited for", "blocked on"},
  {word "device works later", "asynchronous"}, {word "on its way", "queued, still running"},
  {word "run full", "out of memory"}, {word "runs full", "out of memory"},
  {word "had from", "reserved from, allocated from"}, {word "as it was found", "uninitialized"},
  {word "what is named", "the index"}, {word "whole numbers?", "integer"},
  {word "a text", "a string"}, {word "truth values?", "boolean"},
  {word "value from before", "saved tensor"}, {word "lined up", "contiguous"},
  {word "version has not", "not yet supported"}, {"%f[%w]has not *[%.,;:)]", "has no, lacks"},
  {word "look at the syntax", "syntax check"}, {word "code for any device", "device-agnostic code"},
  {word "taken else", "the default, the fallback"}, {word "what was typed", "the input"},
  {word "in the words of", "as"},
  {'argument \\?"[%w_%%.]+\\?" is %f[%%%w]', "expected WHAT for argument 'NAME', got WHAT",
    where = "strings"},
}

-- Files whose strings or comments show such a word on purpose: {path, the word}.
local except = {
  ["tests/language.lua"] = "any",
}

-- ---- the texts of a file ------------------------------------------------------------------------

-- texts(source, kind) -> list of {line, text, "comments" | "strings"}: a string or a run of comment
-- lines each.
local function texts(source, kind)
  local out, at, line = {}, 1, 1
  local function add(text, from, what) out[#out + 1] = {line = from, text = text, kind = what} end
  if kind == "text" then
    add(source, 1, "comments")
    return out
  end
  local comment = kind == "lua" and "^%-%-[^\n]*" or kind == "c" and "^//[^\n]*" or "^#[^\n]*"
  local function take(pattern, what)
    local from, to = source:find(pattern, at)
    if not from then return false end
    local text = source:sub(from, to)
    local last = out[#out]
    if what == "comments" and last and last.kind == what and last.to == line - 1 and
      source:sub(1, from - 1):match "\n[ \t]*$" then
      last.text, last.to = last.text .. "\n" .. text, line
    elseif what then
      add(text, line, what)
    end
    line = line + select(2, text:gsub("\n", ""))
    if out[#out] and what then out[#out].to = line end
    at = to + 1
    return true
  end
  while at <= #source do
    local c = source:sub(at, at)
    local taken
    if kind == "lua" then
      taken = take("^%-%-%[(=*)%[.-%]%1%]", "comments") or take(comment, "comments") or
        take("^%[(=*)%[.-%]%1%]", "strings")
    elseif kind == "c" then
      taken = take("^/%*.-%*/", "comments") or take(comment, "comments")
    else
      taken = take('^""".-"""', "comments") or
        ((at == 1 or source:sub(at - 1, at - 1):find "%s") and take(comment, "comments"))
    end
    if not taken and (c == '"' or (c == "'" and kind ~= "sh")) then
      local from, stop = at, at + 1
      while stop <= #source and source:sub(stop, stop) ~= c and
        (kind == "sh" or source:sub(stop, stop) ~= "\n") do
        stop = stop + (source:sub(stop, stop) == "\\" and 2 or 1)
      end
      local text = source:sub(from + 1, stop - 1)
      if c == '"' or kind == "lua" then add(text, line, "strings") end
      line = line + select(2, text:gsub("\n", ""))
      at = stop + 1
    elseif not taken and not take("^[%w_]+", nil) then
      if c == "\n" then line = line + 1 end
      at = at + 1
    end
  end
  return out
end

local kinds = {c = "c", h = "c", cu = "c", cuh = "c", cpp = "c", def = "c", m = "c", metal = "c",
  lua = "lua", md = "text", txt = "text", py = "sh", sh = "sh"}

local function kind_of(path, source)
  if path:find "^build" or path:find "golden/" or path:find "%.json$" then return nil end
  local ending = path:match "%.(%w+)$"
  if ending and kinds[ending] then return kinds[ending] end
  if source:find "^#!.*sh" or path == "Makefile" then return "sh" end
  return nil
end

-- ---- the check ----------------------------------------------------------------------------------

local counting, prefixes = false, {}
for _, argument in ipairs(arg) do
  if argument == "--count" then counting = true else prefixes[#prefixes + 1] = argument end
end

local function is_chosen(path)
  if #prefixes == 0 then return true end
  for _, prefix in ipairs(prefixes) do
    if path:sub(1, #prefix) == prefix then return true end
  end
  return false
end

local passed, failed, counts = 0, 0, {}
local list = assert(io.popen("git ls-files --cached --others --exclude-standard 2>/dev/null " ..
  "|| find . -type f"))
for path in list:lines() do
  path = path:gsub("^%./", "")
  local file = is_chosen(path) and io.open(path, "rb")
  local source = file and file:read "a"
  if file then file:close() end
  local kind = source and except[path] ~= "any" and kind_of(path, source)
  if kind then
    local found = 0
    for _, part in ipairs(texts(source, kind)) do
      -- One line of words: a comment's marks and its ends of lines count as blanks.
      local text = part.text:lower():gsub("\n%s*[%*/#%-]*", function(gap)
        return "\n" .. (" "):rep(#gap - 1)
      end)
      local flat = text:gsub("%s", " "):gsub("  +", function(gap) return gap end)
      for _, term in ipairs(terms) do
        if not term.where or term.where == part.kind then
          local pattern = term[1]:gsub(" ", " +")
          for at in flat:gmatch("()" .. pattern) do
            found = found + 1
            counts[term] = (counts[term] or 0) + 1
            if not counting then
              local line = part.line + select(2, text:sub(1, at - 1):gsub("\n", ""))
              print(("%s:%d: %s; write: %s"):format(path, line,
                flat:sub(math.max(1, at - 30), at + 40):gsub(" +", " "), term[2]))
            end
          end
        end
      end
    end
    if found == 0 then passed = passed + 1 else failed = failed + 1 end
  end
end
list:close()
if counting then
  local total = 0
  for _, term in ipairs(terms) do
    total = total + (counts[term] or 0)
    print(("%6d  %s"):format(counts[term] or 0, term[1]:gsub("%%f%b[]", "")))
  end
  print(("%6d  in all"):format(total))
end
print(("%d passed, %d failed, 0 skipped"):format(passed, failed))
os.exit(failed == 0)
