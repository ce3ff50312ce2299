// What holds on every page, in every look: a list of what does not.
(() => {
  const problems = [];
  const say = (text) => problems.includes(text) || problems.push(text);
  const call = (e) => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + (e.className && e.className.baseVal === undefined ? '.' + e.className : '');

  // One page: it says its language, what it is, and has one heading in one main part.
  if (!document.documentElement.lang) say('the page names no language');
  if (!/\S+ · \S+/.test(document.title)) say(`the title is ${JSON.stringify(document.title)}`);
  for (const one of ['h1', 'main', 'header']) {
    const n = document.querySelectorAll(one).length;
    if (n !== 1) say(`${n} elements ${one}`);
  }
  if (!document.querySelector('h1')?.innerText.trim()) say('the heading is empty');

  // Nothing leaves the screen sideways, and no text is cut off.
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) say(`the page scrolls sideways: ${document.documentElement.scrollWidth} in ${wide}`);
  const shown = [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && e.getClientRects().length && !e.closest('.unseen, svg'));
  for (const e of shown) {
    const box = e.getBoundingClientRect();
    if (box.left < -0.5 || box.right > wide + 0.5) say(`${call(e)} leaves the screen: ${box.left} to ${box.right} of ${wide}`);
    const cuts = getComputedStyle(e).overflowX !== 'visible';
    if (cuts && e.scrollWidth > e.clientWidth + 1 && e.tagName !== 'INPUT') say(`${call(e)} cuts off its text`);
  }

  // Everybody can read it: WCAG 2.2 1.4.3 for text, 1.4.11 for what is to be found and pressed.
  const once = (f, known = new Map()) => (x) => { // pages have few colors, and many elements in one box
    if (!known.has(x)) known.set(x, f(x));
    return known.get(x);
  };
  const rgba = once((css) => {
    const m = css.match(/^rgba?\(([^)]*)\)$/);
    if (!m) { say(`a color that the test cannot read: ${css}`); return [0, 0, 0, 0]; }
    const n = m[1].split(/[\s,\/]+/).map(Number);
    return [n[0], n[1], n[2], n[3] === undefined ? 1 : n[3]];
  });
  const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3])).concat(1);
  const behind = once((e) => e ? over(rgba(getComputedStyle(e).backgroundColor), behind(e.parentElement)) : [255, 255, 255, 1]);
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const demand = (what, css, under, least) => {
    const got = contrast(over(rgba(css), under), under);
    if (got < least) say(`${what} has a contrast of ${got.toFixed(2)}, less than ${least}`);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), visible = new Set(shown);
  for (let node; (node = texts.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !visible.has(e)) continue;
    demand(`the text of ${call(e)}`, getComputedStyle(e).color, behind(e), 4.5);
  }
  // (of a box to tick that is not styled, the browser draws the edge)
  for (const e of shown.filter((e) => e.matches('input:not([type=checkbox]), select, textarea, button:not(.plain), .button'))) {
    const style = getComputedStyle(e), under = behind(e.parentElement);
    const edge = Math.max(contrast(behind(e), under), parseFloat(style.borderTopWidth) ? contrast(over(rgba(style.borderTopColor), under), under) : 1);
    if (edge < 3) say(`the edge of ${call(e)} has a contrast of ${edge.toFixed(2)}`);
  }

  // What can be pressed is large enough for a finger (2.5.8), and shows that it has the focus.
  const before = document.activeElement;
  for (const e of shown.filter((e) => e.matches('a[href], button, input, select, textarea, summary'))) {
    const box = e.getBoundingClientRect();
    if (box.height < 24 || box.width < 24) say(`${call(e)} is ${box.width.toFixed()} by ${box.height.toFixed()} large`);
    if (e.disabled) continue;
    e.blur();
    e.focus({ focusVisible: true, preventScroll: true });
    const style = getComputedStyle(e);
    if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) say(`${call(e)} does not show that it has the focus`);
    else demand(`the focus ring of ${call(e)}`, style.outlineColor, behind(e.parentElement), 3);
    e.blur();
  }
  before?.focus?.({ preventScroll: true });
  return problems;
})()
