"""The site: the pages of docs as the site can show them, in out/pages, and from these the site, in out/site.

    python -m website.build
    python -m website.build --words    counts the words of the English pages as they were built

Links that leave docs lose their link, fences that name a file get it as a title, and tutorials are run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from typing import Any

from dpcompose.version import __version__
from website.languages import anchored, english_of, linked

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "out" / "pages"
SITE = ROOT / "out" / "site"
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((?:\.\./)+((?!README)[^)#]+)(?:#[^)]*)?\)")
WITHIN = "(?:(?:lessons|play|reference|tutorials)/)?"
"""The folders of docs, in a link from one to another."""
NAMED = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
NAMES = re.compile(r"^<!-- every name of ([\w.]+) -->$", re.MULTILINE)
BOOST = (
    (re.compile(r"(book|proofs|averaging)$"), 3),
    (re.compile(r"(experiment|misprints|release|ledger|training|audit|service)$"), 2),
    (
        re.compile(r"(reference/.*|benchmarks|upgrade|architecture|theorems|adding_a_mechanism)$"),
        0.3,
    ),
)
"""How much more a page counts in the search than others: pages that explain, before pages that list."""
DATED = '@page {{ margin: 18mm; @bottom-left {{ content: "dpcompose {version}, {day} (UTC)"; font: 9pt sans-serif; }} }}\n'
"""The style of paper: each sheet has the day on which the site was built."""
DOCTEST = re.compile(r"^```python$(?=\n>>> )", re.MULTILINE)


def shown(markdown: str, *, up: int) -> str:
    """A page of the folder `up` levels below docs, as the site can show it."""
    above = "../" * up
    linked = re.sub(rf"\]\({above}\.\./README(\.zh)?\.md\)", f"]({above}readme.md)", markdown)
    inner = (
        re.sub(rf"\]\({above}(?={WITHIN}[\w.-]+\.(?:md|bib|png))", "](inside:", linked)
        if up
        else linked
    )
    plain = OUTSIDE.sub(r"\1 (`\2`)", inner).replace("](inside:", f"]({above}")
    return DOCTEST.sub("```pycon", NAMED.sub(r'```\1 title="\2"', plain))


def names(room: str) -> str:
    """One entry of the reference for each public class and function of a room; others' are links to their page."""
    found = import_module(room)
    objects = [(name, getattr(found, name)) for name in found.__all__]
    entries: list[str] = []
    links: list[str] = []
    for name, each in objects:
        if not isclass(each) and not isfunction(each):
            continue
        place = f"{each.__module__}.{each.__qualname__}"
        another = name != each.__name__ in found.__all__  # of one class, which has its entry once
        if _home(each) in (room, None) and not another:
            entries.append(f"::: {place}\n    options: {{heading: {name}, toc_label: {name}}}")
        else:
            links.append(f"[`{name}`][{place}]")
    elsewhere = [f"On the page of their room: {', '.join(links)}."] if links else []
    return "\n\n".join([*elsewhere, *entries])


def _home(public: Any) -> str | None:
    """The room that defines a class or function, if its page of the reference has the entry."""
    room = ".".join(public.__module__.split(".")[:2])
    page = ROOT / "docs" / "reference" / f"{room.removeprefix('dpcompose.')}.md"
    if not page.exists():
        return None
    face = import_module(room)
    return room if any(getattr(face, name) is public for name in face.__all__) else None


def readme(markdown: str) -> str:
    """The README as a page beside the others."""
    shorter = re.sub(r"\]\(docs/", "](", markdown)
    shorter = re.sub(
        r"\]\(([\w/-]+)\.zh\.md\)", r"](\1.md)", shorter
    )  # the Chinese site finds its own edition
    shorter = re.sub(
        r"^\[\w+\]\(README(?:\.zh)?\.md\)\n", "", shorter, flags=re.MULTILINE
    )  # the site has a menu
    return re.sub(
        r"\[([^\]]+)\]\(((?:CONTRIBUTING|CHANGELOG)\.md|LICENSE)\)", r"\1 (`\2`)", shorter
    )


def ranked(page: str, markdown: str) -> str:
    """The page with what it counts in the search; a page with settings of its own keeps them."""
    name = page.removesuffix(".md").removesuffix(".zh")
    boost = next((factor for pages, factor in BOOST if pages.match(name)), None)
    if boost is None or markdown.startswith("---"):
        return markdown
    return f"---\nsearch:\n  boost: {boost}\n---\n\n{markdown}"


def stage() -> None:
    """Write out/pages: a copy of docs, the README in both languages, tutorials with their output."""
    from website.notebooks import executed

    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    with (PAGES / "assets" / "site.css").open("a", encoding="utf-8") as style:
        style.write(DATED.format(version=__version__, day=f"{datetime.now(UTC):%Y-%m-%d}"))
    for name in ("README.md", "README.zh.md"):
        (PAGES / name.lower()).write_text(readme((ROOT / name).read_text("utf-8")), "utf-8")
    for page in sorted(PAGES.rglob("*.zh.md")):
        source = ROOT / "docs" / page.relative_to(PAGES)
        chinese = linked(source) if source.exists() else page.read_text("utf-8")
        page.write_text(anchored(chinese, english_of(page).read_text("utf-8")), "utf-8")
    for page in sorted(PAGES.rglob("*.md")):
        text = page.read_text("utf-8")
        if page.parent.name == "tutorials":
            text, notebook = executed(page)
            page.with_suffix(".ipynb").write_text(notebook, "utf-8")
            text += f"\n\n[{page.stem}.ipynb]({page.stem}.ipynb)\n"
        text = NAMES.sub(lambda match: names(match[1]), text)
        inner = page.relative_to(PAGES)
        text = ranked(inner.as_posix(), shown(text, up=len(inner.parts) - 1))
        page.write_text(text, "utf-8")


STATE = re.compile(r"(\w+)=\1\+(\w+)\+(\w+)\.id(?=\}return \1\})")
"""Where lunr names a state of its automaton of words by letters and numbers of states, run together."""


QUERY = re.compile(r"(?<=case 2:let )(\w+)=(\w+\.data)(?=;)")
"""Where the search takes what is typed."""


def unambiguous(worker: str) -> str:
    """The script of the search, in which two states never have one name: else words with digits find nothing.

    A sign of its language amid a word, as in delta-close or e^epsilon, is read as a blank.
    """
    named = STATE.sub(r'\1=\1+\2+\3.id+";"', worker)
    return QUERY.sub(r'\1=\2.replace(/(?<=\\S)[-^~:](?=\\S)/g," ")', named)


MOST_WORDS = 65_000
SKIPPED = re.compile(r"<(script|style|nav|header|footer|pre|math)\b.*?</\1>|<[^>]*>", re.DOTALL)


def words_of(page: str) -> int:
    """The words of a built page that a reader sees in its article, without blocks of code."""
    found = re.search(r"<article\b.*?</article>", page, re.DOTALL)
    return len(SKIPPED.sub(" ", found[0]).split()) if found else 0


def counted() -> dict[str, int]:
    """The words of each English page that was built, the most first; lessons are a course, and apart."""
    pages = [
        page
        for page in SITE.rglob("*.html")
        if not {"zh", "lessons"} & {*page.relative_to(SITE).parts}
    ]
    words = {page.relative_to(SITE).as_posix(): words_of(page.read_text("utf-8")) for page in pages}
    return dict(sorted(words.items(), key=lambda each: -each[1]))


def main() -> None:
    """Stage and build, strict; with --words, count the words of what was built."""
    if "--words" in sys.argv[1:]:
        words = counted()
        for page, number in words.items():
            print(f"{number:7,}  {page}")
        print(f"{sum(words.values()):7,}  of at most {MOST_WORDS:,}")
        sys.exit(sum(words.values()) > MOST_WORDS)
    stage()
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    failed = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    for worker in SITE.glob("assets/javascripts/workers/search.*.js"):
        worker.write_text(unambiguous(worker.read_text("utf-8")), "utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
