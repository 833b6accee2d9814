"""The day for which an engine is asked: how old the evidence is, and the range of TPOT then."""

from __future__ import annotations

from datetime import date
from math import exp, hypot, log
from typing import Any

import pytest
from units import check_units

import mantile as mt
from mantile.library.errors import InputError
from mantile.library.profiles import load_library
from mantile.library.releases import known_releases

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "framework": "sglang",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}


def _ends(**changed: Any) -> tuple[dict[str, Any], dict[str, Any], float]:
    made = mt.estimate(mt.Scenario(**ASKED | changed))
    told = made.to_dict()
    return told["engine_day"], told["range_80"]["tpot"], made["serving.tpot"].value


def test_range_grows_with_the_root_of_the_age() -> None:
    """Newer engines may be faster, older ones slower; on the day of the newest run nothing is added."""
    known = next(one for one in load_library().evidence.drift if one.framework == "sglang")
    day, band, tpot = _ends(engine_date=known.last.isoformat())
    assert day["months"] == 0
    told = mt.estimate(mt.Scenario(**ASKED, engine_date="2026-10-11", as_of="2026-11-20")).to_dict()
    assert (told["engine_date"], told["as_of"]) == ("2026-10-11", "2026-11-20"), "as in a scenario file"
    assert day["tpot"] == pytest.approx({name: band[name] for name in ("p10", "p90")}, rel=1e-12)

    later, band, tpot = _ends(engine_date="2026-10-11")
    root = (122 / 30.4375) ** 0.5  # days from 2026-06-11 on
    assert later["newest_run"] == "2026-06-11"
    low, high = log(band["p10"] / tpot), log(band["p90"] / tpot)
    assert later["tpot"]["p10"] == pytest.approx(tpot * exp(-hypot(low, known.p10 * root)), rel=1e-12)
    assert later["tpot"]["p90"] == pytest.approx(tpot * exp(hypot(high, known.p90 * root)), rel=1e-12)

    earlier, _, _ = _ends(engine_date="2026-02-09")
    assert earlier["months"] == pytest.approx(-122 / 30.4375)
    assert earlier["tpot"]["p90"] == pytest.approx(tpot * exp(hypot(high, known.p10 * root)), rel=1e-12)

    longest, _, _ = _ends(engine_date="2030-01-01")
    longer, _, _ = _ends(engine_date="2040-01-01")
    assert longest["tpot"] == longer["tpot"], "no two days lie further apart than eight months"


def test_frameworks_without_days() -> None:
    """How old evidence is nobody knows then, and the range stays what it is."""
    day, band, _ = _ends(framework="llama.cpp", engine_date="today")
    assert (day["newest_run"], day["months"]) == (None, None)
    assert day["tpot"] == pytest.approx({name: band[name] for name in ("p10", "p90")}, rel=1e-12)


def test_rows_only_where_a_day_is_asked_for() -> None:
    """Units follow; a plan that cannot be has no range; what is no day is refused."""
    assert "engine_day" not in mt.estimate(mt.Scenario(**ASKED)).to_dict()
    made = mt.estimate(mt.Scenario(**ASKED, engine_date="2026-11-26"))
    check_units([figure for figure in made.equations.figures.values() if figure.id.startswith("drift.")])
    too_small = mt.Scenario(**ASKED | {"model": "llama-3.3-70b", "tp": 1}, engine_date="2026-11-26")
    assert mt.estimate(too_small).to_dict()["engine_day"]["tpot"] == {"p10": None, "p90": None}
    with pytest.raises(InputError, match=r"engine_date.*expected a day such as"):
        mt.Scenario(**ASKED, engine_date="yesterday")


def test_release_stands_for_its_day() -> None:
    """With the engine's name or without, in any spelling; what nobody told us of is refused."""
    day = mt.Scenario(**ASKED, engine_date="2025-07-24").engine_date
    for text in ("vllm 0.10.0", "vLLM v0.10.0", "vllm==0.10.0", "vllm@0.10.0"):
        assert mt.Scenario(**ASKED, engine_date=text).engine_date == day
    assert mt.Scenario(**ASKED | {"framework": "vllm"}, engine_date="v0.10.0").engine_date == day
    assert mt.Scenario(**ASKED, engine_date="0.4.6.post4").engine_date == 45790, "SGLang's, of 2025-05-13"
    assert mt.Scenario(**ASKED, engine_date="TensorRT-LLM 1.0.0").engine_date > day
    for text, said in (
        ("vllm 99.0", r"no day of vllm 99.0 is known.*the newest known is 0.25.1 of 2026-07-14"),
        ("exo 1.0", r"no days of releases of 'exo' are known"),
    ):
        with pytest.raises(InputError, match=said):
            mt.Scenario(**ASKED, engine_date=text)
    variant = [{"name": "older", "engine_date": "0.10.0"}]
    with pytest.raises(InputError, match=r"expected the engine before its release, as in vllm 0.10.0"):
        mt.Scenario(**ASKED, variants=variant)


def test_days_of_releases() -> None:
    """Frameworks are ours; a longer version of the same release is no older."""
    ids = {framework.id for framework in load_library().frameworks}
    for engine, releases in known_releases().items():
        assert engine in ids
        assert len(releases) >= 10
        for version, (day, source) in releases.items():
            assert date(2023, 6, 1) <= day <= date(2026, 11, 26) and len(source) > 40
            post = releases.get(f"{version}.post1")
            assert post is None or post[0] >= day, (engine, version)


def test_days_are_swept() -> None:
    """Days and releases as values of a sweep, each as it is by itself."""
    values = ("2025-07-24", "2026-10-11", "sglang 0.4.9")
    table = mt.sweep(mt.Scenario(**ASKED), engine_date=values)
    assert [*table["engine_date"]] == [*values] and table["tpot_s"].nunique() == 1
    with pytest.raises(InputError, match="engine_date: expected a day"):
        mt.sweep(mt.Scenario(**ASKED), engine_date=["2026-13-01"])
