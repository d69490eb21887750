"""docs/questions.md: every statement, example, remark and question of the text has a page and a
call.
"""

# ruff: noqa: RUF001 (Chinese punctuation)
from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpcompose
from dpcompose import book
from website.languages import headings, slug

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "questions.md").read_text(encoding="utf-8")

# What the text holds, in its order: the section, the kind, and words by which a reader knows it, in both languages.
TEXT = [
    ("2.3", "remark", "two (epsilon, 0) mechanisms", "两个 (epsilon, 0"),
    ("2.3", "remark", "k mechanisms: epsilons and deltas", "k 个机制：epsilon "),
    ("2.3", "remark", "group privacy gets weaker", "群体隐私的保证随群体的大小线"),
    ("2.3", "reader's note", "putting mechanisms on top of each", "机制的叠加不能增加保护，ep"),
    ("2.3", "reader's note", "M2(M1(x)), from x over z to y,", "M2(M1(x))，从 x "),
    ("2.3", "theorem", "Theorem 2.2: (k epsilon, 0) for", "定理 2.2：对 k 人群体"),
    ("2.3", "remark", "the probability is over the coins", "概率空间在机制 M 的硬币上"),
    ("2.3", "example", "a survey with several members of", "包括多个家庭成员的调查"),
    ("2.3", "remark", "composition and group privacy are", "组合与群体隐私不是同一回事"),
    ("2.3", "question", "why can Theorem 3.20 not help a", "为什么定理 3.20 帮不了"),
    ("2.3", "example", "footnote: for healthy teenagers", "脚注：用健康的青少年换掉癌症"),
    ("2.3", "remark", "for (epsilon, delta) a group of k", "对 (epsilon, de"),
    ("2.3", "remark", "Section 2.3.1: it protects from", "2.3.1 节：保护个人免受"),
    ("2.3", "remark", "nobody controls what else is in", "个人无法控制数据库的其余内容"),
    ("2.3", "remark", "an incentive may persuade", "给予激励，可能会说服她参与"),
    ("2.3", "statement", "Section 2.3.1: expected utility", "2.3.1 节：期望效用的变"),
    ("2.3", "proof step", "the expectation is a sum of u(a)", "期望是 u(a) P[a] "),
    ("2.3", "reader's note", "Delta(A) is the probability", "Delta(A) 是概率单纯"),
    ("2.3", "remark", "f(M(x)) is as private as M(x), by", "由命题 2.1，f(M(x)"),
    ("2.3", "remark", "e^epsilon is about 1 + epsilon", "e^epsilon 约等于 "),
    ("2.3", "remark", "the promise does not depend on", "承诺与效用函数无关，同时适用"),
    ("3.5", "remark", "algorithms are built from private", "用差分隐私的模块设计更复杂的"),
    ("3.5", "remark", "the mean of repeated Laplace", "重复的拉普拉斯回答的平均值收"),
    ("3.5", "question", "how exactly do epsilon and delta", "epsilon 和 delt"),
    ("3.5", "theorem", "Theorem 3.14: epsilon_1 +", "定理 3.14：epsilo"),
    ("3.5", "proof step", "the probability of a pair is a", "一对回答的概率是乘积"),
    ("3.5", "proof step", "each factor is at most e^epsilon_i", "每个因子不超过 e^epsi"),
    ("3.5", "proof step", "by symmetry, the ratio is at", "由对称性，比值至少是 e^-"),
    ("3.5", "theorem", "Corollary 3.15: the sum of", "推论 3.15：epsilo"),
    ("3.5", "theorem", "Theorem 3.16: the sums of", "定理 3.16：epsilo"),
    ("3.5", "proof step", "the proof of Theorem 3.16 is in", "定理 3.16 的证明见附录"),
    ("3.5", "remark", "composition is automatic: the", "组合是“自动”的：数据管理者"),
    ("3.5.1", "remark", "a fraction whose denominator is 0", "分母为零的分数是无穷大；分子"),
    ("3.5.1", "definition", "Definition 3.5: KL divergence", "定义 3.5：KL 散度（相"),
    ("3.5.1", "reader's note", "sum and integral are two forms of", "求和与积分是相对熵的两种形式"),
    ("3.5.1", "remark", "D >= 0, not symmetric, no", "D >= 0，不对称，没有三"),
    ("3.5.1", "reader's note", "the support of a distribution", "分布的支撑集"),
    ("3.5.1", "definition", "Definition 3.6: max divergence", "定义 3.6：最大散度"),
    ("3.5.1", "definition", "Definition 3.6: delta-approximate", "定义 3.6：delta-近"),
    ("3.5.1", "remark", "Remark 3.1: privacy is a", "备注 3.1：隐私是一种散度"),
    ("3.5.1", "definition", "statistical distance, and", "统计距离，delta-接近"),
    ("3.5.1", "lemma", "Lemma 3.17, part 1", "引理 3.17 第 1 部分"),
    ("3.5.1", "lemma", "Lemma 3.17, part 2", "引理 3.17 第 2 部分"),
    ("3.5.1", "proof step", "the proof of Lemma 3.17, part 1,", "引理 3.17 第 1 部分"),
    ("3.5.1", "proof step", "the proof of Lemma 3.17, part 2,", "引理 3.17 第 2 部分"),
    ("3.5.1", "lemma", "Lemma 3.18: the mean loss", "引理 3.18：平均损失"),
    ("3.5.1", "proof step", "D(Z", "加上 D(Z"),
    ("3.5.1", "proof step", "the logarithms of an outcome", "同一结果的两个对数"),
    ("3.5.1", "proof step", "the absolute log ratio is at most", "对数比值的绝对值不超过 ep"),
    ("3.5.1", "proof step", "the sum of min(Y, Z) is at most 1", "min(Y, Z) 之和不超"),
    ("3.5.1", "lemma", "Lemma 3.19: Azuma's inequality", "引理 3.19：Azuma "),
    ("3.5.1", "remark", "its hypothesis is about each C_i,", "它的假设是在给定前面各项之后"),
    ("3.5.2", "remark", "we want parameters that get worse", "希望参数降级得更慢"),
    ("3.5.2", "remark", "scenario 1: one database, used", "场景 1：同一数据库上重复使"),
    ("3.5.2", "remark", "scenario 2: many databases that", "场景 2：许多数据库可能包含"),
    ("3.5.2", "remark", "new databases are made all the", "新数据库一直在创建，对手可能"),
    ("3.5.2", "remark", "the adversary may influence", "对手可以影响未来的数据库、机"),
    ("3.5.2", "definition", "experiment b", "实验 b"),
    ("3.5.2", "definition", "a family of mechanisms, and their", "机制族与参数 w_i"),
    ("3.5.2", "remark", "the adversary keeps a state; its", "对手有状态；它的视图是它的硬"),
    ("3.5.2", "example", "Bob in the real world, without", "真实世界有 Bob，理想世界"),
    ("3.5.2", "remark", "the adversary cannot tell whether", "对手“不知道”Bob 的数据"),
    ("3.5.2", "definition", "Definition 3.7: epsilon under", "定义 3.7：k 重自适应组"),
    ("3.5.2", "definition", "Definition 3.7 with delta", "定义 3.7，带 delta"),
    ("3.5.2", "theorem", "Theorem 3.20: advanced composition", "定理 3.20：高级组合"),
    ("3.5.2", "proof step", "the proof of Theorem 3.20 is", "定理 3.20【证明】略"),
    ("3.5.2", "theorem", "Corollary 3.21: what each may", "推论 3.21：每个可以花费"),
    ("3.5.2", "proof step", "epsilon* = sqrt(2k ln(1/delta'))", "epsilon* = sqr"),
    ("3.5.2", "question", "does the proof of 3.21 solve a", "推论 3.21 的证明要解一"),
    ("3.5.2", "remark", "for better constants apply the", "优化常数时直接应用组合定理"),
    ("3.5.2", "example", "Example 3.7: which epsilon_0", "例 3.7：epsilon_"),
    ("3.5.2", "remark", "by Theorem 3.20, 1/801 suffices", "由定理 3.20，取 1/8"),
    ("3.5.2", "remark", "the curators do not coordinate,", "管理者之间没有协调，可能不知"),
    ("3.5.2", "remark", "that is essentially the best", "这本质上是针对任意对手的最佳"),
    ("3.5.2", "question", "how many queries can be answered", "能以非平凡的精确度回答多少个"),
    ("3.5.2", "reader's note", "nontrivial accuracy means high", "非平凡精确度是“高精度”"),
    ("3.5.2", "remark", "nearly n^2 counting queries with", "误差 o(n) 时将近 n^"),
    ("3.5.2", "remark", "nearly n queries with noise", "噪声 o(sqrt(n))（"),
    ("3.5.2", "remark", "with coordinated noise,", "协调噪声（coordinat"),
    ("3.5.2", "remark", "without coordination the bounds", "没有协调时，上下界几乎相同"),
]


KINDS = {
    "remark": "说明", "theorem": "定理", "example": "例子", "question": "问题", "reader's note": "读者注", "statement": "命题",
    "definition": "定义", "lemma": "引理", "proof step": "证明步骤",
}  # fmt: skip


def _rows(page: str) -> list[tuple[str, list[str]]]:
    rows: list[tuple[str, list[str]]] = []
    section = ""
    for line in page.splitlines():
        heading = re.match(r"## (?:Section )?([\d.]+)", line)
        section = heading[1] if heading else section
        if line.startswith("| ") and not line.startswith(("| kind", "| 种类")):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            rows.append((section, [cell.strip() for cell in cells]))
    return rows


ROWS, CHINESE = _rows(PAGE), _rows((DOCS / "questions.zh.md").read_text(encoding="utf-8"))


def test_every_passage_has_its_row_in_the_order_of_the_text() -> None:
    assert len(ROWS) == len(CHINESE) == len(TEXT) >= 79
    for (section, kind, english, chinese), one, other in zip(TEXT, ROWS, CHINESE, strict=True):
        assert (one[0], one[1][0]) == (section, kind) and english in one[1][1], one
        assert (other[0], other[1][0]) == (section, KINDS[kind]) and chinese in other[1][1], other
        assert one[1][4] == other[1][4], "the same call in both languages"


def _linked(cell: str) -> bool:
    found = re.fullmatch(r"\[[^\]]+\]\(([\w./-]+\.md)(?:#([^)]+))?\)", cell)
    if found is None or not (DOCS / found[1]).exists():
        return False
    words = headings((DOCS / found[1]).read_text(encoding="utf-8"))
    return found[2] is None or found[2] in {slug(each) for _, each in words}


def _callable(cell: str) -> bool:
    name = cell.strip("`")
    if name.startswith("."):
        return hasattr(dpcompose.Composition, name[1:])
    *rooms, last = name.split(".")
    place: Any = import_module(".".join(("dpcompose", *rooms)))
    return hasattr(place, last)


@pytest.mark.parametrize(
    ("section", "cells"),
    [*ROWS, *CHINESE],
    ids=[cells[1][:40] for _, cells in (*ROWS, *CHINESE)],
)
def test_every_row_has_an_answer_a_page_and_a_call(section: str, cells: list[str]) -> None:
    _, _, answer, page, call = cells
    assert section and answer
    assert _linked(page), page
    assert _callable(call), call


def test_a_wrong_link_or_call_is_found() -> None:
    assert not _linked("[Theorem 9.9](book.md#theorem-99)")
    assert not _linked("[nothing](nothing.md)")
    assert not _callable("`book.nothing`")


def test_the_misprints_are_listed_by_section() -> None:
    page = (DOCS / "misprints.md").read_text(encoding="utf-8")
    assert re.findall(r"^## Section ([\d.]+)$", page, re.MULTILINE) == [
        "2.3",
        "3.5",
        "3.5.1",
        "3.5.2",
    ]
    for known in ("P[M2(x) = r2] / P[M2(x) = r2]", "at most 1", "numbered 3.16"):
        assert known in page


def test_the_caption_of_the_picture_is_true() -> None:
    def worse(times: int) -> bool:
        return (
            book.advanced(0.01, times=times, slack=1e-6).epsilon
            > book.basic([(0.01, 0.0)] * times).epsilon
        )

    found = re.search(
        r"the theorem is above the sum up to k = (\d+)",
        (DOCS / "book.md").read_text(encoding="utf-8"),
    )
    assert found is not None
    assert worse(int(found[1])) and not worse(int(found[1]) + 1)
