--- Shared by lt.vision.models: functions that make models, and their weights from a file.

local lt = require "lutra"
local args = require "lutra.internal.args"

local model = {}

local COMMON = "string? weights = nil, bool progress = true, int(>=1) num_classes = 1000"

--- Returns the function models.<name>: it reads `more` options after the common ones, calls
-- make(num_classes, ...) and loads the weights.
function model.maker(name, make, more)
  local parse = args.signature(name, COMMON .. (more and ", " .. more or ""))

  --- Returns the network of this name with torchvision's structure and parameter names, for images
  -- {N, 3, H, W}. `weights` is the path of a checkpoint, torchvision's .pth file among others;
  -- `progress` has no effect. Raises an error for weights of other names or shapes.
  local function new(...)
    local values = table.pack(parse(...))
    local net = make(table.unpack(values, 3, values.n))
    local path = values[1]
    if path then
      args.check(path:find "[./\\]", "%s: expected the path of a file for argument 'weights', got "
        .. "%q: Lutra does not download weights", name, path)
      net:load_state_dict(lt.load(path), {base = 0})
    end
    return net
  end

  return new
end

return model
