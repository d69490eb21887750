// A page of docs/play without a browser: node played.js FOLDER PAGE '[{"k": "100"}, ...]' prints what it shows for each;
// "press" names buttons that are pressed then.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");
const [folder, page, typed, lang] = process.argv.slice(2);

class Element {
  constructor(name) {
    Object.assign(this, { name, attributes: {}, textContent: "", children: [], listeners: {}, dataset: {} });
  }
  setAttribute(key, value) {
    this.attributes[key] = String(value);
    if (key === "value") this.value = String(value);
  }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  addEventListener(event, listener) { this.listeners[event] = listener; }
  all(name) { return this.children.flatMap((each) => [...(each.name === name ? [each] : []), ...each.all(name)]); }
}

const root = new Element("div");
root.dataset.play = page;
const window = {};
const script = (name) => fs.readFileSync(path.join(folder, name), "utf8");
const document = {
  documentElement: { lang },
  querySelector: () => root,
  createElement: (name) => new Element(name),
  createElementNS: (_, name) => new Element(name),
  currentScript: { src: "play.js" },
  head: {
    append: (added) => {
      vm.runInNewContext(script("grids.js"), { window });
      added.listeners.load();
    },
  },
};
vm.runInNewContext(script("play.js"), { document, window });
const form = root.all("form")[0];
const words = (each) => each.textContent;
const shown = (typed) => {
  root.all("input").forEach((field) => {
    field.value = typed[field.attributes.name] ?? field.attributes.value;
  });
  form.listeners.input();
  (typed.press ?? []).forEach((words) => root.all("button").find((each) => each.textContent === words).listeners.click());
  const [svg] = [...root.all("svg"), new Element("svg")];
  const names = svg.all("text").filter((each) => each.attributes.class === "play-name");
  return {
    buttons: root.all("button").map(words),
    bars: root.all("rect").map(({ attributes }) => ["x", "y", "width", "height"].map((each) => Number(attributes[each]))),
    words: root.all("p").map(words),
    rows: root.all("tr").map((row) => row.children.map(words)),
    names: names.map((each) => [each.textContent, each.attributes.fill]),
    paths: svg.all("path").map(({ attributes }) => [attributes.stroke, attributes.d]),
    circles: svg.all("circle").map(({ attributes }) => [attributes.fill, Number(attributes.cx), Number(attributes.cy)]),
  };
};
process.stdout.write(JSON.stringify(JSON.parse(typed).map(shown)));
