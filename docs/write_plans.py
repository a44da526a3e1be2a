"""Writes docs/plans.md, the reference of plans, from the settings themselves."""

from __future__ import annotations

from pathlib import Path

from assay.plans.reference import plan_reference

if __name__ == "__main__":
    Path(__file__).with_name("plans.md").write_text(plan_reference(), encoding="utf-8")
