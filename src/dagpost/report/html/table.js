// A table that sorts, searches, shows its rows in portions, and saves them as CSV.
const PORTION = 200;

// A spreadsheet would take these for formulas: an apostrophe keeps them text, as in the exports of dagpost.
const neutral = (text) => (/^\s*[=+\-@\t\r]/.test(text) ? "'" + text : text);
const cell = (value) => {
  const text = typeof value === "number" ? String(value) : neutral(value);
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
};

// columns: {name, csv, value(row), text(row), number, draw(row)}; search looks at the columns that are not numbers
function sortedTable(place, { columns, rows, file, caption, first }) {
  let sorted = { column: first, up: false }, found = rows, portion = PORTION;
  const search = element("input", { type: "search", "aria-label": "Search " + caption, placeholder: "Search names" });
  const save = element("button", { type: "button" }, "Download CSV");
  const count = element("span", { class: "small", role: "status" });
  const more = element("button", { type: "button" }, "Show more");
  const body = element("tbody");
  const heads = columns.map((column, k) => {
    const button = element("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      const up = sorted.column === k ? !sorted.up : !column.number;
      sorted = { column: k, up };
      refresh();
    });
    return element("th", { scope: "col", class: column.number ? "number" : "" }, button);
  });
  const shell = element("table", { "aria-label": caption }, element("thead", {}, element("tr", {}, ...heads)), body);
  place.append(element("div", { class: "toolbar table-tools" }, search, save, count),
    element("div", { class: "rows" }, shell), element("p", { class: "table-tools" }, more));

  function refresh() {
    const wanted = search.value.trim().toLocaleLowerCase();
    const texts = columns.filter((column) => !column.number);
    found = rows.filter((row) => !wanted || texts.some((c) => c.value(row).toLocaleLowerCase().includes(wanted)));
    const { value } = columns[sorted.column], sign = sorted.up ? 1 : -1;
    found.sort((a, b) => {
      const x = value(a), y = value(b);
      return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
    });
    heads.forEach((head, k) => {
      if (k === sorted.column) head.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    fill();
  }

  function fill() {
    const shown = found.slice(0, portion);
    body.replaceChildren(...shown.map((row) => element("tr", {}, ...columns.map((column) =>
      element("td", { class: column.number ? "number" : "" }, column.draw ? column.draw(row) : column.text(row))))));
    count.textContent = shown.length + " of " + found.length + " rows" + (found.length < rows.length ? " found" : "");
    more.hidden = shown.length === found.length;
  }

  search.addEventListener("input", () => { portion = PORTION; refresh(); });
  more.addEventListener("click", () => { portion += PORTION; fill(); });
  save.addEventListener("click", () => {
    const lines = [columns.map((column) => column.csv), ...found.map((row) => columns.map((c) => cell(c.value(row))))];
    download(file, lines.map((line) => line.join(",")).join("\n") + "\n");
  });
  refresh();
}
