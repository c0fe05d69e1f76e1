--- Collectives of Lua values: numbers, strings, tables, functions, tensors.
--
-- A value travels as bytes through MPI. A table may refer to itself; a function travels with the
-- variables that it uses. Tensors arrive on the device that they were on, where it exists. Only
-- values that lt can copy to another process travel: no threads, files or userdata of others.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local call = require "lutra.distributed.call"
local groups = require "lutra.distributed.groups"
local messages = require "lutra.distributed.messages"
local plural = require("lutra.internal.text").plural
local reader = require "lutra.internal.transfer.reader"
local writer = require "lutra.internal.transfer.writer"

local objects = {}

-- Returns the number of values in a list, which may contain nil if it has a field n.
local function length_of(list) return math.type(list.n) == "integer" and list.n or #list end

-- Returns the bytes of a value, with those of its tensors; nil and why it cannot be sent.
local function pack(value)
  local bytes, tensors, what = writer.pack(value, "the value", true)
  if not bytes then return nil, ("cannot send %s: it is %s"):format(tensors, what) end
  local parts = {string.pack("<s8 I4", bytes, #tensors)}
  for _, x in ipairs(tensors) do
    x = x:detach()
    parts[#parts + 1] = string.pack("<s1 s1 B", x.dtype, x.device, x.ndim)
    for _, n in ipairs(x.shape) do parts[#parts + 1] = string.pack("<i8", n) end
    parts[#parts + 1] = string.pack("<s8", core._tensor_bytes(x:cpu():contiguous()))
  end
  return table.concat(parts)
end

-- Returns the value of bytes.
local function unpack(text)
  local bytes, count, position = string.unpack("<s8 I4", text)
  local tensors = {}
  for i = 1, count do
    local dtype, device, ndim, data
    dtype, device, ndim, position = string.unpack("<s1 s1 B", text, position)
    local shape = {}
    for d = 1, ndim do shape[d], position = string.unpack("<i8", text, position) end
    data, position = string.unpack("<s8", text, position)
    local x = #data > 0 and lt.frombuffer(data, {dtype = dtype})
      or lt.empty{0, dtype = dtype, device = "cpu"}
    x = x:reshape(shape)
    tensors[i] = device ~= "cpu" and pcall(lt.device, device) and x:to(device) or x
  end
  return reader.unpack(bytes, tensors)
end

-- Returns a vector with bytes; a string of a vector.
local function to_tensor(text)
  if #text == 0 then return lt.empty{0, dtype = "uint8", device = "cpu"} end
  return lt.frombuffer(text, {dtype = "uint8"})
end
local to_text = core._tensor_bytes

-- Returns the integers as a vector on the CPU.
local function integers(list) return lt.tensor(list, {dtype = "int64", device = "cpu"}) end

-- Makes a call of CPU tensors, through MPI whatever the backend of the group is, for the function
-- `title`.
local function run(title, group, spec)
  spec.title = title
  call.run(group, spec)
end

-- Returns `value`. Without one, the function `title`, whose first call is a `kind`, cannot go on
-- because of the fault: raises an error on all ranks.
local function need(title, group, kind, value, fault)
  return value or call.refuse(group, kind, fault, title .. ": " .. fault)
end

-- Returns the strings of all ranks, each of which packs a value. They are padded to the length of
-- the longest.
local function all_gather_text(title, group, value)
  local text = need(title, group, "all_gather", pack(value))
  local size = #group.ranks
  local own = integers{#text}
  local lengths = lt.empty{size, dtype = "int64", device = "cpu"}
  run(title, group, {kind = "all_gather", input = own, output = lengths, count = 1, shape = own})
  local list, longest = lengths:totable(), 1
  for _, n in ipairs(list) do longest = math.max(longest, n) end
  local input = to_tensor(text .. ("\0"):rep(longest - #text))
  local output = lt.empty{size * longest, dtype = "uint8", device = "cpu"}
  run(title, group, {kind = "all_gather", input = input, output = output, count = longest,
    shape = input})
  local all, texts = to_text(output), {}
  for i, n in ipairs(list) do
    texts[i] = all:sub((i - 1) * longest + 1, (i - 1) * longest + n)
  end
  return texts
end

-- Sends the string of the root to all ranks, and returns it.
local function broadcast_text(title, group, root, text)
  local length = integers{text and #text or 0}
  run(title, group, {kind = "broadcast", output = length, count = 1, peer = root, shape = length})
  local n = length:item()
  local bytes = text and to_tensor(text) or lt.empty{n, dtype = "uint8", device = "cpu"}
  run(title, group, {kind = "broadcast", output = bytes, count = n, peer = root, shape = bytes})
  return to_text(bytes)
end

-- Returns the group of an argument and the rank of the root in it, or nil outside of the group.
local function member(group, root, title, name)
  group = groups._of(group, title)
  if groups._is_outside(group) then return nil end
  return group, root and groups._group_rank(group, root, title, name)
end

--- Copies the values of the list of rank src, by default 0, to the lists of all others, which have
-- the same length. The arguments are positional; {src = 1} may take the place of src.
function objects.broadcast_object_list(object_list, src, group)
  local list = object_list
  args.expect(args.is_plain(list), "broadcast_object_list", "a list", "object_list", list)
  if args.is_plain(src) then src, group = src.src, src.group end
  src = src or 0
  args.expect(math.type(src) == "integer", "broadcast_object_list", "a rank", "src", src)
  local members, root = member(group, src, "broadcast_object_list", "src")
  if not members then return end
  local is_root, n = members._rank == root, length_of(list)
  local text
  if is_root then
    text = need("broadcast_object_list", members, "broadcast",
      pack(table.move(list, 1, n, 1, {n = n})))
  end
  text = broadcast_text("broadcast_object_list", members, root, text)
  if is_root then return end
  local values = unpack(text)
  for i = 1, values.n do list[i] = values[i] end
end

--- Copies the value `obj`, which may be a table, of each rank r to object_list[r + 1] on all ranks.
-- The arguments are positional.
function objects.all_gather_object(object_list, obj, group)
  args.expect(args.is_plain(object_list), "all_gather_object", "a list", "object_list", object_list)
  group = member(group, nil, "all_gather_object")
  if not group then return end
  for i, text in ipairs(all_gather_text("all_gather_object", group, obj)) do
    object_list[i] = unpack(text)
  end
end

--- Copies the value `obj`, which may be a table, of each rank r to object_gather_list[r + 1] on
-- rank dst, by default 0; the other ranks give no list. The arguments are positional.
function objects.gather_object(obj, object_gather_list, dst, group)
  local list = object_gather_list
  dst = dst or 0
  args.expect(list == nil or args.is_plain(list), "gather_object", "a list", "object_gather_list",
    list)
  args.expect(math.type(dst) == "integer", "gather_object", "a rank", "dst", dst)
  local members, root = member(group, dst, "gather_object", "dst")
  if not members then return end
  local is_root = members._rank == root
  need("gather_object", members, "all_gather", is_root == (list ~= nil),
    ("expected a list for argument 'object_gather_list' on rank %d only"):format(dst))
  for i, text in ipairs(all_gather_text("gather_object", members, obj)) do
    if is_root then list[i] = unpack(text) end
  end
end

-- Returns the bytes of a list of the bytes of the values, one for each rank; nil and the fault.
local function pack_each(group, list)
  local size, texts = #group.ranks, {}
  if not list or length_of(list) ~= size then
    return nil, ("expected a list of %s for argument 'scatter_object_input_list', one for each "
      .. "rank, got %s"):format(plural(size, "value"), list and length_of(list) or "nil")
  end
  for i = 1, size do
    local text, fault = pack(list[i])
    if not text then return nil, fault end
    texts[i] = text
  end
  return pack(texts)
end

local parse_scatter = args.signature("scatter_object_list",
  "list scatter_object_output_list, list? scatter_object_input_list = nil, int src = 0, "
  .. "any? group = nil")
--- Copies scatter_object_input_list[r + 1] of rank src to scatter_object_output_list[1] on each
-- rank r.
function objects.scatter_object_list(...)
  local out, list, src, wanted = parse_scatter(...)
  local group, root = member(wanted, src, "scatter_object_list", "src")
  if not group then return end
  local text
  if group._rank == root then
    text = need("scatter_object_list", group, "broadcast", pack_each(group, list))
  end
  text = broadcast_text("scatter_object_list", group, root, text)
  out[1] = unpack(unpack(text)[group._rank + 1])
end

local parse_send = args.signature("send_object_list",
  "list object_list, int dst, any? group = nil, any? device = nil")
--- Sends the values of a list to rank dst, which gets them by recv_object_list.
function objects.send_object_list(...)
  local list, dst, group = parse_send(...)
  local n = length_of(list)
  local text, fault = pack(table.move(list, 1, n, 1, {n = n}))
  args.check(text, "send_object_list: %s", fault)
  local bytes = to_tensor(text)
  messages.send(integers{bytes:numel()}, dst, group)
  messages.send(bytes, dst, group)
end

--- Receives the values that rank src (without it: any rank) sends by send_object_list in
-- object_list, and returns the rank that sent them. The arguments are positional.
function objects.recv_object_list(object_list, src, group)
  local list = object_list
  args.expect(args.is_plain(list), "recv_object_list", "a list", "object_list", list)
  args.expect(src == nil or math.type(src) == "integer", "recv_object_list", "a rank", "src", src)
  local length = integers{0}
  local from = messages.recv(length, src, group)
  if from < 0 then return from end
  local bytes = lt.empty{length:item(), dtype = "uint8", device = "cpu"}
  messages.recv(bytes, from, group)
  local values = unpack(to_text(bytes))
  for i = 1, values.n do list[i] = values[i] end
  return from
end

return objects
