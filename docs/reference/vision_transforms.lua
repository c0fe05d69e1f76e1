-- Examples of lt.vision.transforms.
local lt = require "lutra"
lt.manual_seed(1)

-- An image: uint8 {C, H, W}
local image = lt.randint(0, 255, {3, 32, 48}, {dtype = "uint8"})

-- The transforms of a training set, for ImageNet
local train = lt.vision.transforms.Compose{
  lt.vision.transforms.RandomResizedCrop(24),
  lt.vision.transforms.RandomHorizontalFlip(),
  lt.vision.transforms.ToTensor(),
  lt.vision.transforms.Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}),
}
print(train(image).shape, train(image).dtype)  --> {3, 24, 24}	float32

-- Those of CIFAR
local augment = lt.vision.transforms.Compose{
  lt.vision.transforms.RandomCrop(32, {padding = 4, pad_if_needed = true}),
  lt.vision.transforms.RandomVerticalFlip(0.1),
  lt.vision.transforms.ToDtype("float32", true),
  lt.vision.transforms.RandomErasing(0.25),
}
local x, label = augment(image, 7)
print(x.shape, label)  --> {3, 32, 32}	7

-- Those of a test set
local test = lt.vision.transforms.Compose{
  lt.vision.transforms.Resize(20),
  lt.vision.transforms.CenterCrop(16),
  lt.vision.transforms.ConvertImageDtype "float32",
}
print(test(image).shape)  --> {3, 16, 16}

-- Interpolation modes: strings
local modes = {lt.vision.transforms.InterpolationMode.NEAREST,
  lt.vision.transforms.InterpolationMode.NEAREST_EXACT,
  lt.vision.transforms.InterpolationMode.BILINEAR, lt.vision.transforms.InterpolationMode.BICUBIC}
for _, mode in ipairs(modes) do
  print(lt.vision.transforms.Resize({16, 24}, mode)(image).shape)
end
--> {3, 16, 24}
--> {3, 16, 24}
--> {3, 16, 24}
--> {3, 16, 24}

-- Layouts of other programs: {H, W, C} to {C, H, W}
print(lt.vision.transforms.PILToTensor()(image:permute(2, 3, 1)).shape)  --> {3, 32, 48}
print(lt.vision.transforms.ToImage()(image[1]).shape)  --> {1, 32, 48}

-- Colors
print(lt.vision.transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.Grayscale()(image).shape)  --> {1, 32, 48}
print(lt.vision.transforms.RandomGrayscale(1)(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.RGB()(image[{{1, 1}}]).shape)  --> {3, 32, 48}
print(lt.vision.transforms.RandomInvert(1)(image).dtype)  --> uint8
print(lt.vision.transforms.RandomPosterize(2, 1)(image):unique():numel())  --> 4
print(lt.vision.transforms.RandomSolarize(128, 1)(image):max():item() < 128)  --> true
print(lt.vision.transforms.RandomAutocontrast(1)(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.RandomEqualize(1)(image).shape)  --> {3, 32, 48}

-- Sharpness and noise
print(lt.vision.transforms.RandomAdjustSharpness(2, 1)(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.GaussianBlur(5, {0.1, 2})(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.GaussianNoise{sigma = 0.2}(image).dtype)  --> uint8

-- Warps and borders
print(lt.vision.transforms.RandomRotation(30, "bilinear")(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.RandomAffine(10, {0.1, 0.1}, {0.9, 1.1})(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.RandomPerspective(0.5, 1)(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.Pad({2, 4}, 0, "reflect")(image).shape)  --> {3, 40, 52}

-- Several crops of an image: average the predictions for them
print(#lt.vision.transforms.FiveCrop(16)(image))  --> 5
local crops = lt.vision.transforms.Compose{lt.vision.transforms.TenCrop(16),
  lt.vision.transforms.Lambda(function(list) return lt.stack(list) end)}
print(crops(image).shape)  --> {10, 3, 16, 16}

-- Transforms at random
local some = lt.vision.transforms.RandomApply({lt.vision.transforms.GaussianBlur(3)}, 0.3)
local one = lt.vision.transforms.RandomChoice({some, lt.vision.transforms.Identity()}, {3, 1})
print(lt.vision.transforms.RandomOrder{one, lt.vision.transforms.RandomInvert()})

-- Automatic augmentation
print(lt.vision.transforms.AutoAugment("cifar10")(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.AutoAugmentPolicy.IMAGENET)  --> imagenet
print(lt.vision.transforms.AutoAugmentPolicy.CIFAR10,
  lt.vision.transforms.AutoAugmentPolicy.SVHN)  --> cifar10	svhn
print(lt.vision.transforms.RandAugment(2, 9)(image).dtype)  --> uint8
print(lt.vision.transforms.TrivialAugmentWide()(image).shape)  --> {3, 32, 48}
print(lt.vision.transforms.AugMix{severity = 2}(image).shape)  --> {3, 32, 48}

-- Mix the images of a batch, and their labels as probabilities for F.cross_entropy
local batch, labels = lt.rand(4, 3, 8, 8), lt.tensor{1, 2, 3, 1}
local mixed, targets = lt.vision.transforms.MixUp{alpha = 0.2, num_classes = 3}(batch, labels)
print(mixed.shape, targets.shape)  --> {4, 3, 8, 8}	{4, 3}
print(#lt.vision.transforms.CutMix{num_classes = 3}(batch, labels))  --> 4
