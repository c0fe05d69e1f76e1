--- Byte-pair encoding (Sennrich, Haddow, Birch 2016): joins the pair of neighbours that comes first
-- in the list of merges, until no neighbours are in it.

local split = require "lutra.tokenizers.split"

local bpe = {}
bpe.__index = bpe

local CACHED = 20000 -- words

-- ---- a heap of candidates: {rank, place}, the least rank first, then the leftmost

local function before(a, b)
  return a.rank < b.rank or a.rank == b.rank and a.place < b.place
end

local function push(heap, item)
  local i = #heap + 1
  while i > 1 and before(item, heap[i // 2]) do
    heap[i] = heap[i // 2]
    i = i // 2
  end
  heap[i] = item
end

local function pop(heap)
  local top, last, n = heap[1], heap[#heap], #heap - 1
  heap[n + 1] = nil
  if n == 0 then return top end
  local i = 1
  while 2 * i <= n do
    local child = 2 * i
    if child < n and before(heap[child + 1], heap[child]) then child = child + 1 end
    if not before(heap[child], last) then break end
    heap[i] = heap[child]
    i = child
  end
  heap[i] = last
  return top
end

-- ---- encoding

-- Returns the ids of the characters of a word; of one that is not in the vocabulary, those of its
-- bytes, or the id of the unknown token, or nothing.
local function first_ids(self, word)
  local ids = {}
  local characters = split.characters(word)
  for i, character in ipairs(characters) do
    local suffix = i == #characters and self.suffix or ""
    local id = self.vocab[character .. suffix]
    if id then
      ids[#ids + 1] = id
    else
      local bytes = {}
      for k = 1, self.byte_fallback and #character or 0 do
        bytes[k] = self.vocab[("<0x%02X>"):format(character:byte(k))]
      end
      if #bytes == #character then
        table.move(bytes, 1, #bytes, #ids + 1, ids)
      elseif self.unknown and not (self.fuse_unknown and ids[#ids] == self.unknown) then
        ids[#ids + 1] = self.unknown
      end
    end
  end
  return ids
end

-- Returns the ids after all merges.
local function merge(self, ids)
  local pairs_of, heap, following, previous = self.pairs, {}, {}, {}
  local n = #ids
  for i = 1, n do following[i], previous[i] = i < n and i + 1 or nil, i > 1 and i - 1 or nil end
  local function offer(i)
    local next_place = i and following[i]
    local found = next_place and pairs_of[ids[i] << 32 | ids[next_place]]
    if found then
      push(heap, {rank = found.rank, place = i, id = found.id, left = ids[i],
        right = ids[next_place]})
    end
  end
  for i = 1, n - 1 do offer(i) end
  while heap[1] do
    local item = pop(heap)
    local i = item.place
    local k = following[i]
    -- The pair may have changed since: then the item is void.
    if k and ids[i] == item.left and ids[k] == item.right then
      ids[i], ids[k] = item.id, -1
      following[i], following[k] = following[k], nil
      if following[i] then previous[following[i]] = i end
      offer(previous[i])
      offer(i)
    end
  end
  local result, i = {}, 1
  while i and n > 0 do
    result[#result + 1] = ids[i]
    i = following[i]
  end
  return result
end

--- Returns the ids of a word as a list, which the caller must not change.
function bpe:encode(word)
  local ids = self.cache[word]
  if ids then return ids end
  if self.ignore_merges and self.vocab[word] then
    ids = {self.vocab[word]}
  else
    ids = merge(self, first_ids(self, word))
  end
  if self.cached >= CACHED then self.cache, self.cached = {}, 0 end
  self.cache[word], self.cached = ids, self.cached + 1
  return ids
end

--- Returns a model. `vocab` maps tokens to ids from 0 on, `merges` is a list of {left, right}, the
-- first merged first; `options` are unknown (an id), byte_fallback, fuse_unknown, ignore_merges and
-- suffix (of the last character of a word). Returns nil and the reason when a merge is not in the
-- vocabulary.
function bpe.new(vocab, merges, options)
  local self = setmetatable({vocab = vocab, merges = merges, pairs = {}, cache = {}, cached = 0},
    bpe)
  for name, value in pairs(options or {}) do self[name] = value end
  for rank, pair in ipairs(merges) do
    local left, right, both = vocab[pair[1]], vocab[pair[2]], vocab[pair[1] .. pair[2]]
    if not (left and right and both) then
      return nil, ("its merge %d, %q and %q, is not in its vocabulary"):format(rank, pair[1],
        pair[2])
    end
    local key = left << 32 | right
    self.pairs[key] = self.pairs[key] or {rank = rank, id = both}
  end
  return self
end

return bpe
