-- Keeps the features on the device; only the answer goes to the host.
local lt = require "lutra"
local nn = lt.nn
local device = "cuda"

local body = nn.Linear(8, 16):to(device)
local head = nn.Linear(16, 3):to(device)

local function features(x) return body(x):relu():detach() end

local x = lt.randn{32, 8, device = device}
local f = features(x)
print(f:size(1) .. " rows of features")
local logits = head(f)
print(logits:argmax(2):cpu())
