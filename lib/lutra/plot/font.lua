--- A font of 5 x 8 dots for the texts of images: the characters of ASCII, five bytes each, a column
-- of dots a byte, the lowest bit at the top. Other characters are drawn as "?". A dot is a
-- pixel.

local font = {HEIGHT = 8}

local COLUMNS <const>, STEP <const> = 5, 6

local bytes =
  "000000000000005F00000007000700147F147F14242A7F2A1223130864623649562050"
  .. "0008070300001C2241000041221C002A1C7F1C2A08083E080800807030000808080808"
  .. "000060600020100804023E5149453E00427F400072494949462141494D331814127F10"
  .. "27454545393C4A49493141211109073649494936464949291E00001400000040340000"
  .. "00081422411414141414004122140802015909063E415D594E7C1211127C7F49494936"
  .. "3E414141227F4141413E7F494949417F090909013E414151737F0808087F00417F4100"
  .. "2040413F017F081422417F404040407F021C027F7F0408107F3E4141413E7F09090906"
  .. "3E4151215E7F09192946264949493203017F01033F4040403F1F2040201F3F4038403F"
  .. "631408146303047804036159494D43007F4141410204081020004141417F0402010204"
  .. "4040404040000307080020545478407F284444383844444428384444287F3854545418"
  .. "00087E090218A4A49C787F0804047800447D40002040403D007F1028440000417F4000"
  .. "7C047804787C080404783844444438FC1824241818242418FC7C080404084854545424"
  .. "04043F44243C4040207C1C2040201C3C4030403C44281028444C9090907C4464544C44"
  .. "0008364100000077000000413608000201020402"

-- Returns the codes of a string, 63 ("?") for what the font does not have.
local function codes(text)
  local list = {}
  for _, code in utf8.codes(utf8.len(text) and text or ("?"):rep(#text)) do
    list[#list + 1] = code >= 32 and code < 127 and code or 63
  end
  return list
end

--- Returns the width of a string in pixels.
function font.width(text) return #codes(text) * STEP end

--- Returns the dots of a string: a list of {x, y} from 0.
function font.dots(text)
  local list = {}
  for i, code in ipairs(codes(text)) do
    for column = 0, COLUMNS - 1 do
      local at = ((code - 32) * COLUMNS + column) * 2 + 1
      local bits = tonumber(bytes:sub(at, at + 1), 16)
      for y = 0, 7 do
        if bits >> y & 1 == 1 then list[#list + 1] = {(i - 1) * STEP + column, y} end
      end
    end
  end
  return list
end

return font
