// A click on a heading, or Enter when it has the focus, sorts the table by that column; again the other way round.
(() => {
  "use strict";
  const body = document.querySelector(".cohort tbody");
  const headings = [...document.querySelectorAll(".cohort thead th")];
  const value = (row, column) => row.cells[column]?.dataset.value ?? "nan";

  const compare = (column, sign) => (one, other) => {
    const a = value(one, column);
    const b = value(other, column);
    const x = Number(a);
    const y = Number(b);
    if (a === "nan" || b === "nan") return (a === "nan") - (b === "nan"); // what has no number is last either way
    const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
    return sign * order;
  };

  headings.forEach((heading, column) => {
    const button = heading.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const each of headings) if (each.hasAttribute("aria-sort")) each.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      body.append(...[...body.rows].sort(compare(column, sign)));
    });
  });
})();
