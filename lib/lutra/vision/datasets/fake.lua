--- datasets.FakeData: random images, for tests of programs.

local lt = require "lutra"
local args = require "lutra.internal.args"
local VisionDataset = require "lutra.vision.datasets.vision_dataset"

local FakeData = VisionDataset:extend "FakeData"

local parse = args.signature("FakeData", "int(>=0) size = 1000, ints? image_size = nil, "
  .. "int(>=1) num_classes = 10, any? transform = nil, any? target_transform = nil, "
  .. "int random_offset = 0")

--- datasets.FakeData{size = 1000, image_size = {3, 224, 224}, num_classes = 10, transform = nil,
-- target_transform = nil, random_offset = 0}: uint8 images of random pixels and random labels from
-- 1 to num_classes. Sample i is always the same; random_offset makes other samples.
function FakeData:init(...)
  local size, image_size, classes, transform, target_transform, offset = parse(...)
  VisionDataset.init(self, nil, {transform = transform, target_transform = target_transform})
  self.size, self.image_size, self.num_classes = size, image_size or {3, 224, 224}, classes
  self.random_offset = offset
  args.check(#self.image_size == 3,
    "FakeData: expected {C, H, W} for argument 'image_size', got %d numbers", #self.image_size)
end

function FakeData:__len() return self.size end

function FakeData:get(i)
  i = self:check_position(i)
  local generator = lt.Generator():manual_seed(self.random_offset + i)
  local img = lt.randint(0, 255, self.image_size, {generator = generator, dtype = "uint8",
    device = "cpu"})
  local label = lt.randint(1, self.num_classes, {1}, {generator = generator, device = "cpu"}):item()
  return self:_transformed(img, label)
end

return {FakeData = FakeData}
