--- What specs of pictures share: a prompt whose output is read, and SVG.

local program = require "program_support"

local support = {}

--- Paints nothing.
function support.plain(_, text) return text end

--- What a prompt without a terminal writes for these lines, and its errors. options:
-- arguments, locale ("C.UTF-8").
function support.look(lines, options)
  options = options or {}
  local line = ("env LC_ALL=%s NO_COLOR= %s -i --no-init %s"):format(options.locale or "C.UTF-8",
    program.quote(program.program), options.arguments or "--emulate cuda:2,memory=256MiB")
  local result = program.shell(line, table.concat(lines, "\n") .. "\n")
  return result.out:gsub("%[%d+%]> ", ""), result.err
end

--- Characters of the longest line.
function support.widest(text)
  local most = 0
  for line in text:gmatch "[^\n]+" do most = math.max(most, utf8.len(line)) end
  return most
end

--- The text of a file.
function support.read_file(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

--- Is it XML whose elements are closed?
function support.is_closed(text)
  local open = {}
  for close, name, alone in text:gmatch "<(/?)([%w]+)[^<>]-(/?)>" do
    if close == "/" then
      if table.remove(open) ~= name then return false end
    elseif alone ~= "/" then
      open[#open + 1] = name
    end
  end
  return #open == 0
end

return support
