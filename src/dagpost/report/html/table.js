// A table with sorting, search, paging and CSV download.
const PORTION = 200;

// Spreadsheets read these as formulas: a leading apostrophe keeps them text, as in the exports of dagpost.
const neutral = (text) => (/^\s*[=+\-@\t\r]/.test(text) ? "'" + text : text);
const cell = (value) => {
  const text = typeof value === "number" ? String(value) : neutral(value);
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
};

// columns: {name, csv, value(row), text(row), number, draw(row)}; search looks at the columns that are not numbers
function sortedTable(place, { columns, rows, file, caption, first }) {
  let sorted = { column: first, up: false }, matches = rows, portion = PORTION;
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
  const table = element("table", { "aria-label": caption }, element("thead", {}, element("tr", {}, ...heads)), body);
  place.append(element("div", { class: "toolbar table-tools" }, search, save, count),
    element("div", { class: "rows" }, table), element("p", { class: "table-tools" }, more));

  function refresh() {
    const query = search.value.trim().toLocaleLowerCase();
    const texts = columns.filter((column) => !column.number);
    matches = rows.filter((row) => !query || texts.some((c) => c.value(row).toLocaleLowerCase().includes(query)));
    const { value } = columns[sorted.column], sign = sorted.up ? 1 : -1;
    matches.sort((a, b) => {
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
    const shown = matches.slice(0, portion);
    body.replaceChildren(...shown.map((row) => element("tr", {}, ...columns.map((column) =>
      element("td", { class: column.number ? "number" : "" }, column.draw ? column.draw(row) : column.text(row))))));
    const found = matches.length < rows.length ? " found" : "";
    count.textContent = shown.length + " of " + matches.length + " rows" + found;
    more.hidden = shown.length === matches.length;
  }

  search.addEventListener("input", () => { portion = PORTION; refresh(); });
  more.addEventListener("click", () => { portion += PORTION; fill(); });
  save.addEventListener("click", () => {
    const cells = matches.map((row) => columns.map((column) => cell(column.value(row))));
    const lines = [columns.map((column) => column.csv), ...cells];
    download(file, lines.map((line) => line.join(",")).join("\n") + "\n", "text/csv");
  });
  refresh();
}
