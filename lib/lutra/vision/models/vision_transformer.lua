--- The vision transformer (Dosovitskiy et al. 2021), as torchvision.models.vision_transformer.

local lt = require "lutra"
local maker = require("lutra.vision.models.model").maker
local nn = lt.nn

local EncoderBlock = nn.Module:extend "EncoderBlock"

function EncoderBlock:init(heads, hidden, mlp, dropout, attention_dropout)
  self.ln_1 = nn.LayerNorm(hidden, {eps = 1e-6})
  self.self_attention = nn.MultiheadAttention{hidden, heads, dropout = attention_dropout,
    batch_first = true}
  self.dropout = nn.Dropout(dropout)
  self.ln_2 = nn.LayerNorm(hidden, {eps = 1e-6})
  self.mlp = nn.Sequential(nn.Linear(hidden, mlp), nn.GELU(), nn.Dropout(dropout),
    nn.Linear(mlp, hidden), nn.Dropout(dropout))
  for _, i in ipairs{1, 4} do
    nn.init.xavier_uniform_(self.mlp[i].weight)
    nn.init.normal_(self.mlp[i].bias, 0, 1e-6)
  end
end

function EncoderBlock:forward(x)
  local y = self.ln_1(x)
  y = (self.self_attention(y, y, y, {need_weights = false}))
  x = self.dropout(y) + x
  return x + self.mlp(self.ln_2(x))
end

local Encoder = nn.Module:extend "Encoder"

function Encoder:init(length, layers, ...)
  self.pos_embedding = nn.Parameter(lt.randn(1, length, (select(2, ...))) * 0.02)
  self.dropout = nn.Dropout((select(4, ...)))
  local list = {}
  for i = 1, layers do list[i] = {("encoder_layer_%d"):format(i - 1), EncoderBlock(...)} end
  self.layers = nn.Sequential(list)
  self.ln = nn.LayerNorm((select(2, ...)), {eps = 1e-6})
end

function Encoder:forward(x) return self.ln(self.layers(self.dropout(x + self.pos_embedding))) end

local VisionTransformer = nn.Module:extend "VisionTransformer"

function VisionTransformer:init(image, patch, layers, heads, hidden, mlp, classes, dropout,
    attention_dropout)
  self.image_size, self.patch_size = image, patch
  self.class_token = nn.Parameter(lt.zeros(1, 1, hidden))
  self.conv_proj = nn.Conv2d{3, hidden, patch, stride = patch}
  self.encoder = Encoder((image // patch) * (image // patch) + 1, layers, heads, hidden, mlp,
    dropout, attention_dropout)
  self.heads = nn.Sequential{{"head", nn.Linear(hidden, classes)}}
  nn.init.trunc_normal_(self.conv_proj.weight, 0, (1 / (3 * patch * patch)) ^ 0.5)
  nn.init.zeros_(self.conv_proj.bias)
  nn.init.zeros_(self.heads.head.weight)
  nn.init.zeros_(self.heads.head.bias)
end

function VisionTransformer:forward(x)
  if x:size(3) ~= self.image_size or x:size(4) ~= self.image_size then
    self:fail("expected images of %d x %d pixels, got shape %s", self.image_size, self.image_size,
      tostring(x.shape))
  end
  x = self.conv_proj(x):flatten(3):transpose(2, 3)
  local token = self.class_token:expand(x:size(1), 1, x:size(3))
  x = self.encoder(lt.cat({token, x}, 2))
  return self.heads(x:select(2, 1))
end

-- Returns the function that makes a transformer of that size.
local function vit(name, patch, layers, heads, hidden, mlp)
  return maker(name, function(classes, image, dropout, attention_dropout)
    return VisionTransformer(image, patch, layers, heads, hidden, mlp, classes, dropout,
      attention_dropout)
  end, "int(>=1) image_size = 224, float dropout = 0, float attention_dropout = 0")
end

return {
  --- models.vit_b_16{weights = nil, progress = true, num_classes = 1000, image_size = 224, dropout
  -- = 0, attention_dropout = 0}: patches of 16 x 16 pixels: see models.resnet18.
  vit_b_16 = vit("vit_b_16", 16, 12, 12, 768, 3072),
  --- models.vit_b_32{weights, progress, num_classes, image_size, dropout, attention_dropout}:
  -- patches of 32 x 32 pixels: see models.resnet18.
  vit_b_32 = vit("vit_b_32", 32, 12, 12, 768, 3072),
}
