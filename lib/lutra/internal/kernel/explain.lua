--- Formats a compiler's messages about a kernel: each error with its source line and a caret.
--
-- Only errors in the source itself are shown. Messages about headers and about lines that the
-- library added are shown only when there are no others.

local source_excerpt = require "lutra.internal.source_excerpt"
local parameters = require "lutra.internal.kernel.parameters"

-- Formats of errors, and of notes about an unclosed bracket: g++ and clang++, with a column and
-- without; then NVRTC.
local FORMATS = {
  "^(.-):(%d+):(%d+): %a* ?error: (.*)$",
  "^(.-):(%d+):(%d+): note: (to match this .*)$",
  "^(.-):(%d+)(): %a* ?error: (.*)$",
  "^(.-)%((%d+)()%): [%a ]*error:? ?(.*)$",
  "^(.-)%((%d+)()%): note[^:]*: (to match this .*)$",
}

-- Formats of errors at the end of the source, where the emulation adds lines ("launch").
local END_FORMATS = {
  "^At end of source: error:? (.*)$",
  "^launch:%d+:%d+: error: (expected '}'.*)$",
}

local function first_match(text, formats)
  for _, format in ipairs(formats) do
    local a, b, c, d = text:match(format)
    if a then return a, b, c, d end
  end
end

-- Returns the errors in a compiler's output: a list of {file, line, column, message, drawn,
-- below}; those at the end of the source have only a message. NVRTC reports no column but prints
-- the line with a caret below.
local function errors_in(log)
  local found, lines = {}, {}
  for text in log:gmatch "[^\n]+" do lines[#lines + 1] = text end
  for i, text in ipairs(lines) do
    local last = first_match(text, END_FORMATS)
    local file, line, column, message = first_match(text, FORMATS)
    if last then
      found[#found + 1] = {message = last}
    elseif file then
      found[#found + 1] = {file = file, line = tonumber(line), message = message,
        column = type(column) == "string" and tonumber(column) or nil,
        drawn = lines[i + 1], below = lines[i + 2]}
    end
  end
  return found
end

-- Returns a line of the source without surrounding blanks, and the number of blanks before it.
local function source_line(source, number)
  local i = 0
  for line in (source .. "\n"):gmatch "([^\n]*)\n" do
    i = i + 1
    if i == number then
      local blanks, text = line:match "^(%s*)(.-)%s*$"
      return text, #blanks
    end
  end
end

-- Returns the column of an error in the line that source_line returned, or nil.
local function column_of(e, text, blanks)
  if e.column then return math.max(1, math.min(e.column - blanks, #text + 1)) end
  local at = e.drawn and e.drawn:find(text, 1, true)
  local caret = e.below and e.below:match "^%s*()%^"
  return at and caret and caret >= at and caret - at + 1 or nil
end

-- Returns the name of a kernel's source in the compiler's messages.
local function file_of(self)
  return self.file or self.name:sub(1, 100) .. ".cu" -- as in src/cuda/nvrtc.c
end

local MOST_ERRORS = 3

-- Formats the errors that are in the source; returns a list of lines, empty without such errors.
local function explain_errors(errors, self)
  local lines, shown, more = {}, 0, 0
  for _, e in ipairs(errors) do
    local text, blanks
    if e.file == file_of(self) then text, blanks = source_line(self.source, e.line) end
    if text or not e.file then
      shown = shown + 1
      if shown > MOST_ERRORS then
        more = more + 1
      elseif not text then
        lines[#lines + 1] = "  at the end: " .. e.message
      else
        lines[#lines + 1] = ("  line %d: %s"):format(e.line, e.message)
        lines[#lines + 1] = source_excerpt(text, column_of(e, text, blanks), "    ")
      end
    end
  end
  if more > 0 then lines[#lines + 1] = ("  and %d more"):format(more) end
  return lines
end

-- Explains the error for a valid source without a kernel of that name and type. NVRTC and the
-- emulation report it in files of these names, which follow the source.
local function explain_type(errors, self)
  local e = errors[1]
  if not e or self.file or (e.file ~= "__nv_name_map" and e.file ~= "launch") then return {} end
  local declared = ("void %s(%s)"):format(self.name, parameters.text(self.parameters))
  return {
    '  the compiler finds no kernel "' .. declared .. '"',
    "  the compiler's message: " .. e.message,
    ('hint: in a namespace its name is "space::%s"; or an #if or a macro hides it'):format(
      self.name),
  }
end

-- Advice for constructs of CUDA programs that kernels do not support: a pattern of the compiler's
-- message, a part of the source ("" matches any), and the advice.
local NO_LIBRARY = "a kernel can include C headers (math.h, stdint.h, stdio.h ...), cuda_fp16.h "
  .. "and cuda_bf16.h, but not the C++ standard library or headers of host programs"
local ADVICE = {
  {"cooperative_groups%.h", "", "emulated devices have no cooperative groups; use __syncthreads() "
    .. "for block.sync(), and __shfl_down_sync(0xffffffff, v, n) for tile.shfl_down(v, n)"},
  {"mma%.h", "", "emulated devices have no tensor cores"},
  {"'tex[1-3u]", "", "emulated devices have no textures; read a tensor through a pointer"},
  {"lt_EmulatedShared", "", "on an emulated device, extern __shared__ T x[] outside of functions "
    .. "is an array only for a plain type; write (T *)x, or declare it inside the function"},
  {"No such file", "", NO_LIBRARY},
  {"file not found", "", NO_LIBRARY},
  {"cannot open source file", "", NO_LIBRARY .. "; headers of the CUDA toolkit are searched "
    .. "in the folder CUDA_HOME"},
  {"Assembler messages", "", "asm contains GPU instructions, which an emulated device cannot run"},
  {"", "<<<", "<<< >>> launches a kernel from host code; leave out that function and launch "
    .. "with k({grid, block}, arguments...)"},
}

local function advise(log, source)
  for _, row in ipairs(ADVICE) do
    if log:find(row[1]) and source:find(row[2], 1, true) then return "hint: " .. row[3] end
  end
end

--- Formats a compiler's output for a kernel {source, name, parameters}, or for a source {source,
-- file = its name in the messages}: each error with its line of the source, or the first lines of
-- the output; then advice, when there is some.
return function(log, self)
  local errors = errors_in(log)
  local lines = explain_errors(errors, self)
  if #lines == 0 then lines = explain_type(errors, self) end
  if #lines == 0 then
    for text in log:gmatch "[^\n]+" do
      if #lines < 10 then lines[#lines + 1] = "  " .. text end
    end
  end
  lines[#lines + 1] = not self.file and advise(log, self.source) or nil
  return table.concat(lines, "\n")
end
