// Filters the tables of claims on reproduction/index.md: by verdict, by paper, and by words.
document.addEventListener("DOMContentLoaded", () => {
  const parts = [...document.querySelectorAll("div.claims")];
  if (!parts.length) return;
  const rows = parts.flatMap((part) => [...part.querySelectorAll("tbody tr")]);
  const verdictOf = (row) => row.cells[4].textContent.trim().split(":")[0];
  const legend = [...document.querySelectorAll("article table")][0]; // the verdicts in their order
  const verdicts = [...legend.tBodies[0].rows].map((row) => row.cells[0].textContent.trim());
  rows.forEach((row) =>
    [...row.cells].forEach((cell, place) => {
      cell.dataset.head = row.closest("table").tHead.rows[0].cells[place].textContent;
    }),
  );

  const bar = document.createElement("form");
  bar.className = "claims-filter";
  const words = Object.assign(document.createElement("input"), { type: "search", placeholder: "Filter by words" });
  words.setAttribute("aria-label", "Filter by words");
  const count = document.createElement("output");
  const boxes = verdicts.map((verdict) => {
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, value: verdict });
    const label = document.createElement("label");
    label.append(box, ` ${verdict}`);
    bar.append(label);
    return box;
  });
  bar.prepend(words);
  bar.append(count);
  bar.addEventListener("submit", (event) => event.preventDefault());

  const filter = () => {
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !(wanted.has(verdictOf(row)) && parts.every((part) => text.includes(part)));
      shown += !row.hidden;
    });
    count.textContent = `${shown} of ${rows.length} claims`;
  };
  bar.addEventListener("input", filter);
  parts[0].closest("article").querySelector("h2").before(bar);
  filter();
});
