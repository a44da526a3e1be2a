"""Mutations of plans: what people mistype, what other programs write, and what nobody would."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import yaml

Plan = dict[str, Any]
_HUGE = (10**6, 10**9, 10**12, 2**31, 2**32 + 1, 2**63, 2**64, 10**30, 10**400, -(10**9), -(2**63), -(10**30))
_NUMBERS = (0, 1, -1, 2, 3, 7, 100, 4096, 65536, 0.0, -0.0, 0.5, -0.5, 1.5, 1e-300, 1e300, 1e9, *_HUGE)
_NO_NUMBERS = (float("nan"), float("inf"), float("-inf"))
_TEXTS = (
    "", " ", "\n", "\t", "a", "0", "1e5", "1e999", "-1e9", "nan", "null", "~", "~nobody/x", "..", "/", "/dev/null",
    "/dev/zero", "/proc/self/mem", "/etc", "\0", "a\0b", "\x1b[31m", "\x07", "\u202e", "\ud800", "\U0001f600",
    "é" * 300,
    "x" * 5000, "../../../x", "a/b", "a:b", ":", "::", "os:system", "os:getcwd", "sys:exit", "fuzz_networks:tiny",
    "fuzz_networks:nothing", "fuzz_networks:", "fuzz_networks.py:tiny", "torch:zeros", "torch.nn:Identity", "[", "]",
    "{", "*", "[a-", "**/*", "$HOME", "$\\bad$", "%s", "{0}", "=1+1", "con", "data.npz", "classes", "pictures", "clips",
    "clips.npy", "rdm.npy", "corpus.yaml", "networks", "missing.npz", "missing/folder", "s3://bucket/x",
    "file:///tmp/x",
    "http://127.0.0.1:1/x", "memory://x", "nosuch://x", "://", "hf:", "timm:", "timm:resnet18", "x.onnx",
    "x.safetensors",
    "resize=999999", "resize=99999999999999999999", "crop=0", "resize=1", "grey,grey", "none", "imagenet", "cuda",
    "cpu",
    "meta", "cuda:99", "mps", "float16", "natural", "translation", "intra", "inter", "rotation", "blur", "straightness",
    "norms", "invariance", "perturbation", "margins", "grid", "tpe", "vgg", "resnet", "linf", "l2", "full",
)  # fmt: skip
_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    [1, 2],
    [1, [2, [3]]],
    {"": ""},
    {"a": {"b": {"c": 1}}},
)
_KEYS: tuple[Any, ...] = ("", " ", "path", "size", "self", "name", "measure", "__class__", "data", "factory", "node",
                          "loaders", "x" * 999, "a\nb", "\0", "\ud800", 1, 1.5, None, True, -1, 10**30)  # fmt: skip


def mutated(draw: random.Random, plans: list[tuple[str, Plan]]) -> tuple[str, bytes]:
    """A plan with a few mutations, as a file holds it, and its kind."""
    kind, plan = draw.choice(plans)
    plan = copy.deepcopy(plan)
    for _ in range(draw.choice((0, 1, 1, 1, 1, 2, 2, 3, 6))):
        draw.choice(STRUCTURE)(draw, plan, plans)
    text = written(plan)
    for _ in range(draw.choice((0, 0, 0, 0, 1, 1, 2))):
        text = draw.choice(TEXT)(draw, text)
    return kind, encoded(draw, text)


def written(plan: Any) -> str:
    """A plan as YAML."""
    text: str = yaml.safe_dump(plan, sort_keys=False, allow_unicode=False, default_flow_style=None, width=100)
    return text


def encoded(draw: random.Random, text: str) -> bytes:
    """The bytes of a file: nearly always UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    if draw.random() < 0.03:
        return draw.choice(
            (
                b"\xef\xbb\xbf" + data, text.encode("utf-16", "replace"), text.encode("utf-32", "replace"),
                text.encode("latin-1", "replace") + b"\xe9", data + b"\xff\xfe", data.replace(b"\n", b"\r"),
                data.replace(b"\n", b"\r\n"), b"", b"\n", b"\0" * 100, b"%PDF-1.7\n" + data, b"\x80\x04K\x01.",
            )
        )  # fmt: skip
    return data


def _places(plan: Any, inside: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys that lead to every value of a plan."""
    entries = plan.items() if isinstance(plan, dict) else enumerate(plan) if isinstance(plan, list) else ()
    found = []
    for key, value in entries:
        found.append((*inside, key))
        found += _places(value, (*inside, key))
    return found


def _holder(plan: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        plan = plan[key]
    return plan


def value(draw: random.Random) -> Any:
    """A value that a plan may hold."""
    pick = draw.random()
    if pick < 0.4:
        return draw.choice(_NUMBERS)
    if pick < 0.45:
        return draw.choice(_NO_NUMBERS)
    if pick < 0.75:
        return draw.choice(_TEXTS)
    if pick < 0.85:
        return [value(draw) for _ in range(draw.choice((0, 1, 2, 3, 5)))]
    if pick < 0.9:
        return {draw.choice(_KEYS): value(draw) for _ in range(draw.choice((0, 1, 2)))}
    return copy.deepcopy(draw.choice(_ODD))


def _replace(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    if places := _places(plan):
        place = draw.choice(places)
        _holder(plan, place)[place[-1]] = value(draw)


def _number(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    """Change a number that is there: most of what is believed without a look is a number."""
    places = [p for p in _places(plan) if type(_holder(plan, p)[p[-1]]) in (int, float)]
    if not places:
        return
    place = draw.choice(places)
    old = _holder(plan, place)[place[-1]]
    pick = draw.random()
    if pick < 0.6:
        new = draw.choice((*_NUMBERS, *_NO_NUMBERS))
    else:
        new = (
            old * 10 ** draw.randint(1, 12) * draw.choice((1, 1, -1)) if pick < 0.9 else draw.choice((str(old), [old]))
        )
    _holder(plan, place)[place[-1]] = new


def _remove(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    if places := _places(plan):
        place = draw.choice(places)
        del _holder(plan, place)[place[-1]]


def _add(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    holders = [plan, *(h for p in _places(plan) if isinstance(h := _holder(plan, p)[p[-1]], dict | list))]
    holder = draw.choice(holders)
    if isinstance(holder, list):
        holder.insert(draw.randint(0, len(holder)), value(draw))
    else:
        holder[draw.choice(_KEYS)] = value(draw)


def _rename(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    places = [p for p in _places(plan) if isinstance(_holder(plan, p), dict)]
    if places:
        place = draw.choice(places)
        holder = _holder(plan, place)
        moved = holder.pop(place[-1])
        holder[draw.choice((draw.choice(_KEYS), str(place[-1])[:-1], f"{place[-1]}s"))] = moved


def _swap(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    """Put a value of this or another plan in the place of one: a right thing in a wrong place."""
    places, other = _places(plan), draw.choice((plan, draw.choice(plans)[1]))
    others = _places(other)
    if places and others:
        place, source = draw.choice(places), draw.choice(others)
        _holder(plan, place)[place[-1]] = copy.deepcopy(_holder(other, source)[source[-1]])


def _wrap(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    if places := _places(plan):
        place = draw.choice(places)
        old = _holder(plan, place)[place[-1]]
        inside = (
            next(iter(old.values()), None) if isinstance(old, dict) else old[0] if isinstance(old, list) and old else 0
        )
        _holder(plan, place)[place[-1]] = draw.choice(
            ([old], {"path": old}, {draw.choice(_KEYS): old}, inside, [old, old])
        )


def _deep(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    if places := _places(plan):
        place = draw.choice(places)
        deep: Any = _holder(plan, place)[place[-1]]
        for _ in range(draw.choice((5, 20, 50, 90))):
            deep = draw.choice(([deep], {"a": deep}))
        _holder(plan, place)[place[-1]] = deep


def _long(draw: random.Random, plan: Plan, plans: list[tuple[str, Plan]]) -> None:
    lists = [h for p in _places(plan) if isinstance(h := _holder(plan, p)[p[-1]], list) and h]
    if lists:
        chosen = draw.choice(lists)
        chosen[:] = chosen * draw.choice((2, 50, 500))


def _letter(draw: random.Random, text: str) -> str:
    at = draw.randint(0, len(text))
    odd = draw.choice((*map(chr, range(32)), *"\x7f\x85\xa0\u2028\ufeff\ufffe\ud800", *"{}[]&*!|>%@`'\":,?-#~<=\\ 0aé"))
    return text[:at] + odd * draw.choice((1, 1, 1, 2, 30)) + text[at + draw.choice((0, 1)) :]


def _line(draw: random.Random, text: str) -> str:
    lines = text.splitlines() or [""]
    at = draw.randrange(len(lines))
    pick = draw.randrange(5)
    if pick == 0:
        del lines[at]
    elif pick == 1:
        lines.insert(draw.randrange(len(lines) + 1), lines[at])
    elif pick == 2:
        lines[at] = draw.choice((" ", "   ", "\t", "- ", "? ", ": ", "# ", "--- ", "... ", "!!str ", "| ")) + lines[at]
    elif pick == 3:
        lines[at] = lines[at].strip()
    else:
        lines = lines[:at]
    return "\n".join(lines) + "\n"


def _tag(draw: random.Random, text: str) -> str:
    """Replace a value by what YAML has besides text, numbers, lists and mappings."""
    odd = draw.choice(
        (
            "!!python/object/apply:os.system ['touch code-has-run']", "!!python/name:os.system", "!x 1", "!!int abc",
            "!!float x", "!!binary aGk=", "!!binary '*'", "!!timestamp 2020-13-45", "2020-02-30", "2020-01-01",
            "2020-01-01T00:00:00Z", "!!set {a, b}", "!!omap [a: 1]", "!!pairs [a: 1, b]", "190:20:30", "0x" + "f" * 400,
            "9" * 5000, "0b" + "1" * 99, "1_000_000_000_000", "0o777", "017", ".inf", "-.inf", ".nan", "1e400", "<<",
            "=",
            "!!null x", "!!bool maybe", "!!seq {a: 1}", "!!map [a]", "!!str {a: 1}", "&a [*a]", "&a {a: *a}",
            "*missing",
            "{? [a, b] : c}", "{{a: 1}: 2}", "{<<: {a: 1}}", "{<<: 1}", "{<<: [1]}", "{<<: &m {a: *m}}",
            "[" * 40 + "]" * 40,
            "[" * 3000 + "]" * 3000, "{a: " * 500 + "1" + "}" * 500, "- " * 800, "{a: 1, a: 2}", "? ", "|", ">-",
            "'", '"\\x"',
            '"\\ud800"', '"\\0"', '"\\U00110000"', "%YAML 9.9", "yes", "NO", "on", "y", "~", "!!python/tuple [1, 2]",
            "{1: a}", "{1.5: a}", "{true: a}", "{null: a}", "{.nan: a, .nan: b}", "{2020-01-01: a}",
            "{yes: a, true: b}",
            "{1: a, 1.0: b}", "{!!binary aGk=: a}",
        )
    )  # fmt: skip
    lines = text.splitlines() or [""]
    at = draw.randrange(len(lines))
    key, colon, _ = lines[at].partition(": ")
    lines[at] = f"{key}{colon}{odd}" if colon else f"{lines[at]} {odd}"
    return "\n".join(lines) + "\n"


def _bomb(draw: random.Random, text: str) -> str:
    """Aliases that stand for many more values than are written."""
    width, depth = draw.choice(((9, 9), (2, 30), (3, 15), (100, 5), (1, 200)))
    lines = ["a0: &a0 [1, 2]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, depth)]
    if draw.random() < 0.5:
        lines = ["b0: &b0 {x: 1}"]
        lines += [f"b{i}: &b{i} {{{', '.join(f'k{j}: *b{i - 1}' for j in range(width))}}}" for i in range(1, depth)]
    if draw.random() < 0.3:
        lines = ["m0: &m0 {x: 1}"]
        lines += [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * width)}]}}" for i in range(1, depth)]
    return draw.choice(("\n".join(lines) + "\n" + text, text + "\n".join(lines) + "\n"))


def _splice(draw: random.Random, text: str) -> str:
    begin, end, at = (draw.randint(0, len(text)) for _ in range(3))
    return text[:at] + text[min(begin, end) : max(begin, end)] + text[at:]


def _more(draw: random.Random, text: str) -> str:
    return draw.choice(
        (text + "\n---\n" + text, "[\n" + text, text + "\n" + text, "? " + text, text * 20, text + "#" * 10**6)
    )


STRUCTURE: tuple[Callable[[random.Random, Plan, list[tuple[str, Plan]]], None], ...] = (
    _replace, _replace, _replace, _number, _number, _number, _number, _remove, _add, _rename, _swap, _swap, _wrap,
    _deep, _long,
)  # fmt: skip
TEXT: tuple[Callable[[random.Random, str], str], ...] = (
    _letter,
    _letter,
    _line,
    _line,
    _tag,
    _tag,
    _tag,
    _bomb,
    _splice,
    _more,
)
