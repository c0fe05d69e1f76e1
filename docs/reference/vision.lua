-- Examples of lt.vision.datasets, lt.vision.io and lt.vision.utils.
local lt = require "lutra"

-- A data set in a program that needs no files
local set = lt.vision.datasets.FakeData{8, {3, 16, 16}, 4,
  transform = lt.vision.transforms.ToTensor()}
for images, labels in lt.data.DataLoader(set, {batch_size = 8}):iter() do
  print(images.shape, labels.shape)  --> {8, 3, 16, 16}	{8}
end

-- The digits of MNIST, over local files
local folder = os.getenv "LUTRA_TEST_DATA"
if folder then
  local mnist = lt.vision.datasets.MNIST{folder .. "/mnist", train = false}
  local image, label = mnist:get(1)
  print(image.shape, mnist.classes[label])
end

-- Data sets in the same format, and those of CIFAR: nothing is downloaded
for _, class in ipairs{lt.vision.datasets.FashionMNIST, lt.vision.datasets.KMNIST,
  lt.vision.datasets.CIFAR10, lt.vision.datasets.CIFAR100} do
  print((pcall(class, "no/such/folder")))
end
--> false
--> false
--> false
--> false

-- A folder for each class: pets/cat/1.png
local resize = lt.vision.transforms.Resize(256)
print((pcall(lt.vision.datasets.ImageFolder, "pets", {transform = resize})))           --> false
print((pcall(lt.vision.datasets.DatasetFolder, "pets", lt.load_npy, {".npy"})))        --> false

-- A data set of images of your own
local Squares = lt.vision.datasets.VisionDataset:extend "Squares"
function Squares.__len() return 10 end
function Squares.get(_, i) return lt.full({1, 4, 4}, i * i, {dtype = "uint8"}), i end
print(#Squares "root")  --> 10

-- Many images as one
local grid = lt.vision.utils.make_grid(lt.rand(10, 3, 8, 8), {nrow = 5})
print(grid.shape)  --> {3, 22, 52}

-- Boxes: x and y of two corners
local boxes = lt.tensor{{2, 2, 20, 12}, {30, 5, 45, 18}}
print(lt.vision.utils.draw_bounding_boxes(grid, boxes, {width = 2}).shape)  --> {3, 22, 52}

-- Image files: they need libpng and libjpeg-turbo
local path = os.tmpname()
if pcall(lt.vision.io.encode_png, lt.zeros{1, 2, 2, dtype = "uint8"}) then
  local picture = lt.vision.transforms.functional.to_dtype(grid, "uint8", true)
  lt.vision.utils.save_image(grid, path, {format = "png"})
  lt.vision.io.write_png(picture, path)
  print(lt.vision.io.read_image(path, "RGB").shape)  --> {3, 22, 52}
  print(lt.vision.io.decode_png(lt.vision.io.read_file(path)).dtype)  --> uint8
  print(lt.vision.io.decode_image(lt.vision.io.encode_png(picture), "GRAY").shape)  --> {1, 22, 52}
end
local ok, bytes = pcall(lt.vision.io.encode_jpeg, lt.zeros{3, 8, 8, dtype = "uint8"}, 90)
if ok then
  lt.vision.io.write_jpeg(lt.zeros{3, 8, 8, dtype = "uint8"}, path, 90)
  lt.vision.io.write_file(path, bytes)
  print(lt.vision.io.decode_jpeg(bytes).shape)  --> {3, 8, 8}
end
os.remove(path)

-- What a reader converts an image to: strings
local modes = {lt.vision.io.ImageReadMode.UNCHANGED, lt.vision.io.ImageReadMode.GRAY,
  lt.vision.io.ImageReadMode.GRAY_ALPHA, lt.vision.io.ImageReadMode.RGB,
  lt.vision.io.ImageReadMode.RGB_ALPHA, lt.vision.io.ImageReadMode.RGBA}
print(table.concat(modes, " "))  --> UNCHANGED GRAY GRAY_ALPHA RGB RGB_ALPHA RGBA

-- Networks with torchvision's parameters: lt.with_device("meta", ...) makes one without memory
local models = {lt.vision.models.resnet18, lt.vision.models.resnet34, lt.vision.models.resnet50,
  lt.vision.models.resnet101, lt.vision.models.resnet152, lt.vision.models.wide_resnet50_2,
  lt.vision.models.vgg11, lt.vision.models.vgg11_bn, lt.vision.models.vgg13,
  lt.vision.models.vgg13_bn, lt.vision.models.vgg16, lt.vision.models.vgg16_bn,
  lt.vision.models.vgg19, lt.vision.models.vgg19_bn, lt.vision.models.alexnet,
  lt.vision.models.mobilenet_v2, lt.vision.models.squeezenet1_0, lt.vision.models.squeezenet1_1,
  lt.vision.models.vit_b_16, lt.vision.models.vit_b_32}
print(lt.with_device("meta", models[1]):num_parameters())  --> 11689512

-- Transfer learning: another number of classes
local net = lt.vision.models.squeezenet1_1{num_classes = 5}:eval()
print(net(lt.rand(1, 3, 64, 64)).shape)  --> {1, 5}
