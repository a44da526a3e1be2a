"""Claim: the curvature of every layer of a ResNet-18 costs at most 1.3 × a bare forward pass over the same frames."""

from __future__ import annotations

import statistics

import numpy as np
import torch
from timing import arguments, race, random_pictures, ratio, resnet18_subject, where

from assay.measures.straightness.streaming import follow
from assay.subject.fitting import fitting_batch


def main() -> None:
    options = arguments(__doc__)
    device, gpu = options.device, options.device.startswith("cuda")
    subject = resnet18_subject(options)
    net = subject.module
    batch = options.batch or 32
    if gpu and not options.batch:  # what the measure chooses
        batch = fitting_batch(subject, torch.rand(1, 3, options.size, options.size))
    batches = [random_pictures(subject, batch, options.size) for _ in range(8 if gpu else 2)]
    count = batch * len(batches)
    print(f"ResNet-18, {count} frames of {options.size} px, {batch} at once, {subject.dtype}, {where(device)}")

    @torch.no_grad()
    def bare():
        for frames in batches:
            net(frames)

    def ours():
        follow(subject, batches)

    @torch.no_grad()
    def notebook():
        """The released way: keep every activation, then float32 arccos; all activations of a batch in memory."""
        kept, handles = {}, []
        for name, module in net.named_modules():
            handles.append(module.register_forward_hook(lambda m, a, o, n=name: kept.update({n: o.detach().clone()})))
        for frames in batches:
            net(frames)
            for value in kept.values():
                path = value.flatten(1).float()
                steps = path.diff(dim=0)
                units = steps / steps.norm(dim=1, keepdim=True)
                np.degrees(np.arccos((units[1:] * units[:-1]).sum(1).clamp(-1, 1).cpu().numpy()))
        for handle in handles:
            handle.remove()

    times = race({"bare": bare, "assay": ours, "notebook": notebook}, device, options.rounds)
    speed = {name: count / statistics.median(t) for name, t in times.items()}
    print(f"curvature of all {len(subject.layers)} layers: {ratio(times, 'assay', 'bare'):.3f} × bare (target ≤ 1.3)")
    print(f"  peer, as in the released notebooks: {ratio(times, 'notebook', 'bare'):.3f} ×; limit 1.000 ×")
    print(f"  bare {speed['bare']:,.0f}, assay {speed['assay']:,.0f}, peer {speed['notebook']:,.0f} images/s")


if __name__ == "__main__":
    main()
