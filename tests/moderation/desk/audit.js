// What of WCAG 2.2 a script can check on a page: a list of what is wrong.
() => {
  const wrong = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (one) => one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const ids = (one, name) => (one.getAttribute(name) || "").split(/\s+/).filter(Boolean);
  const told = (id) => document.getElementById(id)?.textContent || "";
  const named = (one) => (one.getAttribute("aria-label") || ids(one, "aria-labelledby").map(told).join("")
    || [...(one.labels || [])].map((label) => label.textContent).join("") || one.textContent || one.title || "").trim();
  const short = (one) => one.outerHTML.slice(0, 150);

  for (const one of all("input:not([type=hidden]), textarea, select").filter(seen))
    if (![...one.labels].some(seen)) wrong.push(`no visible label: ${short(one)}`);
  for (const one of all("a[href], button, summary, nav, section, [role=region], progress").filter(seen))
    if (!named(one)) wrong.push(`no name: ${short(one)}`);

  const levels = all("h1, h2, h3, h4").filter(seen).map((one) => Number(one.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) wrong.push(`not one h1: ${levels}`);
  if (levels.some((level, n) => n && level > levels[n - 1] + 1)) wrong.push(`a level of headings is left out: ${levels}`);

  if (all("main").length !== 1 || all("body > header").length !== 1) wrong.push("not one main and one header");
  const ways = all("nav").map((one) => one.getAttribute("aria-label"));
  if (new Set(ways).size !== ways.length || ways.includes(null)) wrong.push(`navigations without names: ${ways}`);

  const given = all("[id]").map((one) => one.id);
  for (const id of given) if (given.indexOf(id) !== given.lastIndexOf(id)) wrong.push(`twice the id ${id}`);
  for (const name of ["aria-labelledby", "aria-describedby"])
    for (const one of all(`[${name}]`))
      for (const id of ids(one, name)) if (!given.includes(id)) wrong.push(`nothing has the id ${id}: ${short(one)}`);

  if (all("[tabindex]").some((one) => one.tabIndex > 0)) wrong.push("a tabindex changes the order");
  if (!document.documentElement.lang) wrong.push("the page has no language");
  if (!document.title) wrong.push("the page has no title");
  return wrong;
}
