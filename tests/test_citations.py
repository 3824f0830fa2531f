"""Every metric's paper has a BibTeX entry; CITATION.cff agrees with the entries and with the version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import isoscope as iso
from isoscope.citations import paper_keys, papers
from isoscope.metrics.registry import built_in, forget

ROOT = Path(__file__).resolve().parent.parent


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", built_in())
def test_every_paper_named_by_a_metric_has_an_entry(name: str) -> None:
    paper = built_in()[name].paper
    years = re.findall(r"\b(?:19|20)\d\d\b", paper)
    assert [key[-4:] for key in paper_keys(paper)] == years


def test_every_entry_is_the_paper_of_some_metric_and_is_well_formed() -> None:
    named = {key for metric in built_in().values() for key in paper_keys(metric.paper)}
    assert named == set(papers())
    for key, entry in papers().items():
        assert entry.count("{") == entry.count("}")
        fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", entry, flags=re.MULTILINE))
        assert {"author", "title", "year"} <= set(fields)
        assert len(fields) == len(entry.splitlines()) - 2
        assert key.endswith(fields["year"])
        assert re.fullmatch(r"10\.\d{4,}/\S+", fields.get("doi", "10.1000/none"))
        assert re.fullmatch(r"\d{4}\.\d{5}", fields.get("eprint", "0000.00000"))


def test_papers_can_be_found_by_doi_or_arxiv() -> None:
    """The others are in proceedings and books without one."""
    without = {key for key, entry in papers().items() if " doi " not in entry and " eprint " not in entry}
    assert without <= {
        *("agrawal2022", "cai2021", "golub2013", "himeno2014", "levina2004", "radovanovic2010", "roy2007"),
        *("he2022", "song2012"),
    }


def test_a_metric_without_bias_cites_what_the_plain_one_cites() -> None:
    pairs = [(one, iso.registered()[one.fair]) for one in iso.registered().values() if one.fair]
    assert "isoscore" in {one.name for one, _ in pairs}
    for one, fair in pairs:
        assert set(paper_keys(one.paper)) <= set(paper_keys(fair.paper)), fair.name


def test_without_metrics_isoscope_alone_is_cited() -> None:
    text = iso.cite()
    assert keys(text) == ["isoscope"]
    assert iso.__version__ in text
    assert repr(text) == str(text)  # lines at the Python prompt, no \n


def test_metrics_are_cited_once_by_name_family_function_and_result(rng) -> None:
    expected = ["isoscope", "rudman2022", "ethayarajh2019"]
    assert keys(iso.cite("isoscore", "mean_cosine")) == expected
    assert keys(iso.cite(["isoscore", "isotropy_defect"], iso.mean_cosine, "isoscore")) == expected
    X = rng.normal(size=(30, 4))
    measured = iso.measure(X, metrics=["isoscore", "mean_cosine"])
    assert keys(iso.cite(measured)) == expected
    comparison = iso.compare(X, X + 0.1 * rng.normal(size=X.shape), metrics=["isoscore", "mean_cosine"])
    assert set(keys(iso.cite(comparison))) == set(expected)
    assert set(keys(iso.cite("all"))) == {"isoscope", *papers()}


def test_corrections_and_losses_are_cited_by_class_and_object() -> None:
    for loss in (iso.losses.IStarLoss, iso.losses.IStarLoss()):
        assert keys(iso.cite(loss)) == ["isoscope", "rudman2024"]
    assert keys(iso.cite(iso.AllButTheTop())) == ["isoscope", "mu2018"]
    assert "% Whiten: Su et al. 2021" in iso.cite(iso.Whiten)


def test_a_metric_of_ones_own_is_named_with_its_paper_as_a_comment() -> None:
    iso.metric(name="own_metric", paper="Somebody 2031,\n}Something")(lambda vectors: 0.0)
    try:
        assert iso.cite("own_metric").splitlines()[-1] == "% own_metric: Somebody 2031, }Something"
    finally:
        forget("own_metric")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(iso.InputError) as raised:
        iso.cite("isoscor")
    assert raised.value.argument == "metrics"


PERSON = {"given-names", "family-names"}


def citation() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_citation_file_follows_the_format() -> None:
    """The rules of the Citation File Format 1.2.0 that apply to the fields in use."""
    content = citation()
    assert set(content) <= {
        *("cff-version", "message", "type", "title", "abstract", "authors", "version", "license"),
        *("keywords", "references"),
    }
    assert {"cff-version", "message", "title", "authors"} <= set(content)
    assert (content["cff-version"], content["type"]) == ("1.2.0", "software")
    assert content["authors"] == [{"name": "isoscope contributors"}]
    assert content["version"] == iso.__version__
    for reference in content["references"]:
        assert set(reference) <= {"type", "title", "authors", "year", "collection-title", "identifiers"}
        assert reference["type"] == "conference-paper"
        assert isinstance(reference["year"], int)
        assert all(set(author) == PERSON for author in reference["authors"])
        assert all(set(one) == {"type", "value"} for one in reference.get("identifiers", ()))


def test_the_citation_file_has_the_four_papers_as_the_table_has_them() -> None:
    references = citation()["references"]
    assert len(references) == 4
    for reference, key in zip(references, ["mickus2024", "rudman2024", "cai2021", "xiao2023"], strict=True):
        entry = papers()[key].replace('{\\"o}', "ö")
        authors = " and ".join(f"{a['family-names']}, {a['given-names']}" for a in reference["authors"])
        for text in (authors, reference["title"], str(reference["year"]), reference["collection-title"]):
            assert f"{{{text}}}" in entry
