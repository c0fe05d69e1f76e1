-- lt.vision.datasets over small files in their formats, and over the real MNIST where there is
-- LUTRA_TEST_DATA; lt.vision.utils.

local lt = require "lutra"

local D, T, utils = lt.vision.datasets, lt.vision.transforms, lt.vision.utils
local data = lt.data

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

local function contains(text, part) assert.is_truthy(text:find(part, 1, true), text) end

describe("lt.vision.datasets", function()
  local root

  before_each(function()
    root = os.tmpname()
    os.remove(root)
    assert(os.execute('mkdir -p "' .. root .. '"'))
  end)
  after_each(function() os.execute('rm -r "' .. root .. '"') end)

  local function write(path, bytes)
    os.execute(('mkdir -p "%s"'):format((root .. "/" .. path):match "^(.*)/"))
    local file <close> = assert(io.open(root .. "/" .. path, "wb"))
    file:write(bytes)
  end

  it("reads the files of MNIST", function()
    local pixels = {}
    for i = 1, 3 * 4 do pixels[i] = string.char(i) end
    for _, place in ipairs{"MNIST/raw/", "FashionMNIST/raw/", ""} do
      write(place .. "train-images-idx3-ubyte", "\0\0\8\3" .. (">I4I4I4"):pack(3, 2, 2)
        .. table.concat(pixels))
      write(place .. "train-labels-idx1-ubyte", "\0\0\8\1" .. (">I4"):pack(3) .. "\0\9\4")
    end
    local set = D.MNIST(root)
    assert.equal(3, #set)
    assert.equal("tensor{ 1, 10,  5}", tostring(set.targets))
    local x, label = set:get(-2)
    assert.equal("tensor{{{5, 6},\n        {7, 8}}, shape = {1, 2, 2}, dtype = \"uint8\"}",
      tostring(x))
    assert.equal(10, label)
    assert.equal("9 - nine", set.classes[label])
    assert.equal(5, set.class_to_idx["4 - four"])
    set = D.FashionMNIST{root, transform = T.ToTensor(), target_transform = function(k)
      return -k end}
    assert.equal("float32", set[1][1].dtype)
    assert.equal(-1, set[1][2])
    local batch, labels = data.DataLoader(set, {batch_size = 2}):iter()()
    assert.equal("{2, 1, 2, 2}", tostring(batch.shape))
    assert.equal("tensor{ -1, -10}", tostring(labels))
    assert.equal(3, #D.KMNIST(root))
    contains(message_of(D.MNIST, root, false), ("MNIST: cannot find the file "
      .. 't10k-images-idx3-ubyte in "%s/MNIST/raw" or "%s"\nhint: get it from '):format(root, root))
    contains(message_of(D.MNIST, root, {download = true}), "MNIST: cannot download: ")
    contains(message_of(D.MNIST, root, {download = true}), root .. "/MNIST/raw")
    write("MNIST/raw/train-labels-idx1-ubyte", "\0\0\8\1" .. (">I4"):pack(2) .. "\0\9")
    contains(message_of(D.MNIST, root), "MNIST: expected images of shape {n, 28, 28}")
  end)

  it("reads the files of CIFAR", function()
    local record = string.char(3) .. ("\1"):rep(1024) .. ("\2"):rep(1024) .. ("\3"):rep(1024)
    write("cifar-10-batches-bin/test_batch.bin", record .. "\9" .. record:sub(2))
    write("cifar-10-batches-bin/batches.meta.txt", "airplane\nautomobile\nbird\ncat\n\n")
    local set = D.CIFAR10(root, false)
    assert.equal("{2, 3, 32, 32}", tostring(set.data.shape))
    local x, label = set:get(1)
    assert.equal("{3, 32, 32}", tostring(x.shape))
    assert.equal("tensor{1, 2, 3, dtype = \"uint8\"}", tostring(x[{{}, 7, 9}]))
    assert.equal("cat", set.classes[label])
    assert.equal(10, set[2][2])
    contains(message_of(D.CIFAR10, root), "CIFAR10: cannot find the file data_batch_1.bin")
    write("cifar-10-batches-bin/test_batch.bin", record .. "x")
    contains(message_of(D.CIFAR10, root, false), "CIFAR10: expected a multiple of 3073 bytes")
    write("cifar-10-batches-bin/test_batch.bin", "\x0a" .. record:sub(2))
    contains(message_of(D.CIFAR10, root, false), "CIFAR10: expected labels from 0 to 9")
    write("cifar-100-binary/train.bin", "\7" .. record)
    write("cifar-100-binary/fine_label_names.txt", "apple\naquarium_fish\n")
    set = D.CIFAR100(root)
    assert.equal(4, set[1][2])
    assert.equal("aquarium_fish", set.classes[2])
  end)

  it("reads folders of files", function()
    write("dog/2.txt", "two")
    write("dog/deep/1.txt", "one")
    write("cat/9.TXT", "nine")
    write("cat/9.bin", "no")
    local function read(path)
      local file <close> = assert(io.open(path))
      return file:read "a"
    end
    local set = D.DatasetFolder(root, read, {".txt"})
    assert.equal(3, #set)
    assert.same({"cat", "dog"}, set.classes)
    assert.same({1, 2, 2}, set.targets)
    assert.same({"nine", 1}, set[1])
    assert.same({"two", 2}, set[2])
    assert.same({"one", 2}, set[3])
    contains(message_of(D.DatasetFolder, root, read, {".bin"}),
      "DatasetFolder: expected a file that ends in .bin in the folder")
    set = D.DatasetFolder{root, read, {".bin"}, allow_empty = true}
    assert.equal(1, #set)
    contains(message_of(D.DatasetFolder, root, read),
      "DatasetFolder: expected either argument 'extensions' or argument 'is_valid_file'")
    contains(message_of(D.ImageFolder, root .. "/cat/none"), "ImageFolder: cannot read the folder")
    contains(message_of(D.ImageFolder, root .. "/cat"),
      "ImageFolder: expected a folder for each class in")
  end)

  it("reads folders of images", function()
    if not require("lutra.core")._image_libraries() then
      return pending "libpng is not installed"
    end
    for _, name in ipairs{"a/1.png", "b/1.png", "b/2.PNG"} do
      write(name, "")
      lt.vision.io.write_png(lt.full({1, 4, 5}, 7, {dtype = "uint8"}), root .. "/" .. name)
    end
    local set = D.ImageFolder(root, T.Resize{2, 2})
    assert.equal(3, #set)
    local x, label = set:get(3)
    assert.equal("{3, 2, 2}", tostring(x.shape))
    assert.equal(2, label)
  end)

  it("makes data", function()
    local set = D.FakeData{20, {1, 4, 5}, 3}
    assert.equal(20, #set)
    for i = 1, 20 do
      local x, label = set:get(i)
      assert.equal("{1, 4, 5}", tostring(x.shape))
      assert.is_true(label >= 1 and label <= 3)
      assert.is_true(lt.equal(x, (set:get(i))))
    end
    assert.is_false(lt.equal((set:get(1)), (set:get(2))))
  end)

  it("reads the real MNIST", function()
    local folder = os.getenv "LUTRA_TEST_DATA"
    if not folder then return pending "LUTRA_TEST_DATA is not set" end
    local set = D.MNIST{folder .. "/mnist", train = false, transform = T.Compose{T.ToTensor(),
      T.Normalize(0.1307, 0.3081)}}
    assert.equal(10000, #set)
    assert.equal("7 - seven", set.classes[set[1][2]])
    -- counts of the digits 0 to 9 in the test set
    assert.equal("tensor{ 980, 1135, 1032, 1010,  982,  892,  958, 1028,  974, 1009}",
      tostring(lt.bincount(set.targets)))
    local mean = set.data:float():mean():item() / 255
    assert.is_true(math.abs(mean - 0.1325) < 1e-3)
  end)
end)

describe("lt.vision.utils", function()
  it("draws boxes", function()
    local image = lt.zeros{3, 8, 9, dtype = "uint8"}
    local out = utils.draw_bounding_boxes(image, lt.tensor{{1, 2, 4, 6}}, {colors = {255, 0, 7}})
    assert.equal(14 * 255, out[1]:to("int64"):sum():item()) -- the border of 4 x 5 pixels
    assert.equal(255, out[{1, 3, 2}]:item())
    assert.equal(7, out[{3, 7, 5}]:item())
    assert.equal(0, out[{1, 4, 3}]:item())
    out = utils.draw_bounding_boxes(image:float(), lt.tensor{{0, 0, 20, 20}, {3, 3, 3, 3}},
      {width = 2, fill = true})
    assert.equal("float32", out.dtype)
    contains(message_of(utils.draw_bounding_boxes, image, lt.tensor{{4, 2, 1, 6}}),
      "draw_bounding_boxes: expected the left top before the right bottom pixel in box 1")
  end)

  it("makes grids of lists and single images", function()
    local list = {lt.ones(1, 2, 2), lt.zeros(1, 2, 2)}
    local grid = utils.make_grid(list, 1, 1, {pad_value = 5})
    assert.equal("{3, 7, 4}", tostring(grid.shape))
    assert.equal("tensor{5., 5., 5., 5.}", tostring(grid[{2, 1}]))
    assert.equal("{3, 2, 2}", tostring(utils.make_grid(list[1]).shape))
    contains(message_of(utils.make_grid, {1}),
      "make_grid: expected a tensor for argument 'tensor[1]', got 1")
    contains(message_of(utils.make_grid, 3), "make_grid: expected ")
  end)
end)
