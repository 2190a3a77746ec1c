// Elements are built from text nodes only: no name in the data is ever read as markup.
const byId = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    node.setAttribute(name, value);
  }
  for (const child of children) node.append(child); // a string becomes a text node
  return node;
}

const fixed3 = (p) => (Number.isNaN(p) ? "not on this page" : p.toFixed(3));
const compact = (value) => String(Number(value.toPrecision(3)));

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function download(name, data, type) {
  const address = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type: type + ";charset=utf-8" }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
