--- datasets.DatasetFolder and ImageFolder: samples in a folder for each class: root/cat/1.png.

local lt = require "lutra"
local args = require "lutra.internal.args"
local files = require "lutra.files"
local VisionDataset = require "lutra.vision.datasets.vision_dataset"

local DatasetFolder = VisionDataset:extend "DatasetFolder"

-- Returns the sorted names in a folder; nil and the reason when it cannot be read.
local function entries(folder)
  local names, why = files.list(folder)
  if not names then return nil, why end
  local list = {}
  for _, name in ipairs(names) do list[#list + 1] = name:match "^(.-)/?$" end
  table.sort(list)
  return list
end

-- Appends the paths of the files below a folder, sorted, links to folders included; `depth` limits
-- folders that link to themselves.
local function walk(folder, list, depth)
  local folders = {}
  for _, name in ipairs(entries(folder) or {}) do
    local path = folder .. "/" .. name
    local kind = files.kind(path)
    if kind == "file" then list[#list + 1] = path end
    if kind == "folder" then folders[#folders + 1] = path end
  end
  for _, path in ipairs(depth < 32 and folders or {}) do walk(path, list, depth + 1) end
  return list
end

-- Returns the sorted names of the folders in `root`.
local function classes_of(title, root)
  local names, why = entries(root)
  if not names then args.fail("%s: cannot read the folder %s", title, tostring(why)) end
  local classes = {}
  for _, name in ipairs(names) do
    if files.kind(root .. "/" .. name) == "folder" then classes[#classes + 1] = name end
  end
  args.check(#classes > 0, "%s: expected a folder for each class in %q, got none", title, root)
  return classes
end

-- Returns the test whether a path is a sample.
local function validator(extensions, is_valid_file)
  if is_valid_file then return is_valid_file end
  return function(path)
    local lower = path:lower()
    for _, extension in ipairs(extensions) do
      if lower:sub(-#extension) == extension:lower() then return true end
    end
    return false
  end
end

local function init(self, title, root, loader, extensions, options)
  args.path(title, "root", root)
  VisionDataset.init(self, root, options)
  self.loader, self.extensions = loader, extensions
  self.classes, self.class_to_idx = classes_of(title, root), {}
  self.samples, self.targets = {}, {}
  local is_valid = validator(extensions or {}, options.is_valid_file)
  for i, name in ipairs(self.classes) do
    self.class_to_idx[name] = i
    local before = #self.samples
    for _, path in ipairs(walk(root .. "/" .. name, {}, 1)) do
      if is_valid(path) then
        self.samples[#self.samples + 1] = {path, i}
        self.targets[#self.targets + 1] = i
      end
    end
    args.check(options.allow_empty or #self.samples > before,
      "%s: expected a file%s in the folder %q of each class, got none\nhint: allow_empty = true",
      title, extensions and " that ends in " .. table.concat(extensions, ", ") or "",
      root .. "/" .. name)
  end
end

local FIRST = "any? transform = nil, any? target_transform = nil, "
local parse = args.signature("DatasetFolder", "string root, any loader, list? extensions = nil, "
  .. FIRST .. "function? is_valid_file = nil, bool allow_empty = false")

--- datasets.DatasetFolder{root, loader, extensions = nil, transform = nil, target_transform = nil,
-- is_valid_file = nil, allow_empty = false}: the files below a folder for each class, in order of
-- their names, that end in one of the extensions (".npy") or for which is_valid_file(path) is true.
-- A sample is loader(path) and the number of the class. Fields: classes, class_to_idx, samples
-- ({path, label}), targets. Raises an error when there are no folders, or a class has no files.
function DatasetFolder:init(...)
  local root, loader, extensions, transform, target_transform, is_valid_file, allow = parse(...)
  args.expect(args.is_callable(loader), "DatasetFolder", "a function", "loader", loader)
  args.check((extensions == nil) ~= (is_valid_file == nil),
    "DatasetFolder: expected either argument 'extensions' or argument 'is_valid_file', got %s",
    extensions and "both" or "neither")
  init(self, "DatasetFolder", root, loader, extensions, {transform = transform,
    target_transform = target_transform, is_valid_file = is_valid_file, allow_empty = allow})
end

function DatasetFolder:__len() return #self.samples end

function DatasetFolder:get(i)
  local sample = self.samples[self:check_position(i)]
  return self:_transformed(self.loader(sample[1]), sample[2])
end

local ImageFolder = DatasetFolder:extend "ImageFolder"

local IMAGES = {".jpg", ".jpeg", ".png"}
local function read_rgb(path) return lt.vision.io.read_image(path, "RGB") end

local parse_images = args.signature("ImageFolder", "string root, " .. FIRST
  .. "any? loader = nil, function? is_valid_file = nil, bool allow_empty = false")

--- datasets.ImageFolder{root, transform = nil, target_transform = nil, loader = nil, is_valid_file
-- = nil, allow_empty = false}: the PNG and JPEG files below a folder for each class; a sample is
-- an RGB image, uint8 {3, H, W}, and the number of the class: see datasets.DatasetFolder.
function ImageFolder:init(...)
  local root, transform, target_transform, loader, is_valid_file, allow = parse_images(...)
  args.expect(loader == nil or args.is_callable(loader), "ImageFolder", "a function", "loader",
    loader)
  init(self, "ImageFolder", root, loader or read_rgb, not is_valid_file and IMAGES or nil,
    {transform = transform, target_transform = target_transform, is_valid_file = is_valid_file,
      allow_empty = allow})
  self.imgs = self.samples
end

return {DatasetFolder = DatasetFolder, ImageFolder = ImageFolder, VisionDataset = VisionDataset}
