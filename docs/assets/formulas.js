// Formulas: TeX that pymdownx.arithmatex (generic) marked, rendered by KaTeX from this site.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const tex = formula.textContent.trim().slice(2, -2); // between \( and \) or \[ and \]
    const next = formula.nextSibling;
    katex.render(tex, formula, { displayMode: formula.tagName === "DIV", throwOnError: false });
    const mark = next instanceof Text && next.data.match(/^[.,;:)]+/);
    const end = formula.querySelector(".katex-html")?.lastElementChild;
    if (mark && end) { // no line begins with it
      end.append(mark[0]);
      next.data = next.data.slice(mark[0].length);
    }
  }
});
