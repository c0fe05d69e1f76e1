"""The parameters of torchvision's models: names and shapes; and outputs of some with parameters given by a formula."""

import torch
import torchvision.models

import ops

NAMES = ("resnet18", "resnet34", "resnet50", "wide_resnet50_2", "vgg11", "vgg13", "vgg16_bn", "vgg19", "alexnet",
         "mobilenet_v2", "squeezenet1_0", "squeezenet1_1", "vit_b_16", "vit_b_32")
RUN = ("resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "vit_b_32")


def fill(model):
    """Gives parameter i, element k (from 1) the value ((7919 (k + i)) mod 1009) / 1009 - 0.45, scaled by its fan-in."""
    with torch.no_grad():
        for i, p in enumerate(model.parameters(), 1):
            k = torch.arange(1, p.numel() + 1) + i
            scale = (p[0].numel() if p.ndim > 1 else 4) ** -0.5
            p.copy_((((7919 * k % 1009) / 1009.0 - 0.45) * scale).view(p.shape))


def cases_of(_):
    lines = []
    for name in NAMES:
        with torch.device("meta"):
            model = getattr(torchvision.models, name)()
        state = ["%s %s" % (key, "x".join(map(str, value.shape))) for key, value in model.state_dict().items()]
        lines.append('  {name = "%s", state = {%s}},' % (name, ", ".join('"%s"' % s for s in state)))
    for name in RUN:
        options = {"image_size": 64} if name.startswith("vit") else {}
        model = getattr(torchvision.models, name)(num_classes=5, **options).eval()
        fill(model)
        with torch.no_grad():
            out = model(ops.wave(2, 3, 64, 64).clone())
        lines.append('  {name = "%s", out = %s},' % (name, ops.tensor(out)))
    return "\n".join(lines)
