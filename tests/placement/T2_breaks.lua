-- Takes the features to the host and back, as nobody changes them there.
local lt = require "lutra"
local nn = lt.nn
local device = "cuda"

local body = nn.Linear(8, 16):to(device)
local head = nn.Linear(16, 3):to(device)

local function features(x) return body(x):relu():detach():cpu() end

local x = lt.randn{32, 8, device = device}
local f = features(x)
print(f:size(1) .. " rows of features")
local logits = head(f:to(device)) -- T2
print(logits:argmax(2):cpu())
