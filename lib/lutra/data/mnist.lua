--- data.mnist: the MNIST database of handwritten digits (LeCun, Cortes, Burges 1998), from its IDX
-- files.

local lt = require "lutra"
local args = require "lutra.internal.args"
local files = require "lutra.files"

-- Returns the path of an IDX file, compressed or not. Raises an error when there is neither.
local function find(dir, name)
  local path = dir .. "/" .. name
  if files.kind(path .. ".gz") then return path .. ".gz" end
  args.check(files.kind(path), "mnist: cannot open %s.gz or %s: neither file exists", path, name)
  return path
end

local parse = args.signature("mnist", "string dir, string part = 'train'")

--- Returns the images and labels of the part "train" or "t10k": images {n, 28, 28} of dtype uint8
-- and labels {n} of dtype int64, where digit d has the label d + 1 (labels count from 1). Raises
-- an error for files that cannot be read or contain other data.
return function(...)
  local dir, part = parse(...)
  args.path("mnist", "dir", dir)
  args.path("mnist", "part", part)
  local image_path = find(dir, part .. "-images-idx3-ubyte")
  local label_path = find(dir, part .. "-labels-idx1-ubyte")
  local images, labels = lt.load_idx(image_path), lt.load_idx(label_path)
  args.check(images.dtype == "uint8" and images.ndim == 3,
    'mnist: expected images of shape {n, 28, 28} and dtype "uint8" in %s, got %s, "%s"', image_path,
    images.shape, images.dtype)
  args.check(labels.dtype == "uint8" and labels.ndim == 1,
    'mnist: expected labels of shape {n} and dtype "uint8" in %s, got %s, "%s"', label_path,
    labels.shape, labels.dtype)
  args.check(images:size(1) == labels:size(1), "mnist: expected as many labels as images, got %d "
    .. "images in %s and %d labels in %s", images:size(1), image_path, labels:size(1), label_path)
  labels = labels:to "int64"
  args.check(labels:numel() > 0 and labels:max():item() <= 9,
    "mnist: expected labels from 0 to 9 in %s, got others", label_path)
  return images, labels + 1
end
