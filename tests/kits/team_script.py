"""A learner as a program: the protocol of commands by hand, without assay; such a script needs NumPy only."""

from __future__ import annotations

ALONE = """
import json, os, pathlib, sys, time
import numpy as np
verb, words = sys.argv[1], sys.argv[2:]
given = dict(zip(words[::2], words[1::2]))
if verb == "layers":
    names = ["a", "b", "c"][: 1 if given["--depth"] == "shallow" else 3]
    print("a word to the world")
    print(json.dumps([{"name": n, "algorithm": "mean"} for n in names]))
elif verb == "fit":
    X = np.load(given["--data"])["matrix"]
    (pathlib.Path(given["--model"]) / "sub").mkdir()
    np.save(given["--model"] + "/sub/mean.npy", X.mean(0))
else:
    model = pathlib.Path(given["--model"])
    Y = (np.load(given["--data"])["matrix"] - np.load(model / "sub" / "mean.npy")) * (1 + int(given["--layer"]))
    #HERE
    np.savez(given["--out"], matrix=Y)
"""
