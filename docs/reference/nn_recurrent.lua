-- Examples of recurrent layers, and of sequences of different lengths.
local lt = require "lutra"
local nn = lt.nn
lt.manual_seed(1)

-- An LSTM over 5 elements of 3 sequences; its state is a table {h, c}
local lstm = nn.LSTM(4, 8, {num_layers = 2})
local x = lt.ones(5, 3, 4)
local out, state = lstm(x)
print(lstm)                           --> LSTM(4, 8, num_layers=2)
print(out.shape)                      --> {5, 3, 8}
print(state[1].shape, state[2].shape) --> {2, 3, 8}	{2, 3, 8}

-- The next elements, from this state
out, state = lstm(x, state)

-- Both directions, with the batch in front
local gru = nn.GRU(4, 8, {batch_first = true, bidirectional = true})
local y, last = gru(lt.ones(3, 5, 4))
print(y.shape, last.shape)                          --> {3, 5, 16}	{2, 3, 8}
print(nn.RNN(4, 8, {nonlinearity = "relu"})(x).shape)  --> {5, 3, 8}
print(nn.RNNBase("GRU", 4, 8))                      --> RNNBase(4, 8)

-- Parameters have PyTorch's names
for name in gru:named_parameters(nil, false) do print(name) break end  --> weight_ih_l0
print(#gru.all_weights, #gru.all_weights[1])                           --> 2	4
gru:reset_parameters()   -- of nn.RNNBase
gru:flatten_parameters() -- of nn.RNNBase, without an effect
local Tagger = nn.RNNBase:extend "Tagger" -- of nn.RNNBase
print(Tagger("LSTM", 4, 8))               --> Tagger(4, 8)

-- One step at a time
local cell = nn.LSTMCell(4, 8)
local h, c = cell(x[1])
h, c = cell(x[2], {h, c})
print(h.shape, c.shape)                                                 --> {3, 8}	{3, 8}
print(nn.GRUCell(4, 8)(x[1]).shape, nn.RNNCell(4, 8)(x[1], h).shape)    --> {3, 8}	{3, 8}
print(nn.RNNCellBase(4, 8, true, 3).weight_ih.shape)                    --> {24, 4}
cell:reset_parameters() -- of nn.RNNCellBase

-- Sequences of different lengths: padded, and again a list
local a, b = lt.tensor{1, 2, 3}, lt.tensor{4, 5}
print(nn.utils.rnn.pad_sequence({a, b}, {batch_first = true}).shape)  --> {2, 3}
print(nn.utils.rnn.unpad_sequence(nn.utils.rnn.pad_sequence{a, b}, {3, 2})[2])  --> tensor{4, 5}

-- Packed, without the padding, as recurrent layers read them
local packed = nn.utils.rnn.pack_sequence({b, a}, {enforce_sorted = false})
print(packed.data, packed.batch_sizes)  --> tensor{1, 4, 2, 5, 3}	tensor{2, 2, 1}
print(nn.utils.rnn.unpack_sequence(packed)[1])                --> tensor{4, 5}
print(nn.utils.rnn.is_packed(packed))                         --> true
print(nn.utils.rnn.invert_permutation(lt.tensor{3, 1, 2}))    --> tensor{2, 3, 1}
print(nn.utils.rnn.PackedSequence(packed.data, packed.batch_sizes).data:numel()) --> 5

-- Packed data moves and converts as a tensor does
local moved = packed:to{device = "cpu", dtype = "float32"} -- of nn.utils.rnn.PackedSequence
packed:double():float():half():long():int():short():char():byte()
packed:cpu()
if lt.cuda.is_available() then packed:pin_memory():cuda() end
print(moved:is_pinned(), moved.is_cuda)  --> false	false

-- A layer over padded sequences and their lengths
local input = nn.utils.rnn.pack_padded_sequence(lt.ones(5, 3, 4), {5, 2, 1})
local output = lstm(input)
local padded, lengths = nn.utils.rnn.pad_packed_sequence(output)
print(padded.shape, lengths)             --> {5, 3, 8}	tensor{5, 2, 1}
