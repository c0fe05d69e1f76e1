"""Prints what TensorBoard's own reader finds in a folder of event files, one line a value."""

import sys

import numpy as np
from PIL import Image
import io
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

acc = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={k: 0 for k in event_accumulator.DEFAULT_SIZE_GUIDANCE})
acc.Reload()
tags = acc.Tags()
for tag in sorted(tags["scalars"]):
    print("scalar", tag, " ".join("%d:%g" % (e.step, e.value) for e in acc.Scalars(tag)))
for tag in sorted(tags["tensors"]):
    for e in acc.Tensors(tag):
        print("tensor", tag, e.step, e.tensor_proto.string_val or list(e.tensor_proto.float_val) or list(e.tensor_proto.double_val))
for tag in sorted(tags["images"]):
    for e in acc.Images(tag):
        x = np.asarray(Image.open(io.BytesIO(e.encoded_image_string)))
        print("image", tag, e.step, e.width, e.height, x.shape, x.reshape(-1).tolist()[:12])
for tag in sorted(tags["histograms"]):
    for e in acc.Histograms(tag):
        h = e.histogram_value
        print("histogram", tag, e.step, "%g %g %g %g %g" % (h.min, h.max, h.num, h.sum, h.sum_squares),
              ["%.4g" % x for x in h.bucket_limit], ["%g" % x for x in h.bucket])
for tag in sorted(tags["audio"]):
    for e in acc.Audio(tag):
        print("audio", tag, e.step, e.sample_rate, e.length_frames, len(e.encoded_audio_string))
if tags["graph"]:
    for node in acc.Graph().node:
        print("node", node.name, node.op, list(node.input))
for plugin in ["hparams"]:
    try:
        content = acc.PluginTagToContent(plugin)
    except KeyError:
        continue
    for tag in sorted(content):
        data = plugin_data_pb2.HParamsPluginData.FromString(content[tag])
        print("hparams", tag, str(data).replace("\n", " "))
