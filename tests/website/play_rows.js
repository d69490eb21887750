// Runs docs/assets/play.js in Node with as much of a browser as it uses: node play_rows.js PAGE NAME=VALUE... prints the rows.
const fs = require("fs");
const path = require("path");
const assets = path.join(__dirname, "..", "..", "docs", "assets");
const [page, ...typed] = process.argv.slice(2);

const element = () => {
  const made = { children: [], listeners: {}, attributes: {}, textContent: "", value: "", dataset: {} };
  made.append = (...more) => made.children.push(...more);
  made.replaceChildren = (...more) => { made.children = more; };
  made.setAttribute = (name, value) => { made.attributes[name] = value; if (name === "value") made.value = value; };
  made.addEventListener = (name, listener) => { made.listeners[name] = listener; };
  return made;
};
const root = element();
root.dataset.play = page;
let script = null;
global.window = {};
global.document = {
  querySelector: () => root,
  createElement: element,
  createElementNS: element,
  currentScript: { src: "play.js" },
  head: { append: (made) => { script = made; } },
};
eval(fs.readFileSync(path.join(assets, "play.js"), "utf-8"));
eval(fs.readFileSync(path.join(assets, "grids.js"), "utf-8"));
script.listeners.load();

const [form, output] = root.children;
const fields = form.children.map((label) => label.children[0]);
typed.forEach((each) => {
  const [name, value] = each.split("=");
  fields.find((field) => field.attributes.name === name).value = value;
});
form.listeners.input();
console.log(JSON.stringify(output.children[0].children.map((row) => row.children.map((cell) => cell.textContent))));
