"""A GPT of 4 layers and width 128 with a batch of 12 x 64, in Lua and in Python: `body`, the
embeddings `tokens` and `places`, `opt`, and the batch `text`, `target`, `at`."""

LUA = """
local Block = nn.Module:extend "Block"
function Block:init()
  self.ln1 = nn.LayerNorm(128); self.ln2 = nn.LayerNorm(128)
  self.qkv = nn.Linear(128, 384); self.proj = nn.Linear(128, 128)
  self.up = nn.Linear(128, 512); self.down = nn.Linear(512, 128)
end
function Block:forward(h)
  local B, T = h:size(1), h:size(2)
  local p = self.qkv(self.ln1(h)):split(128, 3)
  for i = 1, 3 do p[i] = p[i]:view(B, T, 4, 32):transpose(2, 3) end
  local y = F.scaled_dot_product_attention(p[1], p[2], p[3], {is_causal = true})
  h = h + self.proj(y:transpose(2, 3):reshape(B, T, 128))
  return h + self.down(F.gelu(self.up(self.ln2(h))))
end
local tokens, places = nn.Embedding(65, 128), nn.Embedding(64, 128)
local body = nn.Sequential(Block(), Block(), Block(), Block(), nn.LayerNorm(128), nn.Linear(128, 65))
local opt = optim.AdamW(nn.ModuleList{tokens, places, body}:parameters(), {lr = 0.001})
local text, target, at = lt.randint(1, 65, {12, 64}), lt.randint(1, 65, {12, 64}), lt.arange(64)
"""

PYTHON = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(128), nn.LayerNorm(128)
        self.qkv, self.proj = nn.Linear(128, 384), nn.Linear(128, 128)
        self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)
    def forward(self, h):
        B, T = h.shape[:2]
        q, k, v = (p.view(B, T, 4, 32).transpose(1, 2) for p in self.qkv(self.ln1(h)).split(128, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.proj(y.transpose(1, 2).reshape(B, T, 128))
        return h + self.down(F.gelu(self.up(self.ln2(h))))
tokens, places = nn.Embedding(65, 128), nn.Embedding(64, 128)
body = nn.Sequential(Block(), Block(), Block(), Block(), nn.LayerNorm(128), nn.Linear(128, 65))
opt = optim.AdamW(nn.ModuleList([tokens, places, body]).parameters(), lr=0.001)
text, target = torch.randint(0, 65, (12, 64)), torch.randint(0, 65, (12, 64))
at = torch.arange(64)
"""
