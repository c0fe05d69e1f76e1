--- The output of the ranks of a job, as one terminal or file shows it.
--
-- Each line has the rank in front: "rank 0: ...". A progress bar, text between carriage returns,
-- is shown for rank 0 only, without a prefix, and drawn again below each line. The error that ends
-- a rank is between two marks, "\1" and "\2" (main.c), and is kept: it is shown once, for all
-- ranks that ended with the same error.
--
-- Invariant: a stream's `pieces` are the text after its last newline or finished error, and `bar`
-- is true when that began with a carriage return.

local output = {}

local Output = {}
Output.__index = Output

--- Returns the output of `count` ranks, which is written to the files `out` and `err`.
function output.new(count, out, err)
  local self = setmetatable({files = {out = out, err = err}, streams = {}, failures = {}}, Output)
  self.prefix = ("rank %%%dd: "):format(#tostring(count - 1))
  for rank = 0, count - 1 do
    for _, name in ipairs{"out", "err"} do
      self.streams[rank .. name] = {rank = rank, name = name, pieces = {}}
    end
  end
  return self
end

-- ---- writing

-- Keeps the reason of the first failure to write, such as a closed pipe, in self.broken.
local function note_failure(self, name, ok, why)
  if not ok and not self.broken then self.broken = ("std%s: %s"):format(name, why) end
end

-- Writes texts to one of the two files.
function Output:write(name, ...) note_failure(self, name, self.files[name]:write(...)) end

-- Flushes what was written to one of the files.
function Output:flush(name) note_failure(self, name, self.files[name]:flush()) end

-- Returns the columns of a string, or the number of its bytes if it is not UTF-8.
local function width_of(text) return utf8.len(text) or #text end

-- Removes the bar from the screen.
function Output:hide_bar()
  local bar = self.shown_bar
  if not bar then return end
  self:write(bar.name, "\r", (" "):rep(bar.width), "\r")
  self:flush(bar.name)
end

-- Draws the bar over its last drawing, if that was another.
function Output:draw_bar(name, text, end_of_line)
  local shown = self.shown_bar
  if shown and shown.text == text and not end_of_line then return end
  local before = shown and shown.width or 0
  local width = width_of(text)
  self:write(name, "\r", text, (" "):rep(before - width), end_of_line or "")
  self:flush(name)
  self.shown_bar = not end_of_line and {name = name, text = text, width = width} or nil
end

-- Writes a whole line of a rank, above the bar.
function Output:write_line(stream, line)
  local bar = self.shown_bar
  self:hide_bar()
  self:write(stream.name, self.prefix:format(stream.rank), line, "\n")
  if not bar then return end
  self:flush(stream.name)
  self.shown_bar = nil
  self:draw_bar(bar.name, bar.text)
end

-- ---- reading

-- Takes the text of an unfinished line and returns what is after its last carriage return; a
-- carriage return at the end is left. Text that is replaced is a bar, and so is what follows,
-- except after a bar that was wiped: replaced by spaces.
local function newest_text(stream, text)
  local before, last = text:match "^(.*)\r([^\r]+\r?)$"
  if not before then return text end
  local replaced = before:match "([^\r]*)\r*$"
  stream.bar = not replaced:find "^ +$"
  return last
end

-- Ends a line: of text, or a bar that is drawn for the last time.
local function end_line(self, stream, text)
  text = newest_text(stream, text:gsub("\r$", ""))
  if not stream.bar then
    if stream.rank == 0 and self.shown_bar and stream.name == self.shown_bar.name then
      self:hide_bar()
      self.shown_bar = nil
    end
    self:write_line(stream, text)
  elseif stream.rank == 0 then
    self:draw_bar(stream.name, text, "\n")
  end
  stream.bar = nil
end

-- Keeps an unfinished line; draws the bar of rank 0.
local function keep_rest(self, stream, text)
  local pieces = stream.pieces
  pieces[#pieces + 1] = text
  if not (stream.bar or text:find("\r", 1, true)) then return end
  local rest = newest_text(stream, table.concat(pieces))
  stream.pieces = {rest}
  if stream.rank ~= 0 or not stream.bar then return end
  local shown = rest:gsub("\r$", "")
  if shown ~= "" then self:draw_bar(stream.name, shown) end
end

-- Takes text of a stream that is not part of an error.
local function add_lines(self, stream, text)
  local from = 1
  while true do
    local newline = text:find("\n", from, true)
    if not newline then break end
    local pieces = stream.pieces
    pieces[#pieces + 1] = text:sub(from, newline - 1)
    stream.pieces = {}
    end_line(self, stream, table.concat(pieces))
    from = newline + 1
  end
  if from <= #text then keep_rest(self, stream, text:sub(from)) end
end

-- Ends a line that has no newline.
local function end_rest(self, stream)
  local rest = table.concat(stream.pieces)
  stream.pieces = {}
  if rest ~= "" then end_line(self, stream, rest) end
end

-- Takes text of an error; returns what follows it, nil while it has not ended.
local function add_error(self, stream, text)
  local stop = text:find("\2", 1, true)
  local failure = stream.failure
  failure[#failure + 1] = text:sub(1, stop and stop - 1)
  if not stop then return nil end
  stream.failure = nil
  self.failures[#self.failures + 1] = {rank = stream.rank, text = table.concat(failure)}
  return text:sub(stop + 1)
end

--- Takes bytes that a rank has written to its stdout ("out") or stderr ("err").
function Output:add(rank, name, text)
  local stream = self.streams[rank .. name]
  while text and text ~= "" do
    if stream.failure then
      text = add_error(self, stream, text)
    else
      local start = name == "err" and text:find("\1", 1, true) or nil
      add_lines(self, stream, text:sub(1, start and start - 1))
      if start then
        end_rest(self, stream)
        stream.failure = {}
      end
      text = start and text:sub(start + 1)
    end
  end
  self:flush(name)
end

--- Ends the output of a rank that has ended: shows an unfinished line, and keeps an error that the
-- rank could not write to its end.
function Output:finish(rank)
  for _, name in ipairs{"out", "err"} do
    local stream = self.streams[rank .. name]
    if stream.failure then add_error(self, stream, "\2") end
    end_rest(self, stream)
    self:flush(name)
  end
end

-- ---- errors

--- Returns the ranks of a list, in increasing order, as text: "rank 3", "ranks 0 to 3 and 5".
function output.ranks(list)
  local parts, i = {}, 1
  while i <= #list do
    local j = i
    while list[j + 1] == list[j] + 1 do j = j + 1 end
    if j == i + 1 then j = i end
    parts[#parts + 1] = i == j and tostring(list[i]) or ("%d to %d"):format(list[i], list[j])
    i = j + 1
  end
  local last = table.remove(parts)
  local text = #parts > 0 and table.concat(parts, ", ") .. " and " .. last or last
  return (#list == 1 and "rank " or "ranks ") .. text
end

-- Returns the errors in the order in which they were read, each with the list of its ranks. The
-- rank that an error of lt.distributed names, "all_reduce: on rank 1: ...", is in that list.
local function groups(failures)
  local list, by_text = {}, {}
  for _, failure in ipairs(failures) do
    local text = failure.text:gsub((": on rank %d: "):format(failure.rank), ": ", 1)
    local group = by_text[text]
    if not group then
      group = {text = text, ranks = {}}
      by_text[text] = group
      list[#list + 1] = group
    end
    table.insert(group.ranks, failure.rank)
  end
  return list
end

--- Shows each error once, below the ranks that ended with it, and returns whether there was one.
function Output:show_failures()
  for _, group in ipairs(groups(self.failures)) do
    table.sort(group.ranks)
    self:write("err", output.ranks(group.ranks), ":\n", group.text,
      group.text:sub(-1) == "\n" and "" or "\n")
  end
  self:flush "err"
  return #self.failures > 0
end

return output
