--- Contour lines by marching squares: the segments of a level in each cell of four values. A cell
-- with two opposite corners above the level is divided by the mean of its corners.

local contours = {}

-- Returns the segments {x1, y1, x2, y2} of a level over the grid z[row][column] at xs and ys.
local function segments(z, xs, ys, level, list)
  for r = 1, #z - 1 do
    for c = 1, #z[1] - 1 do
      local a, b, d, e = z[r][c], z[r][c + 1], z[r + 1][c + 1], z[r + 1][c]
      local cut = {}
      local function edge(v, w, x1, y1, x2, y2)
        if (v > level) ~= (w > level) then
          local share = (level - v) / (w - v)
          cut[#cut + 1] = {x1 + (x2 - x1) * share, y1 + (y2 - y1) * share}
        end
      end
      if a == a and b == b and d == d and e == e then
        local x1, x2, y1, y2 = xs[c], xs[c + 1], ys[r], ys[r + 1]
        edge(a, b, x1, y1, x2, y1)
        edge(b, d, x2, y1, x2, y2)
        edge(d, e, x2, y2, x1, y2)
        edge(e, a, x1, y2, x1, y1)
        local function add(i, k)
          list[#list + 1] = {cut[i][1], cut[i][2], cut[k][1], cut[k][2]}
        end
        if #cut == 2 then
          add(1, 2)
        elseif #cut == 4 then
          local above = (a + b + d + e) / 4 > level
          if above == (a > level) then
            add(1, 2)
            add(3, 4)
          else
            add(1, 4)
            add(2, 3)
          end
        end
      end
    end
  end
  return list
end

--- Returns the points of the contour lines as a series with gaps: {x, y}, {x, y}, {}, ...
function contours.points(z, xs, ys, level)
  local points = {}
  for _, s in ipairs(segments(z, xs, ys, level, {})) do
    points[#points + 1] = {s[1], s[2]}
    points[#points + 1] = {s[3], s[4]}
    points[#points + 1] = {}
  end
  return points
end

return contours
