#!/usr/bin/env python3
"""Compares the counts in tests/net/test_models.c with fvcore's and torchvision's.

Usage: count_flops.py
Needs torch, torchvision and fvcore. Builds every model that the test lists, counts its parameters, and
its FLOPs at 224x224 with fvcore's FlopCountAnalysis; exit status 1 when a figure differs.
"""
import pathlib
import re
import sys

import fvcore.nn
import torch
import torchvision

test = pathlib.Path(__file__).parent.parent / "net" / "test_models.c"
rows = re.findall(r'\{"(\w+)", \d+, (\d+), \d+, (\d+)\}', test.read_text())
assert rows, f"{test}: no models found"
wrong = 0
for model, parameters, flops in rows:
    net = getattr(torchvision.models, model)(weights=None).eval()
    counted = sum(p.numel() for p in net.parameters())
    analysis = fvcore.nn.FlopCountAnalysis(net, torch.zeros(1, 3, 224, 224))
    analysis.unsupported_ops_warnings(False)
    total = analysis.total()
    same = counted == int(parameters) and total == int(flops)
    wrong += not same
    print(f"{model}: {counted} parameters ({parameters}), fvcore {total} ({flops})"
          f"{'' if same else ': differs'}")
sys.exit(wrong > 0)
