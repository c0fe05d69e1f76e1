--- Splits text into words before byte-pair merges: the regular expressions of GPT-2, GPT-4, Llama 3
-- and Qwen, written as scanners over Unicode's classes.

local ranges = require "lutra.tokenizers.unicode_ranges"

local split = {}

-- ---- classes of characters

local LETTER, NUMBER, SPACE, OTHER = 1, 2, 3, 4

-- Sorted lists of the first code of each range, of the code after it, and of its class.
local first, after, class_of = {}, {}, {}

local function load_ranges()
  local rows = {}
  for kind, name in pairs{"letter", "number", "space"} do
    local at, gap = 0, nil
    for digits in ranges[name]:gmatch "%x+" do
      local n = tonumber(digits, 16)
      if not gap then
        gap = n
      else
        rows[#rows + 1] = {at + gap, at + gap + n, kind}
        at, gap = at + gap + n, nil
      end
    end
  end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  for i, row in ipairs(rows) do first[i], after[i], class_of[i] = row[1], row[2], row[3] end
end

-- Returns the class of a code point.
local classes = setmetatable({}, {__index = function(t, code)
  if not first[1] then load_ranges() end
  local low, high = 1, #first
  while low < high do
    local middle = (low + high + 1) // 2
    if first[middle] <= code then low = middle else high = middle - 1 end
  end
  local class = code >= first[low] and code < after[low] and class_of[low] or OTHER
  t[code] = class
  return class
end})

-- Returns the class of each character of `text`, its code, its first byte, and their number. A byte
-- that is not UTF-8 is a character of class OTHER.
local function scan(text)
  local class, code, start, n, at = {}, {}, {}, 0, 1
  local size = #text
  while at <= size do
    n = n + 1
    start[n] = at
    local byte = text:byte(at)
    if byte < 128 then
      class[n], code[n], at = classes[byte], byte, at + 1
    elseif utf8.len(text, at, at) then
      code[n] = utf8.codepoint(text, at)
      class[n], at = classes[code[n]], utf8.offset(text, 2, at)
    else
      class[n], code[n], at = OTHER, -1, at + 1
    end
  end
  start[n + 1] = size + 1
  return class, code, start, n
end

-- ---- scanners

local NEWLINE, RETURN, BLANK, APOSTROPHE = 10, 13, 32, 39
local endings = {["s"] = 1, ["t"] = 1, ["m"] = 1, ["d"] = 1, ["re"] = 2, ["ve"] = 2, ["ll"] = 2}

-- Returns the number of letters of the contraction after the apostrophe at character i, or nil.
local function contraction(text, start, i, any_case)
  local rest = text:sub(start[i] + 1, start[i] + 2)
  if any_case then
    if text:sub(start[i] + 1, start[i] + 2) == "\u{17f}" then return 1 end -- long s folds to s
    rest = rest:lower()
  end
  return endings[rest:sub(1, 1)] or endings[rest]
end

-- Returns the character after the run of a class that starts at i.
local function run(class, i, kind)
  while class[i] == kind do i = i + 1 end
  return i
end

-- Returns the end of a run of white space from i: all of it but the last blank when a word follows
-- (\s+(?!\S)|\s+).
local function spaces(class, i)
  local stop = run(class, i, SPACE)
  return class[stop] and stop - i > 1 and stop - 1 or stop
end

-- 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
local function gpt2(text, class, code, start, i)
  local letters = code[i] == APOSTROPHE and contraction(text, start, i, false)
  if letters then return i + 1 + letters end
  local word = code[i] == BLANK and class[i + 1] and class[i + 1] ~= SPACE and i + 1 or i
  if class[word] ~= SPACE then return run(class, word, class[word]) end
  return spaces(class, i)
end

-- (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
-- \s*[\r\n]+|\s+(?!\S)|\s+
local function gpt4(digits)
  local function is_break(c) return c == NEWLINE or c == RETURN end
  return function(text, class, code, start, i)
    local kind = class[i]
    local letters = code[i] == APOSTROPHE and contraction(text, start, i, true)
    if letters then return i + 1 + letters end
    if kind == LETTER then return run(class, i, LETTER) end
    if kind ~= NUMBER and not is_break(code[i]) and class[i + 1] == LETTER then
      return run(class, i + 1, LETTER)
    end
    if kind == NUMBER then return math.min(run(class, i, NUMBER), i + digits) end
    local word = code[i] == BLANK and class[i + 1] == OTHER and i + 1 or i
    if class[word] == OTHER then
      local stop = run(class, word, OTHER)
      while is_break(code[stop]) do stop = stop + 1 end
      return stop
    end
    local stop, last = run(class, i, SPACE), nil
    for k = i, stop - 1 do
      if is_break(code[k]) then last = k end
    end
    return last and last + 1 or spaces(class, i)
  end
end

local scanners = {gpt2 = gpt2, gpt4 = gpt4(3), qwen = gpt4(1)}

-- Returns the regular expression of the GPT-4 family with these digits, as files state it.
local function pattern_of(digits, contractions)
  return contractions .. "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" .. digits
    .. "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
end

-- Regular expression of a tokenizer.json -> scanner.
local patterns = {
  ["'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"] = "gpt2",
}
for digits, name in pairs{["{1,3}"] = "gpt4", [""] = "qwen"} do
  for _, contractions in ipairs{"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    "'(?i:[sdmt]|ll|ve|re)", "(?i:'s|'t|'re|'ve|'m|'ll|'d)"} do
    patterns[pattern_of(digits, contractions)] = name
  end
end

--- Returns the name of the scanner for a regular expression, or nil.
function split.scanner_of(pattern) return patterns[pattern] end

--- Returns the words of `text` as a list; joined they are the text.
function split.words(text, name)
  local scanner = scanners[name]
  local class, code, start, n = scan(text)
  local words, i = {}, 1
  while i <= n do
    local stop = scanner(text, class, code, start, i)
    words[#words + 1] = text:sub(start[i], start[stop] - 1)
    i = stop
  end
  return words
end

--- Returns the parts of `text` between white space as a list.
function split.parts(text)
  local class, _, start, n = scan(text)
  local list, i = {}, 1
  while i <= n do
    local stop = i
    while stop <= n and class[stop] ~= SPACE do stop = stop + 1 end
    if stop > i then list[#list + 1] = text:sub(start[i], start[stop] - 1) end
    i = stop + 1
  end
  return list
end

--- Returns the characters of `text` as a list; a byte that is not UTF-8 is one.
function split.characters(text)
  local _, _, start, n = scan(text)
  local list = {}
  for i = 1, n do list[i] = text:sub(start[i], start[i + 1] - 1) end
  return list
end

return split
