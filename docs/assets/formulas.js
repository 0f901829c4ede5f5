// Formulas: TeX that pymdownx.arithmatex (generic) marked, rendered by KaTeX from this site.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const tex = formula.textContent.trim().slice(2, -2); // between \( and \) or \[ and \]
    katex.render(tex, formula, { displayMode: formula.tagName === "DIV", throwOnError: false });
  }
});
