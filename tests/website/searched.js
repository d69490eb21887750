// The site's own search without a browser: node searched.js SITE '["words", ...]' prints the pages found for each, best first.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");
const [site, typed] = process.argv.slice(2);
const scripts = path.join(site, "assets", "javascripts");
const workers = path.join(scripts, "workers");
const worker = fs.readdirSync(workers).find((name) => /^search\..*\.js$/.test(name));
const index = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json"), "utf8"));

const listeners = [];
let answered = () => {};
const run = (file) => vm.runInContext(fs.readFileSync(file, "utf8"), scope);
const scope = {
  console, performance, setTimeout, clearTimeout, TextEncoder, URL,
  location: { href: "http://site/" },
  addEventListener: (_, listener) => listeners.push(listener),
  postMessage: (message) => answered(message),
  importScripts: (...files) => files.forEach((each) => run(path.join(workers, each))),
};
scope.self = scope;
vm.createContext(scope);
run(path.join(workers, worker));
const SETUP = 0, QUERY = 2;
const ask = (type, data) => new Promise((resolve, reject) => {
  answered = resolve;
  listeners.forEach((listener) => Promise.resolve(listener({ data: { type, data } })).catch(reject));
});

(async () => {
  await ask(SETUP, { ...index, options: { suggest: false } });
  const all = [];
  for (const words of JSON.parse(typed)) {
    const found = await ask(QUERY, words);
    all.push(found.data.items.map(([page]) => page.location.split("#")[0]));
  }
  process.stdout.write(JSON.stringify(all));
})();
