// The book, to type in: certified grids are looked up, at the next point upward (for a lower end: downward); closed
// formulas are evaluated in doubles.
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
    ["no value", "没有值"], ["above", "大于"], ["from", "从"], ["below", "小于"], ["at most", "至多"], [" and ", " 和 "],
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

  const wrong = ({ label, least, most, whole, open, under }, value, text) => {
    const inside = (open ? value > least : value >= least) && (under ? value < most : value <= most);
    if (inside && (!whole || Number.isInteger(value))) return "";
    const comma = Number.isNaN(value) && text.includes(",") ? ", without a comma: 1000 or 0.1" : "";
    return `${label}: ${whole ? "a whole number" : "a number"} ${open ? "above" : "from"} ${least}, ${under ? "below" : "at most"} ${most}${comma}`;
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
    const redraw = () => {
      const values = fields.map((field) => read(field.value));
      const faults = page.inputs.map((input, at) => wrong(input, values[at], fields[at].value)).filter((fault) => fault);
      output.replaceChildren();
      if (faults.length) {
        output.append(element("p", { class: "play-fault" }, faults.join("; ")));
        return;
      }
      const asked = Object.fromEntries(page.inputs.map((input, at) => [input.name, values[at]]));
      const table = element("table");
      page.rows(asked, grids).forEach((row) => {
        const line = element("tr");
        row.forEach((cell, at) => line.append(element(at ? "td" : "th", at ? {} : { scope: "row" }, cell)));
        table.append(line);
      });
      const at = page.at ? page.at(grids, asked) : asked;
      output.append(table, picture(page.curves(grids, at), page.axes, values[0]));
      const moved = Object.keys(at).filter((name) => at[name] !== asked[name]);
      if (moved.length) {
        const words = moved.map((name) => `${name} = ${at[name]}`).join(" and ");
        output.append(element("p", {}, `The picture is that of ${words}, the next on the grid.`));
      }
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", redraw);
    root.replaceChildren(form, output);
    redraw();
  };

  const script = element("script", { src: document.currentScript.src.replace("play.js", "grids.js") });
  script.addEventListener("load", () => start(window.dpcomposeGrids));
  document.head.append(script);
})();
