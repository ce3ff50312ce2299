// Looks at one page of the gallery in a frame: gallery(path, screens, rules, axe) resolves to a list
// of what is wrong. A screen is {name, width, height, dark, script, axe, decision}; without script,
// everything that folds is unfolded.
async (path, screens, rules, axe) => {
  const problems = [];
  const frames = {};
  for (const s of screens) {
    const script = s.script || frames[true]?.contentDocument.querySelector('script') === null;
    const f = frames[script] ??= await new Promise((resolve, reject) => {
      const f = document.createElement('iframe');
      f.title = path;
      f.style = 'border: 0; position: absolute; inset: 0 auto auto 0';
      if (!script) f.sandbox = 'allow-same-origin';
      f.onload = () => resolve(f);
      f.onerror = reject;
      Object.assign(f, { width: s.width, height: s.height, src: path });
      document.body.append(f);
    });
    for (const other of Object.values(frames)) other.hidden = other !== f;
    f.width = s.width;
    f.height = s.height;
    const page = f.contentDocument;
    page.documentElement.style.colorScheme = s.dark ? 'dark' : 'light'; // style.css has light-dark() and no media query
    if (page.readyState !== 'complete' || !page.querySelector('main h1')) problems.push(`${s.name}: no page`);
    for (const d of page.querySelectorAll('details')) d.open = !s.script;
    const hold = new Function('document', 'getComputedStyle', `return (${rules})`);
    for (const p of hold(page, (e) => f.contentWindow.getComputedStyle(e))) problems.push(`${s.name}: ${p}`);
    for (const e of s.decision ? page.querySelectorAll('.decision button') : []) {
      const bottom = e.getBoundingClientRect().bottom;
      if (bottom > s.height) problems.push(`${s.name}: PE-11: the button ${e.value} ends at ${bottom} of ${s.height}`);
    }
    if (!s.axe) continue;
    if (!f.contentWindow.axe) f.contentWindow.eval(axe);
    const options = { resultTypes: ['violations'], preload: false, // there is no audio, which that is for
      rules: { 'color-contrast': { enabled: s.axe !== 'quick' } } };
    if (s.axe === 'contrast') options.runOnly = ['color-contrast'];
    for (const v of (await f.contentWindow.axe.run(page, options)).violations)
      problems.push(`${s.name}: axe: ${v.id}: ${v.help} at ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`);
  }
  for (const f of Object.values(frames)) f.remove();
  return problems;
}
