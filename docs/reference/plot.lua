-- Examples of lt.plot.
local lt = require "lutra"
lt.manual_seed(1)

-- A curve in the terminal: lt.plot.line
local losses = lt.tensor{2.3, 1.1, 0.52, 0.25, 0.12}
local p = lt.plot.line(losses, {label = "training", xlabel = "epoch", yscale = "log"})
print(p)

-- More series, and files: SVG, PNG (with libpng) or text
local path = os.tmpname()
p:line(losses * 1.2, {label = "test", color = "red"})
p:save(path .. ".svg")
print(#p:svg(800, 600) > 1000, p:pixels(320, 240).shape)  --> true	{3, 240, 320}
os.remove(path .. ".svg")
os.remove(path)

-- Points
local x = lt.randn(100)
print(#lt.plot.scatter(x, 2 * x + 0.3 * lt.randn(100)):svg() > 1000)  --> true

-- Distributions
print(lt.plot.hist(lt.randn(1000), {bins = 5}))
print(lt.plot.histogram(lt.tensor{1., 1, 2}, 2))

-- Bars
print(lt.plot.bar({"cat", "dog"}, {3, 5}))

-- Matrices, functions of two variables, images
local g = lt.linspace(-2, 2, 30)
local z = (-(g:unsqueeze(2) ^ 2 + g ^ 2)):exp()
print(#lt.plot.heatmap(z):svg() > 1000)  --> true
print(#lt.plot.contour(g, g, z, {levels = {0.25, 0.5, 0.75}}):svg() > 1000)  --> true
print(#tostring(lt.plot.image(lt.rand(3, 8, 8))) > 8)  --> true

-- A figure without series, to which methods add them
local figure = lt.plot.figure()
figure:scatter({1, 2, 3}, {1, 4, 9}):hist({1, 2, 2, 3}, 3)
figure:bar({1, 2, 3}, {1, 0, 2}):contour(z)
print(#figure.series > 4)  --> true
lt.plot.figure():heatmap(z)
lt.plot.figure():image(z)
