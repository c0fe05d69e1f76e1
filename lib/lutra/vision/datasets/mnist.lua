--- datasets.MNIST, FashionMNIST and KMNIST: gray images of 28 x 28 pixels in 10 classes, from IDX
-- files.

local lt = require "lutra"
local args = require "lutra.internal.args"
local VisionDataset = require "lutra.vision.datasets.vision_dataset"

local PARAMETERS = "string root, bool train = true, any? transform = nil, "
  .. "any? target_transform = nil, bool download = false"

-- Returns the class `name` with the names of its classes; `source` is where its files are.
local function define(name, classes, source)
  local class = VisionDataset:extend(name)
  local parse = args.signature(name, PARAMETERS)
  class.classes = classes

  function class:init(...)
    local root, train, transform, target_transform, download = parse(...)
    args.path(name, "root", root)
    VisionDataset.init(self, root, {transform = transform, target_transform = target_transform})
    self.train = train
    local part = train and "train" or "t10k"
    local images, labels = part .. "-images-idx3-ubyte", part .. "-labels-idx1-ubyte"
    local where = root .. "/" .. name .. "/raw"
    self:_refuse_download(download, {images .. ".gz", labels .. ".gz"}, where, source)
    local folders = {where, root}
    images, labels = self:_find(images, folders, source), self:_find(labels, folders, source)
    self.data, self.targets = lt.load_idx(images), lt.load_idx(labels)
    local ok = self.data.dtype == "uint8" and self.data.ndim == 3 and self.targets.ndim == 1
      and self.targets.dtype == "uint8" and self.data:size(1) == self.targets:size(1)
      and (self.targets:numel() == 0 or self.targets:max():item() < #classes)
    args.check(ok, "%s: expected images of shape {n, 28, 28} in %s and n labels in %s, got %s and "
      .. "%s", name, images, labels, self.data.shape, self.targets.shape)
    self.targets = self.targets:to "int64" + 1
    self.class_to_idx = {}
    for i, label in ipairs(classes) do self.class_to_idx[label] = i end
  end

  function class:__len() return self.data:size(1) end

  function class:get(i)
    i = self:check_position(i)
    return self:_transformed(self.data[i]:unsqueeze(1), self.targets[i]:item())
  end

  function class:__tostring()
    return ("%s of %d images, %s"):format(name, #self, self.train and "training" or "test")
  end

  return class
end

return {
  --- datasets.MNIST{root, train = true, transform = nil, target_transform = nil, download = false}:
  -- the digits of LeCun, Cortes and Burges (1998). The files ("train-images-idx3-ubyte",
  -- "t10k-...", also with ".gz") are in root/MNIST/raw, as torchvision stores them, or in root. A
  -- sample is a uint8 image {1, 28, 28} and a label, the digit + 1: classes[label] is its name.
  -- `data` {n, 28, 28} and `targets` {n} are all of them. Raises an error for missing or other
  -- files, and for download = true.
  MNIST = define("MNIST", {"0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five",
    "6 - six", "7 - seven", "8 - eight", "9 - nine"},
    "https://ossci-datasets.s3.amazonaws.com/mnist/"),
  --- datasets.FashionMNIST{root, train = true, transform = nil, target_transform = nil, download =
  -- false}: articles of clothing (Xiao et al. 2017), in root/FashionMNIST/raw: see datasets.MNIST.
  FashionMNIST = define("FashionMNIST", {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"},
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"),
  --- datasets.KMNIST{root, train = true, transform = nil, target_transform = nil, download =
  -- false}: Japanese letters (Clanuwat et al. 2018), in root/KMNIST/raw: see datasets.MNIST.
  KMNIST = define("KMNIST", {"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"},
    "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"),
}
