// The book, to type in: certified grids are looked up, at the next point upward (for a lower end: downward); closed
// formulas are evaluated in doubles. The experiment is played with buttons.
(() => {
  "use strict";
  const root = document.querySelector("[data-play]");
  if (!root) return;
  const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
  const SVG = "http://www.w3.org/2000/svg";

  // A comma is a decimal one where it can be nothing else, as in 0,1; in 1,000 it may be either, and is not read.
  const number = (text) => {
    const clean = text.trim();
    const unclear = clean === "" || /^[+-]?[1-9]\d{0,2},\d{3}(?!\d)/.test(clean);
    return unclear ? NaN : Number(clean.replace(",", "."));
  };
  // 0.1, 1e-6, 1/801 and e^-32 are understood.
  const read = (text) => {
    const power = /^e\^(-?\d+(?:[.,]\d+)?)$/.exec(text.trim());
    if (power) return Math.exp(number(power[1]));
    const parts = text.split("/").map(number);
    return parts.length > 2 ? NaN : parts.reduce((above, below) => above / below);
  };
  // Words in Chinese on a Chinese page, longer phrases first, and numbers as people write them.
  const CHINESE = document.documentElement?.lang === "zh" ? [
    ["Ask the next database", "问下一个数据库"], ["Ask it with the worlds swapped", "把两个世界交换再问"], ["Ask ten", "问十个"], ["Guess: Bob is in", "猜：Bob 在"],
    ["Guess: Bob is out", "猜：Bob 不在"], ["New game", "新的一局"], ["1000 games in world 0", "在世界 0 里玩 1000 局"],
    ["1000 games that stop above Theorem 3.20", "1000 局，超过定理 3.20 就停"], ["games with a loss above Theorem 3.20", "损失超过定理 3.20 的局"],
    ["delta at the least epsilon, measured", "最小的 epsilon 处的 delta，测得"], ["their last answers", "最后的回答"], ["is Bob in it?", "Bob 在里面吗？"],
    ["loss of your view", "你的视图的损失"], ["Bob is in, as probable as", "Bob 在其中的概率"], ["before the first answer", "在第一个回答之前"], ["your guess", "你的猜测"],
    ["it was world", "是世界"], ["your turn", "轮到你"], ["all are asked: guess", "都问过了：请猜"], ["expected are at most", "预期至多"], ["is certified", "有证明"],
    ["databases asked", "问过的数据库"], ["k, databases with Bob", "k，有 Bob 的数据库"], ["coins, a number of their own", "硬币的编号"], ["loss at the end", "结束时的损失"],
    ["P[loss > 1], in units of e^−32, everyone", "P[损失 > 1]，以 e^−32 为单位，所有对手"], ["the same, of randomized response", "同上，随机化回答"],
    ["(epsilon, e^−32)-differential privacy: epsilon", "(epsilon, e^−32)-差分隐私：epsilon"], ["1 − (1 − delta)^k, which is enough", "1 − (1 − delta)^k，这就够了"],
    ["epsilon of the group, k epsilon", "群体的 epsilon，k epsilon"], ["its delta, the sum of the powers", "它的 delta，各次幂之和"], ["its delta, as customary", "它的 delta，常用的公式"],
    ["k composed, delta 1e-6", "k 个组合，delta 1e-6"], ["least, delta 1e-6 more", "最小值，delta 多 1e-6"], ["with the tight mean loss", "用紧的平均损失"],
    ["the truth, epsilon tanh(epsilon/2)", "真值，epsilon tanh(epsilon/2)"], ["as printed, epsilon (e^epsilon − 1)", "照印刷，epsilon (e^epsilon − 1)"],
    ["certified, the last such point of the grid", "有证明，网格上最后一个这样的点"], ["each may spend as well", "每个也可以花费"], ["no point of the grid", "网格上没有这样的点"],
    ["the sum, Corollary 3.15", "求和，推论 3.15"], ["Corollary 3.21, each", "推论 3.21，每个"], ["each, Corollary 3.21", "每个，推论 3.21"], ["each spends one part in", "每个花费若干分之一："],
    ["first term of 3.20", "3.20 的第一项"], ["second term of 3.20", "3.20 的第二项"], ["half of epsilon′: neither is more", "epsilon′ 的一半：两项都不超过"],
    ["half of epsilon′: the second is more", "epsilon′ 的一半：第二项超过"], ["refused above", "拒绝，超过"], ["the least there is", "可能的最小值"], ["Theorem 3.20", "定理 3.20"],
    ["sum of the epsilons", "epsilon 之和"], ["sum of the deltas", "delta 之和"], ["the next on the grid.", "是网格上的下一点。"], ["The picture is that of ", "图中是 "],
    ["delta′, allowed in total", "允许的总 delta′"], ["epsilon′, in total", "总的 epsilon′"], ["epsilon of each", "每个的 epsilon"], ["delta of each", "每个的 delta"], ["k, how many", "k，多少个"],
    ["over", "对"], ["both on logarithmic scales", "两轴都是对数刻度"], ["outside the grid", "在网格之外"], ["certified at", "有证明，在"], ["double precision", "双精度"], ["group of k", "k 人群体"],
    ["as printed", "照印刷"], ["the truth", "真值"], ["the least", "最小值"], ["the sum", "求和"], ["total epsilon", "总的 epsilon"], ["mean loss", "平均损失"], ["one part in", "若干分之一"],
    ["epsilon at", "epsilon，在"], ["P[loss > 1]", "P[损失 > 1]"], ["a whole number", "整数"], ["a number", "数"], ["without a comma: 1000 or 0.1", "不带逗号：1000 或 0.1"], ["infinite", "无穷大"],
    ["no value", "没有值"], ["right", "对"], ["wrong", "错"], ["none", "没有"], ["games", "局"], ["above", "大于"], ["from", "从"], ["below", "小于"], ["at most", "至多"], [" and ", " 和 "], ["loss", "损失"],
  ] : [];
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const say = (text) => CHINESE.reduce((all, [english, chinese]) => all.replaceAll(english, chinese), text)
    .replace("<=", "≤").replace(">=", "≥")
    .replace(/(\d[\d.]*)e[+]?(-?\d+)/g, (_, digits, power) => `${digits === "1" ? "" : `${digits} × `}10${[...power].map((each) => RAISED[each]).join("")}`);
  const atLeast = (list, value) => list.findIndex((each) => each >= value);
  const atMost = (list, value) => list.findIndex((each) => each <= value); // of a falling list
  const shown = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "infinite");

  // The certified value of the next point with at least as many mechanisms, as large an epsilon, as small a delta.
  const optimum = (grids, k, epsilon, delta) => {
    const at = [atLeast(grids.times, k), atLeast(grids.epsilons, epsilon), atMost(grids.deltas, delta)];
    if (at.includes(-1)) return null;
    const [i, j, l] = at;
    return { value: grids.optimum[i][j][l], k: grids.times[i], epsilon: grids.epsilons[j], delta: grids.deltas[l] };
  };
  const certified = (found) =>
    found === null
      ? ["outside the grid", "no value"]
      : [`<= ${found.value}`, `certified at k = ${found.k}, epsilon = ${found.epsilon}, delta = ${found.delta}`];
  const DOUBLE = "double precision";
  const walk = (k, slack) => Math.sqrt(2 * k * Math.log(1 / slack));
  const printed = (k, epsilon, slack) => walk(k, slack) * epsilon + k * epsilon * Math.expm1(epsilon);
  const tight = (k, epsilon, slack) => walk(k, slack) * epsilon + k * epsilon * Math.tanh(epsilon / 2);
  const over = (grids, value) => grids.times.map((k) => [k, value(k)]);
  // k is a whole number: a point for each k of the grid, and none between them.
  const dots = (grids, epsilon, delta) =>
    over(grids, (k) => (optimum(grids, k, epsilon, delta) || { value: NaN }).value);
  // The next point of the grid, for curves that are to be compared: a certified one holds there, and for what is typed.
  const onGrid = (grids, asked) => {
    const found = { ...asked, epsilon: grids.epsilons[atLeast(grids.epsilons, asked.epsilon)] ?? asked.epsilon };
    return "delta" in asked ? { ...found, delta: grids.deltas[atMost(grids.deltas, asked.delta)] ?? asked.delta } : found;
  };

  const K = { name: "k", label: "k, how many", start: "100", whole: true, least: 1, most: 100000 };
  const EPSILON = { name: "epsilon", label: "epsilon of each", start: "0.1", least: 0, most: 1, open: true };
  const SLACK = { name: "delta", label: "delta′, allowed in total", start: "1e-6", least: 0, most: 1, open: true, under: true };
  const COINS = { name: "coins", label: "coins, a number of their own", start: "1", whole: true, least: 1, most: 1e9 };
  const OWN = { name: "own", label: "delta of each", start: "1e-8", least: 0, most: 1 };

  const PAGES = {
    "2.2": {
      inputs: [K, EPSILON, OWN],
      rows: ({ k, epsilon, own }) => [
        ["epsilon of the group, k epsilon", shown(k * epsilon), DOUBLE],
        ["its delta, the sum of the powers", shown(Math.min(1, (own * Math.expm1(k * epsilon)) / Math.expm1(epsilon))), DOUBLE],
        ["its delta, as customary", shown(Math.min(1, k * Math.exp((k - 1) * epsilon) * own)), DOUBLE],
      ],
      curves: (grids, { epsilon }) => [
        ["group of k", over(grids, (k) => k * epsilon)],
        ["k composed, delta 1e-6", dots(grids, epsilon, 1e-6), "dots"],
      ],
      at: onGrid,
      axes: ["k", "epsilon"],
    },
    "3.16": {
      inputs: [K, EPSILON, OWN],
      rows: ({ k, epsilon, own }) => [
        ["sum of the epsilons", shown(k * epsilon), DOUBLE],
        ["sum of the deltas", shown(k * own), DOUBLE],
        ["1 − (1 − delta)^k, which is enough", shown(-Math.expm1(k * Math.log1p(-own))), DOUBLE],
      ],
      curves: (grids, { epsilon }) => [
        ["the sum", over(grids, (k) => k * epsilon)],
        ["least, delta 1e-6 more", dots(grids, epsilon, 1e-6), "dots"],
      ],
      at: onGrid,
      axes: ["k", "epsilon"],
    },
    "3.18": {
      inputs: [EPSILON],
      rows: ({ epsilon }, grids) => {
        const at = atLeast(grids.epsilons, epsilon);
        const where = `certified at epsilon = ${grids.epsilons[at]}`;
        return [
          ["as printed, epsilon (e^epsilon − 1)", shown(epsilon * Math.expm1(epsilon)), DOUBLE],
          ["the truth, epsilon tanh(epsilon/2)", shown(epsilon * Math.tanh(epsilon / 2)), DOUBLE],
          ["as printed", `<= ${grids.mean[at][0]}`, where],
          ["the truth", `<= ${grids.mean[at][1]}`, where],
        ];
      },
      curves: (grids) => [
        ["as printed", grids.epsilons.map((each, at) => [each, grids.mean[at][0]]), "step"],
        ["the truth", grids.epsilons.map((each, at) => [each, grids.mean[at][1]]), "step"],
      ],
      axes: ["epsilon", "mean loss"],
    },
    "3.20": {
      inputs: [K, EPSILON, SLACK],
      rows: ({ k, epsilon, delta }, grids) => [
        ["the least there is", ...certified(optimum(grids, k, epsilon, delta))],
        ["Theorem 3.20", shown(printed(k, epsilon, delta)), DOUBLE],
        ["with the tight mean loss", shown(tight(k, epsilon, delta)), DOUBLE],
        ["the sum, Corollary 3.15", shown(k * epsilon), DOUBLE],
      ],
      curves: (grids, { epsilon, delta }) => [
        ["the least", dots(grids, epsilon, delta), "dots"],
        ["Theorem 3.20", over(grids, (k) => printed(k, epsilon, delta))],
        ["the sum", over(grids, (k) => k * epsilon)],
      ],
      at: onGrid,
      axes: ["k", "total epsilon"],
    },
    "3.21": {
      inputs: [K, { ...EPSILON, label: "epsilon′, in total", start: "0.9", most: 20 }, SLACK],
      rows: ({ k, epsilon, delta }, grids) => {
        const each = epsilon / 2 / walk(k, delta);
        const limit = 2 * walk(k, delta) * Math.log1p(Math.sqrt((2 * Math.log(1 / delta)) / k));
        const best = grids.epsilons.filter((one) => {
          const found = optimum(grids, k, one, delta);
          return found !== null && found.value * (1 + 1e-12) <= epsilon;
        });
        const second = k * each * Math.expm1(each);
        return [
          ["Corollary 3.21, each", epsilon <= limit ? shown(each) : `refused above epsilon′ = ${shown(limit)}`, DOUBLE],
          ["first term of 3.20", shown(walk(k, delta) * each), DOUBLE],
          ["second term of 3.20", shown(second), DOUBLE],
          [`half of epsilon′: ${second <= epsilon / 2 ? "neither is more" : "the second is more"}`, shown(epsilon / 2), DOUBLE],
          best.length
            ? ["each may spend as well", String(best[best.length - 1]), "certified, the last such point of the grid"]
            : ["each may spend as well", "no point of the grid", "no value"],
        ];
      },
      curves: (grids, { epsilon, delta }) => [["each, Corollary 3.21", over(grids, (k) => epsilon / 2 / walk(k, delta))]],
      axes: ["k", "epsilon of each"],
    },
    "3.7": {
      inputs: [{ name: "odds", label: "each spends one part in", start: "801", least: 690, most: 860 }],
      rows: ({ odds }, grids) => {
        const at = grids.odds.filter((each) => each <= odds).length - 1;
        const where = `certified at 1/${grids.odds[at]}`;
        const [total, loss] = grids.bob[at];
        const below = atLeast(grids.odds, odds); // a lower end: a smaller epsilon can only have less
        return [
          ["(epsilon, e^−32)-differential privacy: epsilon", `<= ${total}`, where],
          ["P[loss > 1], in units of e^−32, everyone", `<= ${loss}`, where],
          ["the same, of randomized response", `>= ${grids.bob[below][2]}`, `certified at 1/${grids.odds[below]}`],
          ["Theorem 3.20", shown(printed(10000, 1 / odds, Math.exp(-32))), DOUBLE],
        ];
      },
      curves: (grids) => [
        ["epsilon at e^−32", grids.odds.map((each, at) => [each, grids.bob[at][0]]), "from"],
        ["P[loss > 1] / e^−32", grids.odds.map((each, at) => [each, grids.bob[at][1]]), "from"],
      ],
      axes: ["one part in", "at most"],
    },
  };

  PAGES.experiment = {
    inputs: [{ ...K, label: "k, databases with Bob", most: 1000 }, EPSILON, { ...SLACK, start: "0.1" }, COINS],
    limits: ({ k, epsilon, delta }, grids) => {
      const least = optimum(grids, k, epsilon, delta);
      const theorem = printed(k, epsilon, delta);
      return { theorem, sum: k * epsilon, value: least === null ? NaN : least.value, least: certified(least) };
    },
  };

  // The experiment of Definition 3.7: each database answers by randomized response whether Bob is in it.
  const GAMES = 1000;
  const ANSWERS = CHINESE.length ? ["否", "是"] : ["no", "yes"];
  // The coins of a game follow from its number (mulberry32), so that it can be played again.
  const tosses = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const begun = (toss, world) => ({ toss, world, losses: [], answers: [], guess: null });
  // Bob is in the database of world 0, or if the adversary has swapped them, of world 1.
  const ask = (game, epsilon, swapped) => {
    const isIn = (game.world === 0) !== swapped;
    const yes = (game.toss() < 1 / (1 + Math.exp(-epsilon))) === isIn;
    game.answers.push(yes);
    game.losses.push((game.losses.at(-1) ?? 0) + (yes === swapped ? -epsilon : epsilon));
  };
  const ended = (toss, { k, epsilon }, limit) => {
    const game = begun(toss, 0);
    while (game.losses.length < k && !((game.losses.at(-1) ?? 0) > limit)) ask(game, epsilon, false);
    return game.losses.at(-1);
  };
  const several = (game, count) => (asked) => {
    for (let at = 0; at < count && game.losses.length < asked.k; at += 1) ask(game, asked.epsilon, false);
  };
  const choices = (game, asked, limits, renew) => [
    ["Ask the next database", several(game, 1)],
    ["Ask it with the worlds swapped", () => game.losses.length < asked.k && ask(game, asked.epsilon, true)],
    ["Ask ten", several(game, 10)],
    ["Guess: Bob is in", () => { game.guess = 0; }],
    ["Guess: Bob is out", () => { game.guess = 1; }],
    ["New game", renew],
    ["1000 games in world 0", () => { game.ends = Array.from({ length: GAMES }, () => ended(game.toss, asked, Infinity)); }],
    ["1000 games that stop above Theorem 3.20", () => {
      game.ends = Array.from({ length: GAMES }, () => ended(game.toss, asked, limits.theorem));
    }],
  ];
  const told = (game, { k, delta }, limits) => {
    const loss = game.losses.at(-1) ?? 0;
    const last = game.answers.slice(-12).map((yes) => ANSWERS[Number(yes)]).join(" ");
    const rows = [
      ["databases asked", `${game.losses.length} / ${k}`, game.losses.length < k ? "your turn" : "all are asked: guess"],
      ["their last answers", last || "none", "is Bob in it?"],
      ["loss of your view", shown(loss), DOUBLE],
      ["Bob is in, as probable as", `${(100 / (1 + Math.exp(-loss))).toFixed(1)} %`, "50 % before the first answer"],
      ["the least there is", ...limits.least],
      ["Theorem 3.20", shown(limits.theorem), DOUBLE],
      ["the sum, Corollary 3.15", shown(limits.sum), DOUBLE],
    ];
    if (game.guess !== null) {
      rows.push(["your guess", game.guess === game.world ? "right" : "wrong", `it was world ${game.world}`]);
    }
    if (game.ends) {
      const above = game.ends.filter((each) => each > limits.theorem).length;
      rows.push(["games with a loss above Theorem 3.20", `${above} / ${GAMES}`, `expected are at most ${shown(delta * GAMES)}`]);
      const parts = game.ends.map((each) => Math.max(0, -Math.expm1(limits.value - each)));
      const mean = parts.reduce((sum, each) => sum + each) / GAMES;
      const error = 2 * Math.sqrt(parts.reduce((sum, each) => sum + (each - mean) ** 2, 0)) / GAMES;
      const measured = Number.isFinite(mean) ? `${mean.toFixed(4)} ± ${error.toFixed(4)}` : "no value";
      rows.push(["delta at the least epsilon, measured", measured, `at most ${delta} is certified`]);
    }
    return rows;
  };

  const element = (name, attributes = {}, text = "", space = null) => {
    const made = space ? document.createElementNS(space, name) : document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.textContent = say(text);
    return made;
  };
  const drawn = (name, attributes, text) => element(name, attributes, text, SVG);

  const picture = (curves, [across, up], marked) => {
    const points = curves.flatMap(([, each]) => each).filter(([x, y]) => x > 0 && y > 0 && Number.isFinite(y));
    const svg = drawn("svg", { viewBox: "0 0 640 320", role: "img", class: "play-picture" });
    svg.append(drawn("title", {}, `${up} over ${across}, both on logarithmic scales`));
    if (points.length === 0) return svg;
    const span = (at) => {
      const logs = points.map((point) => Math.log10(point[at]));
      const [low, high] = [Math.min(...logs), Math.max(...logs)];
      return high > low ? [low, high] : [low - 0.5, high + 0.5];
    };
    const [[left, right], [bottom, top]] = [span(0), span(1)];
    const x = (value) => 60 + (430 * (Math.log10(value) - left)) / (right - left);
    const y = (value) => 275 - (255 * (Math.log10(value) - bottom)) / (top - bottom);
    const ticks = (low, high) => {
      const all = [];
      for (let power = Math.ceil(low); power <= Math.floor(high); power += 1) all.push(10 ** power);
      return all.length > 1 ? all : [10 ** low, 10 ** high].map((each) => Number(each.toPrecision(3)));
    };
    ticks(left, right).forEach((each) => {
      svg.append(drawn("text", { x: x(each), y: 293, "text-anchor": "middle" }, shown(each)));
    });
    ticks(bottom, top).forEach((each) => {
      svg.append(drawn("line", { x1: 60, x2: 490, y1: y(each), y2: y(each), class: "play-grid" }));
      svg.append(drawn("text", { x: 55, y: y(each) + 4, "text-anchor": "end" }, shown(each)));
    });
    svg.append(drawn("text", { x: 275, y: 313, "text-anchor": "middle" }, across));
    svg.append(drawn("text", { x: 60, y: 12 }, up));
    if (marked > 0 && Math.log10(marked) >= left && Math.log10(marked) <= right) {
      svg.append(drawn("line", { x1: x(marked), x2: x(marked), y1: 20, y2: 275, class: "play-mark" }));
    }
    let last = -Infinity;
    const placed = curves.map(([name, each, step], at) => ({
      name, step, color: COLORS[at], each: each.filter(([a, b]) => a > 0 && b > 0 && Number.isFinite(b)),
    }));
    placed.forEach(({ each, step, color }) => {
      if (step === "dots") {
        each.forEach(([a, b]) => svg.append(drawn("circle", { cx: x(a), cy: y(b), r: 2.5, fill: color })));
        return;
      }
      const path = each.map(([a, b], at) => {
        if (at === 0) return `M${x(a)},${y(b)}`;
        if (step === "from") return `H${x(a)}V${y(b)}`; // a value holds from its point on
        return step ? `V${y(b)}H${x(a)}` : `L${x(a)},${y(b)}`; // or up to its point
      });
      svg.append(drawn("path", { d: path.join(""), fill: "none", stroke: color, "stroke-width": 2 }));
    });
    placed
      .filter(({ each }) => each.length > 0)
      .sort((one, other) => y(one.each.at(-1)[1]) - y(other.each.at(-1)[1]))
      .forEach(({ name, each, color }) => {
        last = Math.max(y(each.at(-1)[1]) + 4, last + 15);
        svg.append(drawn("text", { x: 496, y: last, fill: color, class: "play-name" }, name));
      });
    return svg;
  };

  // Bars from 0 on, and named lines: losses round by round under their bounds, or how many games ended at each loss.
  const barred = (bars, span, high, lines, [across, up]) => {
    const svg = drawn("svg", { viewBox: "0 0 640 320", role: "img", class: "play-picture" });
    svg.append(drawn("title", {}, `${up} over ${across}`));
    const tall = (value) => 275 - (255 * (value - high[0])) / (high[1] - high[0] || 1);
    const wide = (value) => 60 + (430 * (value - span[0])) / (span[1] - span[0] || 1);
    bars.forEach(([from, to, value]) => {
      const [top, bottom] = [tall(Math.max(value, 0)), tall(Math.min(value, 0))];
      const place = { x: wide(from), width: wide(to) - wide(from), y: top, height: bottom - top };
      svg.append(drawn("rect", { ...place, fill: COLORS[0], opacity: 0.6 }));
    });
    svg.append(drawn("line", { x1: 60, x2: 490, y1: tall(0), y2: tall(0), class: "play-mark" }));
    let last = -Infinity;
    lines.filter(([, value]) => Number.isFinite(value)).sort((one, other) => other[1] - one[1]).forEach(([name, value, upright]) => {
      const color = COLORS[1 + lines.findIndex(([each]) => each === name)];
      const ends = upright ? { x1: wide(value), x2: wide(value), y1: 20, y2: 275 } : { x1: 60, x2: 490, y1: tall(value), y2: tall(value) };
      svg.append(drawn("line", { ...ends, stroke: color, "stroke-width": 2 }));
      last = Math.max(upright ? 30 : tall(value) + 4, last + 15);
      svg.append(drawn("text", { x: 496, y: last, fill: color, class: "play-name" }, name));
    });
    high.forEach((value) => svg.append(drawn("text", { x: 55, y: tall(value) + 4, "text-anchor": "end" }, shown(Number(value.toPrecision(3))))));
    span.forEach((value) => svg.append(drawn("text", { x: wide(value), y: 293, "text-anchor": "middle" }, shown(Number(value.toPrecision(3))))));
    svg.append(drawn("text", { x: 275, y: 313, "text-anchor": "middle" }, across));
    svg.append(drawn("text", { x: 60, y: 12 }, up));
    return svg;
  };
  const losses = (game, { k }, limits) => {
    const bounds = [["Theorem 3.20", limits.theorem], ["the least", limits.value], ["the sum", limits.sum]];
    const top = 1.05 * Math.max(Math.min(limits.theorem, limits.sum), ...game.losses);
    const lines = bounds.filter(([, value]) => value <= top);
    const bars = game.losses.map((loss, at) => [at, at + 1, loss]);
    const pictures = [barred(bars, [0, k], [Math.min(-top / 3, ...game.losses), top], lines, ["databases asked", "loss"])];
    if (game.ends) {
      const [low, high] = [Math.min(...game.ends), 1.05 * Math.max(limits.theorem, ...game.ends)];
      const counts = Array.from({ length: 43 }, () => 0);
      game.ends.forEach((each) => { counts[Math.floor((42.999 * (each - low)) / (high - low))] += 1; });
      const cells = counts.map((count, at) => [low + (at * (high - low)) / 43, low + ((at + 1) * (high - low)) / 43, count]);
      const upright = bounds.filter(([, value]) => value <= high).map(([name, value]) => [name, value, true]);
      pictures.push(barred(cells, [low, high], [0, Math.max(...counts)], upright, ["loss at the end", "games"]));
    }
    return pictures;
  };

  const wrong = ({ label, least, most, whole, open, under }, value, text) => {
    const inside = (open ? value > least : value >= least) && (under ? value < most : value <= most);
    if (inside && (!whole || Number.isInteger(value))) return "";
    const comma = Number.isNaN(value) && text.includes(",") ? ", without a comma: 1000 or 0.1" : "";
    return `${label}: ${whole ? "a whole number" : "a number"} ${open ? "above" : "from"} ${least}, ${under ? "below" : "at most"} ${most}${comma}`;
  };

  // A picture scrolls within its frame where the page is narrower than its text needs.
  const framed = (svg) => {
    const frame = element("div", { class: "play-frame", tabindex: "0" });
    frame.append(svg);
    return frame;
  };

  const start = (grids) => {
    const page = PAGES[root.dataset.play];
    const form = element("form", { class: "play-form" });
    const output = element("div", { "aria-live": "polite" });
    const fields = page.inputs.map((input) => {
      const label = element("label", {}, `${input.label} `);
      const field = element("input", { name: input.name, value: input.start, inputmode: "text", autocomplete: "off" });
      label.append(field);
      form.append(label);
      return field;
    });
    let game = null; // of the experiment: what was typed begins it anew
    const buttons = element("div", { class: "play-form" });
    const redraw = () => {
      const values = fields.map((field) => read(field.value));
      const faults = page.inputs.map((input, at) => wrong(input, values[at], fields[at].value)).filter((fault) => fault);
      output.replaceChildren();
      if (faults.length) {
        output.append(element("p", { class: "play-fault" }, faults.join("; ")));
        return;
      }
      const asked = Object.fromEntries(page.inputs.map((input, at) => [input.name, values[at]]));
      const limits = page.limits && page.limits(asked, grids);
      if (limits) output.append(...played(asked, limits));
      else answered(asked);
    };
    const tabled = (rows) => {
      const table = element("table");
      rows.forEach((row) => {
        const line = element("tr");
        row.forEach((cell, at) => line.append(element(at ? "td" : "th", at ? {} : { scope: "row" }, cell)));
        table.append(line);
      });
      return table;
    };
    const played = (asked, limits) => {
      if (game === null) {
        const toss = tosses(asked.coins);
        game = begun(toss, toss() < 0.5 ? 0 : 1);
      }
      const renew = () => {
        fields.at(-1).value = String(asked.coins + 1);
        game = null;
      };
      buttons.replaceChildren();
      choices(game, asked, limits, renew).forEach(([words, act], at) => {
        const button = element("button", { type: "button", class: "play-button" }, words);
        button.addEventListener("click", () => {
          act(asked);
          redraw();
          if (buttons.children[at].focus) buttons.children[at].focus();
        });
        buttons.append(button);
      });
      return [tabled(told(game, asked, limits)), ...losses(game, asked, limits).map(framed)];
    };
    const answered = (asked) => {
      const table = tabled(page.rows(asked, grids));
      const at = page.at ? page.at(grids, asked) : asked;
      output.append(table, framed(picture(page.curves(grids, at), page.axes, Object.values(asked)[0])));
      const moved = Object.keys(at).filter((name) => at[name] !== asked[name]);
      if (moved.length) {
        const words = moved.map((name) => `${name} = ${at[name]}`).join(" and ");
        output.append(element("p", {}, `The picture is that of ${words}, the next on the grid.`));
      }
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      game = null;
      redraw();
    });
    root.replaceChildren(...(page.limits ? [form, buttons, output] : [form, output]));
    redraw();
  };

  const script = element("script", { src: document.currentScript.src.replace("play.js", "grids.js") });
  script.addEventListener("load", () => start(window.dpcomposeGrids));
  document.head.append(script);
})();
