"""The two languages of a page: the same headings, level by level, and the same code.

    python -m website.languages

copies the code of each English page into the Chinese one: run it after an example has changed.

A Chinese page links to Chinese pages and to the anchors of Chinese headings, as a code host shows them. On the site
both languages have the English names and anchors, and each finds its own edition.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^```\w+[^\n]*\n.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(((?:[\w./-]+\.zh\.md)?)(?:#([^)\s]+))?\)")


def chinese_of(page: Path) -> Path:
    """Where the Chinese edition of a page is."""
    return page.with_suffix(".zh.md")


def english_of(page: Path) -> Path:
    """The English edition of a Chinese page."""
    return page.with_name(page.name.replace(".zh.md", ".md"))


def pages() -> list[Path]:
    """The English pages that have a Chinese edition, the README first."""
    places = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        page for page in places if not page.name.endswith(".zh.md") and chinese_of(page).exists()
    ]


def headings(text: str) -> list[tuple[int, str]]:
    """Level and words of each heading; lines of code are none."""
    return [(len(level), words) for level, words in HEADING.findall(CODE.sub("", text))]


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(page: Path) -> dict[str, str]:
    """The anchors of a Chinese page, with those of the English one."""
    chinese, english = (headings(each.read_text("utf-8")) for each in (page, english_of(page)))
    return {slug(one): slug(other) for (_, one), (_, other) in zip(chinese, english, strict=True)}


def linked(page: Path) -> str:
    """A Chinese page whose links have the English names and anchors.

    Raises:
        KeyError: If a link leads to an anchor that no Chinese heading has.
    """

    def changed(match: re.Match[str]) -> str:
        file, anchor = match.groups()
        target = page.parent / file if file else page
        return (
            f"]({file.replace('.zh.md', '.md')}{f'#{anchors(target)[anchor]}' if anchor else ''})"
        )

    return LINK.sub(changed, page.read_text("utf-8"))


def anchored(chinese: str, english: str) -> str:
    """The Chinese page with the anchors of the English one, so that links from everywhere lead to both."""
    anchors = iter(slug(words) for _, words in headings(english))
    parts = CODE.split(chinese)
    marked = [HEADING.sub(lambda match: f"{match[0]} {{#{next(anchors)}}}", part) for part in parts]
    return "".join(
        part + code for part, code in zip_longest(marked, CODE.findall(chinese), fillvalue="")
    )


def with_code_of(chinese: str, english: str) -> str:
    """The Chinese page with the code of the English one, in its order.

    Raises:
        ValueError: If they do not have as many blocks of code.
    """
    codes = CODE.findall(english)
    parts = CODE.split(chinese)
    if len(parts) != len(codes) + 1:
        raise ValueError(f"{len(codes)} blocks of code in English, {len(parts) - 1} in Chinese")
    return "".join(part + code for part, code in zip_longest(parts, codes, fillvalue=""))


def main() -> None:
    """Copy the code of every English page into its Chinese edition."""
    for page in pages():
        chinese = chinese_of(page)
        chinese.write_text(
            with_code_of(chinese.read_text("utf-8"), page.read_text("utf-8")), "utf-8"
        )


if __name__ == "__main__":
    main()
