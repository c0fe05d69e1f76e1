--- datasets.CIFAR10 and CIFAR100: color images of 32 x 32 pixels, from the files of the binary
-- version (Krizhevsky 2009): records of 1 or 2 label bytes and 3072 bytes of pixels.

local lt = require "lutra"
local args = require "lutra.internal.args"
local VisionDataset = require "lutra.vision.datasets.vision_dataset"

local PARAMETERS = "string root, bool train = true, any? transform = nil, "
  .. "any? target_transform = nil, bool download = false"
local PIXELS <const> = 3 * 32 * 32

-- Defines a class. `labels` is the number of label bytes of a record, of which the last one is the
-- label of the class; `names` is the file of the classes' names.
local function define(name, folder, train_files, test_files, names, labels, count)
  local class = VisionDataset:extend(name)
  local parse = args.signature(name, PARAMETERS)
  local source = "https://www.cs.toronto.edu/~kriz/" .. name:gsub("(%d+)$", "-%1"):lower()
    .. "-binary.tar.gz"

  local function read(self, path)
    local bytes = self:_read(path)
    local record = labels + PIXELS
    args.check(#bytes > 0 and #bytes % record == 0,
      "%s: expected a multiple of %d bytes in %s, got %d", name, record, path, #bytes)
    local rows = lt.frombuffer(bytes, {dtype = "uint8"}):reshape(-1, record)
    local targets = rows:select(2, labels):to "int64"
    args.check(targets:max():item() < count, "%s: expected labels from 0 to %d in %s, got others",
      name, count - 1, path)
    return rows:narrow(2, labels + 1, PIXELS):reshape(-1, 3, 32, 32), targets + 1
  end

  function class:init(...)
    local root, train, transform, target_transform, download = parse(...)
    args.path(name, "root", root)
    VisionDataset.init(self, root, {transform = transform, target_transform = target_transform})
    self.train = train
    local where = root .. "/" .. folder
    local list = train and train_files or test_files
    self:_refuse_download(download, list, where, source)
    local images, targets = {}, {}
    for i, file in ipairs(list) do
      images[i], targets[i] = read(self, self:_find(file, {where, root}, source))
    end
    self.data, self.targets = lt.cat(images), lt.cat(targets)
    self.classes, self.class_to_idx = {}, {}
    for line in self:_read(self:_find(names, {where, root}, source)):gmatch "[^\r\n]+" do
      self.classes[#self.classes + 1] = line
      self.class_to_idx[line] = #self.classes
    end
  end

  function class:__len() return self.data:size(1) end

  function class:get(i)
    i = self:check_position(i)
    return self:_transformed(self.data[i], self.targets[i]:item())
  end

  function class:__tostring()
    return ("%s of %d images, %s"):format(name, #self, self.train and "training" or "test")
  end

  return class
end

return {
  --- datasets.CIFAR10{root, train = true, transform = nil, target_transform = nil, download =
  -- false}: the binary version, in root/cifar-10-batches-bin or root. A sample is a uint8 image {3,
  -- 32, 32} and a label from 1 to 10: classes[label] is its name. `data` {n, 3, 32, 32} and
  -- `targets` {n} are all of them. Raises an error for missing or other files, and for download =
  -- true.
  CIFAR10 = define("CIFAR10", "cifar-10-batches-bin", {"data_batch_1.bin", "data_batch_2.bin",
    "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}, {"test_batch.bin"},
    "batches.meta.txt", 1, 10),
  --- datasets.CIFAR100{root, train = true, transform = nil, target_transform = nil, download =
  -- false}: the binary version, in root/cifar-100-binary or root, with the fine labels 1 to 100:
  -- see datasets.CIFAR10.
  CIFAR100 = define("CIFAR100", "cifar-100-binary", {"train.bin"}, {"test.bin"},
    "fine_label_names.txt", 2, 100),
}
