-- Examples of lt.audio.
local lt = require "lutra"

-- lt.audio.save, lt.audio.load, lt.audio.info
local path = os.tmpname()
local seconds = lt.arange(0, 7999) / 8000
local tone = (seconds * 440 * 2 * lt.pi):sin() * 0.5
lt.audio.save(path, tone:unsqueeze(1), 8000, {bits_per_sample = 16})
local samples, rate = lt.audio.load(path)
print(samples.shape, rate)  --> {1, 8000}	8000
local info = lt.audio.info(path)
print(info.encoding, info.bits_per_sample, info.num_frames, info.num_channels)  --> PCM_S	16	8000	1

-- One tenth of a second, from the middle, as it is in the file
local part = lt.audio.load(path, {frame_offset = 4000, num_frames = 800, normalize = false})
print(part.shape, part.dtype)  --> {1, 800}	int16
os.remove(path)
