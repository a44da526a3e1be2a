"""Claims: recording every layer of a ResNet-18 costs at most 1.15 × a bare forward pass; stopping after a layer
costs what its prefix costs; a split with 20 perturbations costs prefix + 20 × rest, within 10 %."""

from __future__ import annotations

import statistics

import torch
from timing import arguments, race, random_pictures, ratio, resnet18_subject, where


def main() -> None:
    options = arguments(__doc__)
    device, gpu = options.device, options.device.startswith("cuda")
    batch = options.batch or (256 if gpu else 8)
    subject = resnet18_subject(options)
    net = subject.module
    x = random_pictures(subject, batch, options.size)
    print(f"ResNet-18, batch {batch} × 3 × {options.size} × {options.size}, {subject.dtype}, {where(device)}")

    passes = 8 if gpu else 1  # as in a loop over batches: the host prepares one while the device runs another

    @torch.no_grad()
    def bare():
        for _ in range(passes):
            net(x)

    def all_layers():
        for _ in range(passes):
            subject.record(x)

    def cloning_hooks():
        kept, handles = {}, []
        for name, module in net.named_modules():
            handles.append(module.register_forward_hook(lambda m, a, o, n=name: kept.update({n: o.clone()})))
        with torch.no_grad():
            for _ in range(passes):
                net(x)
        for handle in handles:
            handle.remove()

    times = race({"bare": bare, "assay": all_layers, "hooks": cloning_hooks}, device, options.rounds)
    images = passes * batch / statistics.median(times["bare"])
    recorded = passes * batch / statistics.median(times["assay"])
    print(f"record all {len(subject.layers)} layers: {ratio(times, 'assay', 'bare'):.3f} × a bare pass (target ≤ 1.15)")
    print(f"  peer, hooks that clone every output: {ratio(times, 'hooks', 'bare'):.3f} ×; limit 1.000 ×")
    print(f"  bare pass {images:,.0f} images/s; recording {recorded:,.0f} images/s")

    stem = torch.nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool)
    stages = [net.layer1, net.layer2, net.layer3, net.layer4]
    for k in range(3):
        prefix = torch.nn.Sequential(stem, *stages[: k + 1])
        rest = torch.nn.Sequential(*stages[k + 1 :], net.avgpool, torch.nn.Flatten(), net.fc)
        name = f"layer{k + 1}"
        split = subject.split(name)
        split.prefix(x)
        assert split.captured

        @torch.no_grad()
        def plain_prefix(prefix=prefix):
            for _ in range(passes):
                prefix(x)

        def stopped(name=name):
            for _ in range(passes):
                subject.record(x, name)

        def pushed(split=split):
            cut = split.prefix(x)
            for i in range(20):
                split.rest(cut.output * (1 - i / 40), cut.carried)

        @torch.no_grad()
        def by_hand(prefix=prefix, rest=rest):
            middle = prefix(x)
            for i in range(20):
                rest(middle * (1 - i / 40))

        @torch.no_grad()
        def twenty_passes():
            for _ in range(20):
                net(x)

        works = {"prefix": plain_prefix, "stopped": stopped}
        times = race(works, device, options.rounds)
        print(f"stop after {name}: {ratio(times, 'stopped', 'prefix'):.3f} × its prefix alone (limit 1.000)")
        works = {"hand": by_hand, "split": pushed, "passes": twenty_passes}
        times = race(works, device, max(3, options.rounds // 3))
        print(
            f"split at {name}, 20 perturbations: {ratio(times, 'split', 'hand'):.3f} × (prefix + 20 rest) "
            f"(target ≤ 1.10); peer, 20 full passes: {ratio(times, 'passes', 'hand'):.3f} ×"
        )


if __name__ == "__main__":
    main()
