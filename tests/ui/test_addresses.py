"""What an address may say, and that it gives a form back."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uag_core.errors import InputError
from uag_core.ui import addresses

USUAL = {
    "prompt": "",
    "target": "embedded/target",
    "raw": False,
    "exact": True,
    "references": [],
    "temperature": "",
    "max_new_tokens": "128",
    "repeats": "1",
    "method": "uag",
}


def there_and_back(form: dict) -> dict:
    text = addresses.address(addresses.to_query(form, USUAL)).replace("{page}", "https://x.org/")
    query = dict(parse_qsl(urlsplit(text).query, keep_blank_values=True))
    return {**USUAL, **addresses.from_query(query)}


@given(
    prompt=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    raw=st.booleans(),
    exact=st.booleans(),
    tokens=st.integers(0, 9999),
    references=st.lists(st.sampled_from(["transformers", "transformers_uag"]), unique=True),
)
def test_an_address_gives_the_form_back(prompt, raw, exact, tokens, references) -> None:
    form = {**USUAL, "prompt": prompt, "raw": raw, "exact": exact, "references": references}
    form["max_new_tokens"] = str(tokens)
    assert there_and_back(form) == form


def test_what_is_usual_is_left_out() -> None:
    assert addresses.to_query({**USUAL, "prompt": "Hi"}, USUAL) == {"prompt": "Hi"}


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({"prompt": "x" * 2001}, "at most 2,000"),
        ({"target": "x" * 201}, "at most 200"),
        ({"dtype": "float8"}, "dtype in the address must be one of"),
        ({"raw": "perhaps"}, "raw in the address must be 1 or 0"),
        ({"temperature": "warm"}, "temperature in the address must be a number"),
        ({"max_new_tokens": "nan"}, "finite number"),
        ({"references": "transformers,nobody"}, "references in the address"),
        ({"device": "x" * 30}, "device"),
    ],
)
def test_nonsense_in_an_address_is_one_line(query, line) -> None:
    with pytest.raises(InputError, match=line):
        addresses.from_query(query)


def test_other_parts_of_an_address_are_left_alone() -> None:
    assert addresses.from_query({"__theme": "dark", "run": "x", "view": "chart", "utm": "1"}) == {}
    assert addresses.view_of({"view": "chart"}) == "chart"
    assert addresses.view_of({"view": "<script>"}) is None


def test_a_text_that_is_too_long_for_an_address_is_said() -> None:
    with pytest.raises(InputError, match="Share the run"):
        addresses.to_query({"prompt": "x" * 2001}, USUAL)
