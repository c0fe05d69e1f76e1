--- datasets.VisionDataset: the base of image datasets: a root folder, a transform of the image and
-- one of the label.

local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"
local files = require "lutra.files"

local VisionDataset = Dataset:extend "VisionDataset"

-- Returns `f`, nil or a function. Raises an error for any other value.
local function check(self, name, f)
  args.expect(f == nil or args.is_callable(f), getmetatable(self).__name,
    "a transform or a function", name, f)
  return f
end

--- datasets.VisionDataset{root, transforms = nil, transform = nil, target_transform = nil}:
-- transforms(img, label) is called with both, transform(img) and target_transform(label) with one
-- of them.
function VisionDataset:init(root, options)
  options = options or {}
  args.expect(args.is_plain(options), getmetatable(self).__name, "a table", "options", options)
  self.root = root
  self.transforms = check(self, "transforms", options.transforms)
  self.transform = check(self, "transform", options.transform)
  self.target_transform = check(self, "target_transform", options.target_transform)
end

--- Returns the image and the label of a sample after the transforms.
function VisionDataset:_transformed(img, target)
  if self.transforms then return self.transforms(img, target) end
  if self.transform then img = self.transform(img) end
  if self.target_transform then target = self.target_transform(target) end
  return img, target
end

--- Raises an error unless `download` is false: `names` are the files, `where` the folder.
function VisionDataset:_refuse_download(download, names, where, source)
  args.check(not download, "%s: cannot download: Lutra has no network access\nhint: put %s from %s "
    .. "into the folder %q", getmetatable(self).__name, table.concat(names, ", "), source, where)
end

--- Returns the path of the file `name` in the first of the folders that contains it, also with the
-- suffix ".gz". Raises an error that names the file when there is none.
function VisionDataset:_find(name, folders, source)
  for _, folder in ipairs(folders) do
    for _, suffix in ipairs{"", ".gz"} do
      local path = folder .. "/" .. name .. suffix
      if files.kind(path) == "file" then return path end
    end
  end
  return args.fail('%s: cannot find the file %s in "%s"\nhint: get it from %s',
    getmetatable(self).__name, name, table.concat(folders, '" or "'), source)
end

--- Returns the bytes of a file. Raises an error when it cannot be read.
function VisionDataset:_read(path)
  local file, why = io.open(path, "rb")
  if not file then args.fail("%s: cannot open %s", getmetatable(self).__name, why) end
  local bytes = file:read "a"
  file:close()
  return args.check(bytes, "%s: cannot read %s", getmetatable(self).__name, path)
end

return VisionDataset
