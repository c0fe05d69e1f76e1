-- Examples of the containers of nn.
local lt = require "lutra"
local nn = lt.nn

-- Modules by name, in order
local blocks = nn.ModuleDict{{"encoder", nn.Linear(3, 2)}, {"activation", nn.ReLU()}}
print(#blocks, blocks:contains "head")  --> 2	false
blocks.head = nn.Linear(2, 1)
blocks:update{{"head", nn.Linear(2, 4)}}
local names = {}
for name in blocks:keys() do names[#names + 1] = name end
print(table.concat(names, " "))  --> encoder activation head
for _, block in blocks:items() do block:train() end -- or pairs(blocks)
for block in blocks:values() do block:eval() end
print(blocks:pop "activation")  --> ReLU()
blocks:clear()

-- Parameters by number
local list = nn.ParameterList{lt.zeros(2, 3), lt.zeros(3)}
print(list[1].shape, #list)  --> {2, 3}	2
list:append(lt.zeros(4)):insert(1, lt.zeros(1)):extend{lt.zeros(5)}
print(list:pop().shape)  --> {5}

-- Parameters by name
local dict = nn.ParameterDict{{"left", lt.zeros(2)}, {"right", lt.zeros(3)}}
dict.middle = lt.zeros(1)
dict:update{{"left", lt.zeros(4)}}
print(dict.left.shape, #dict, dict:contains "left", dict:get("top", "none"))  --> {4}	3	true	none
print(dict:setdefault("top", lt.zeros(5)).shape)  --> {5}
print((dict:popitem()))  --> top
local keys = {}
for name in dict:keys() do keys[#keys + 1] = name end
print(table.concat(keys, " "))  --> left right middle
for _, p in dict:items() do p:requires_grad_() end
for p in dict:values() do p:requires_grad_() end
print(#dict:copy(), #dict:fromkeys({"a", "b"}, lt.zeros(2)))  --> 3	2
print(dict:pop("left").shape)  --> {4}
dict:clear()

-- Layers one after another, with names; the last one is replaced
local net = nn.Sequential{{"features", nn.Linear(3, 8)}, {"head", nn.Linear(8, 10)}}
net.head = nn.Linear(8, 2)
print(net.features)  --> Linear(in_features=3, out_features=8, bias=true)
print(net:pop())           --> Linear(in_features=8, out_features=2, bias=true)
local modules = nn.ModuleList{nn.ReLU()}
print(modules:pop(1), #modules)  --> ReLU()	0
