// Checks the rules of WCAG 2.2 that a script can check; returns the list of violations.
() => {
  const violations = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const isVisible = (one) => one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const ids = (one, name) => (one.getAttribute(name) || "").split(/\s+/).filter(Boolean);
  const textOf = (id) => document.getElementById(id)?.textContent || "";
  const nameOf = (one) => (one.getAttribute("aria-label") || ids(one, "aria-labelledby").map(textOf).join("")
    || [...(one.labels || [])].map((label) => label.textContent).join("") || one.textContent || one.title || "").trim();
  const short = (one) => one.outerHTML.slice(0, 150);

  for (const one of all("input:not([type=hidden]), textarea, select").filter(isVisible))
    if (![...one.labels].some(isVisible)) violations.push(`no visible label: ${short(one)}`);
  for (const one of all("a[href], button, summary, nav, section, [role=region], progress").filter(isVisible))
    if (!nameOf(one)) violations.push(`no name: ${short(one)}`);

  const levels = all("h1, h2, h3, h4").filter(isVisible).map((one) => Number(one.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) violations.push(`not exactly one h1: ${levels}`);
  if (levels.some((level, n) => n && level > levels[n - 1] + 1)) violations.push(`a heading level is skipped: ${levels}`);

  if (all("main").length !== 1 || all("body > header").length !== 1) violations.push("not exactly one main and one header");
  const navigations = all("nav").map((one) => one.getAttribute("aria-label"));
  if (new Set(navigations).size !== navigations.length || navigations.includes(null)) violations.push(`navigations without names: ${navigations}`);

  const allIds = all("[id]").map((one) => one.id);
  for (const id of allIds) if (allIds.indexOf(id) !== allIds.lastIndexOf(id)) violations.push(`duplicate id ${id}`);
  for (const name of ["aria-labelledby", "aria-describedby"])
    for (const one of all(`[${name}]`))
      for (const id of ids(one, name)) if (!allIds.includes(id)) violations.push(`nothing has the id ${id}: ${short(one)}`);

  if (all("[tabindex]").some((one) => one.tabIndex > 0)) violations.push("a tabindex changes the order");
  if (!document.documentElement.lang) violations.push("the page has no language");
  if (!document.title) violations.push("the page has no title");
  return violations;
}
