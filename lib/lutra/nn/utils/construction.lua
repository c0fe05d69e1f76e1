--- nn.utils.skip_init: construction without initialization.

local lt = require "lutra"
local args = require "lutra.internal.args"

local construction = {}

--- Makes a module of `class` without initializing its parameters: builds it on "meta" with the
-- other arguments, then gives it uninitialized memory on the device among them (or the default
-- one): `nn.skip_init(nn.Linear, 4096, 4096, {device = "cuda"})`. Raises an error when `class` is
-- no module class.
function construction.skip_init(class, ...)
  args.expect(type(class) == "table" and args.is_callable(class), "skip_init",
    "a class of modules", "class", class)
  local given, device = table.pack(...), nil
  local options = given[given.n]
  if args.is_plain(options) and options.device ~= nil then
    local rest = {}
    for key, value in pairs(options) do rest[key] = value end
    device, rest.device = options.device, nil
    given[given.n] = rest
  end
  device = lt.device(device or lt.get_default_device())
  local module = lt.with_device("meta", class, table.unpack(given, 1, given.n))
  args.check(lt.nn.is_module(module), "skip_init: expected a module from %s, got %s",
    args.show(class), args.show(module))
  return module:to_empty(device)
end

return construction
