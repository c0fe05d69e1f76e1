--- Messages from one rank to another: send, recv, and several at once.
--
-- The receiver's tensor has the size and dtype of what is sent. Messages from one rank to another
-- with the same tag arrive in order. NCCL has no tags: messages of CUDA tensors from one rank to
-- another arrive in the order of the calls. Ranks are those of the job.

local args = require "lutra.internal.args"
local call = require "lutra.distributed.call"
local groups = require "lutra.distributed.groups"

local messages = {}

-- Returns the call that sends a tensor or receives one; peer nil: from any rank.
local function spec(title, group, kind, x, peer, tag)
  args.check(tag >= 0 and tag <= 32767,
    "%s: expected an integer from 0 to 32767 for argument 'tag', got %d", title, tag)
  local rank = peer and groups._group_rank(group, peer, title, kind == "send" and "dst" or "src")
  args.check(rank ~= group._rank, "%s: expected another rank, got %s, which is this process",
    title, tostring(peer))
  args.check(#group.ranks > 1, "%s: the process group has no other rank", title)
  return {kind = kind, [kind == "send" and "input" or "output"] = x, count = x:numel(),
    peer = rank or -1, tag = tag, shape = x, device = x.device,
    fault = call.fault(group, {{"tensor", x}})}
end

-- Makes one message; returns its work.
local function message(title, group, kind, x, peer, tag, now)
  group = groups._of(group, title)
  if groups._is_outside(group) then return nil end
  args.check(peer ~= nil or x.device == "cpu" or kind == "send",
    "%s: expected a rank for argument 'src', as NCCL receives from a known rank", title)
  return call.run_messages(group, {spec(title, group, kind, x, peer, tag)}, now)
end

local SEND = "Tensor tensor, int dst, any? group = nil, int tag = 0"
local RECV = "Tensor tensor, int? src = nil, any? group = nil, int tag = 0"

local parse_send = args.signature("send", SEND)
--- Sends a tensor to rank dst, which receives it by recv with the same tag. Returns when the tensor
-- may be changed. NCCL ignores the tag: messages of CUDA tensors are received in the order of the
-- sends.
function messages.send(...)
  local x, dst, group, tag = parse_send(...)
  local work = message("send", group, "send", x, dst, tag, true)
  if work then work:wait() end
end

local parse_recv = args.signature("recv", RECV)
--- Receives a tensor from rank src, from any rank without it. Returns the rank that sent it; -1
-- outside of the group.
function messages.recv(...)
  local x, src, group, tag = parse_recv(...)
  local work = message("recv", group, "recv", x, src, tag, true)
  if not work then return -1 end
  work:wait()
  return work:source_rank() or src
end

local parse_isend = args.signature("isend", SEND)
--- Begins to send a tensor to rank dst, and returns a work. The tensor is not changed before the
-- work is done.
function messages.isend(...)
  local x, dst, group, tag = parse_isend(...)
  return message("isend", group, "send", x, dst, tag, false)
end

local parse_irecv = args.signature("irecv", RECV)
--- Begins to receive a tensor from rank src, and returns a work.
function messages.irecv(...)
  local x, src, group, tag = parse_irecv(...)
  return message("irecv", group, "recv", x, src, tag, false)
end

local P2POp = {__name = "P2POp"}
P2POp.__index = P2POp

local parse_op = args.signature("P2POp", "any op, Tensor tensor, int peer, any? group = nil, "
  .. "int tag = 0")
--- Returns one message for batch_isend_irecv. op: lt.distributed.isend or lt.distributed.irecv.
function messages.P2POp(...)
  local op, x, peer, group, tag = parse_op(...)
  args.expect(op == messages.isend or op == messages.irecv, "P2POp", "isend or irecv", "op", op)
  return setmetatable({kind = op == messages.isend and "send" or "recv", tensor = x, peer = peer,
    group = group, tag = tag}, P2POp)
end

local parse_batch = args.signature("batch_isend_irecv", "list p2p_op_list")
--- Begins several messages, which run in any order, so that ranks may send to each other. Returns a
-- list of works, which may be one for all of them. All messages have the same group and device.
function messages.batch_isend_irecv(...)
  local list = parse_batch(...)
  args.check(#list > 0, "batch_isend_irecv: expected at least one P2POp for argument 'p2p_op_list'")
  local group, specs = nil, {}
  for i = 1, #list do
    local op = list[i]
    args.check(getmetatable(op) == P2POp,
      "batch_isend_irecv: expected a P2POp at %d of argument 'p2p_op_list', got %s", i,
      args.show(op))
    local own = groups._of(op.group, "batch_isend_irecv")
    group = group or own
    args.check(own == group, "batch_isend_irecv: expected messages of one process group, got one "
      .. "of another at %d of argument 'p2p_op_list'", i)
    if groups._is_outside(group) then return {} end
    specs[i] = spec("batch_isend_irecv", group, op.kind, op.tensor, op.peer, op.tag)
    args.check(specs[i].device == specs[1].device,
      "batch_isend_irecv: expected tensors on one device, got %q and %q", specs[1].device,
      specs[i].device)
  end
  return {call.run_messages(group, specs, false)}
end

return messages
