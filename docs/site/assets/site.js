// What the manual has beyond plain pages: search, the choice of colours, copying. Every page can be read without it.
(() => {
  const own = document.currentScript;
  const root = new URL(".", own.src); // the folder of the site, below whatever path it is

  // Colours: as the system, light, dark.
  const order = ["system", "light", "dark"];
  const theme = document.querySelector("button.theme");
  const words = { system: "as the system", light: "light", dark: "dark" };
  const say = () => {
    const now = document.documentElement.dataset.colours || "system";
    theme.querySelector(".unseen").textContent = "Colours: " + words[now];
    theme.title = "Colours: " + words[now];
    theme.dataset.now = now;
  };
  if (theme) {
    theme.hidden = false;
    say();
    theme.addEventListener("click", () => {
      const now = document.documentElement.dataset.colours || "system";
      const next = order[(order.indexOf(now) + 1) % order.length];
      if (next === "system") delete document.documentElement.dataset.colours;
      else document.documentElement.dataset.colours = next;
      try {
        if (next === "system") localStorage.removeItem("colours");
        else localStorage.setItem("colours", next);
      } catch { /* it holds for this page, then */ }
      say();
    });
  }

  // Copying: what stands in a block, without the prompt of a shell.
  if (navigator.clipboard) {
    for (const block of document.querySelectorAll(".code")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.title = "Copy";
      button.innerHTML = '<svg class="pages" viewBox="0 0 24 24" aria-hidden="true">' +
        '<rect x="9" y="9" width="11" height="11" rx="2"/>' +
        '<path d="M15 9V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v7a2 2 0 0 0 2 2h3"/></svg>' +
        '<svg class="tick" viewBox="0 0 24 24" aria-hidden="true"><path d="m5 12.5 4.5 4.5L19 7"/></svg>' +
        '<span class="unseen" aria-live="polite">Copy</span>';
      const word = button.querySelector("span");
      button.addEventListener("click", async () => {
        const text = block.querySelector("pre").innerText.replace(/^\$ /gm, "").replace(/\n*$/, "\n");
        try {
          await navigator.clipboard.writeText(text);
          word.textContent = "Copied";
          button.classList.add("done");
        } catch {
          word.textContent = "Not copied";
        }
        setTimeout(() => { word.textContent = "Copy"; button.classList.remove("done"); }, 2000);
      });
      block.append(button);
    }
  }

  // What scrolls can be reached by the keyboard.
  const scrollers = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) {
        target.tabIndex = 0;
        target.setAttribute("role", "region");
        target.setAttribute("aria-label", "Table");
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
      }
    }
  });
  for (const table of document.querySelectorAll("article .table")) scrollers.observe(table);

  // The heading that is read now.
  const entries = new Map();
  for (const a of document.querySelectorAll(".beside .toc a")) {
    const heading = document.getElementById(decodeURIComponent(a.hash.slice(1)));
    if (heading) entries.set(heading, a);
  }
  if (entries.size) {
    const mark = () => {
      let now = null;
      for (const [heading, a] of entries) if (heading.getBoundingClientRect().top < 140) now = a;
      for (const a of entries.values()) {
        if (a === now) a.setAttribute("aria-current", "true");
        else a.removeAttribute("aria-current");
      }
    };
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; mark(); });
    }, { passive: true });
    mark();
  }
  const current = document.querySelector(".side [aria-current]");
  if (current) {
    const side = document.querySelector(".side");
    side.scrollTop = current.offsetTop - side.clientHeight / 3;
  }

  // Search. The index is fetched once, when it is first needed: {pages: [[url, title, section, weight]],
  // parts: [[page, anchor, heading, text]]}, as docs/site/index.go writes it.
  const most = 12;
  const plain = (s) => s.toLowerCase();
  let loading = null;
  const load = () => loading ||= fetch(new URL("search.json", root)).then((answer) => {
    if (!answer.ok) throw new Error("there is no index");
    return answer.json();
  }).then((index) => {
    index.pages = index.pages.map(([url, title, section, weight]) => (
      { url, title, section, weight, words: plain(title) }
    ));
    index.parts = index.parts.map(([page, anchor, heading, text]) => (
      { page: index.pages[page], anchor, heading, text, words: plain(heading), body: plain(text) }
    ));
    return index;
  }).catch((error) => { loading = null; throw error; });

  const score = (part, terms) => {
    let all = 0;
    for (const term of terms) {
      let one = 0;
      const title = part.page.words.indexOf(term);
      const heading = part.words.indexOf(term);
      if (heading >= 0) one += part.words === term ? 60 : /\w/.test(part.words[heading - 1] || " ") ? 12 : 30;
      if (title >= 0) one += part.anchor ? 6 : part.page.words === term ? 80 : 24;
      let at = part.body.indexOf(term);
      if (at >= 0) {
        one += /\w/.test(part.body[at - 1] || " ") ? 2 : 5;
        for (let n = 0; at >= 0 && n < 5; n++) { one += 1; at = part.body.indexOf(term, at + term.length); }
      }
      if (!one) return 0;
      all += one;
    }
    const phrase = terms.join(" ");
    if (terms.length > 1) {
      if (part.words.includes(phrase)) all += 40;
      else if (part.body.includes(phrase)) all += 15;
    }
    return all * part.page.weight;
  };

  const search = (index, asked) => {
    const terms = plain(asked).split(/\s+/).filter(Boolean).slice(0, 8);
    if (!terms.length) return [];
    const found = [];
    for (const part of index.parts) {
      const points = score(part, terms);
      if (points) found.push({ part, points });
    }
    found.sort((a, b) => b.points - a.points);
    const perPage = new Map();
    const best = [];
    for (const hit of found) {
      const n = perPage.get(hit.part.page) || 0;
      if (n >= 3) continue;
      perPage.set(hit.part.page, n + 1);
      best.push(hit.part);
      if (best.length === most) break;
    }
    best.terms = terms;
    return best;
  };

  // marked is a text with what was asked for in it, in <mark>.
  const marked = (text, terms) => {
    const out = document.createDocumentFragment();
    const low = plain(text);
    let at = 0;
    while (at < text.length) {
      let next = -1, length = 0;
      for (const term of terms) {
        const i = low.indexOf(term, at);
        if (i >= 0 && (next < 0 || i < next || (i === next && term.length > length))) {
          next = i;
          length = term.length;
        }
      }
      if (next < 0) break;
      out.append(text.slice(at, next));
      const mark = document.createElement("mark");
      mark.textContent = text.slice(next, next + length);
      out.append(mark);
      at = next + length;
    }
    out.append(text.slice(at));
    return out;
  };

  const excerpt = (part, terms) => {
    let at = -1;
    for (const term of terms) {
      const i = part.body.indexOf(term);
      if (i >= 0 && (at < 0 || i < at)) at = i;
    }
    const from = at < 60 ? 0 : part.text.indexOf(" ", at - 50) + 1;
    let to = from + 170;
    if (to < part.text.length) to = Math.max(part.text.lastIndexOf(" ", to), from + 40);
    return (from ? "… " : "") + part.text.slice(from, to) + (to < part.text.length ? " …" : "");
  };

  const show = (box, parts) => {
    box.replaceChildren();
    const said = document.createElement("p");
    said.className = "said";
    said.setAttribute("role", "status");
    said.textContent = parts.length === 0 ? "Nothing found." : parts.length === 1 ? "1 place" :
      parts.length === most ? `The best ${most} places` : `${parts.length} places`;
    box.append(said);
    const list = document.createElement("ol");
    for (const part of parts) {
      const a = document.createElement("a");
      a.href = new URL(part.page.url + (part.anchor ? "#" + part.anchor : ""), root).href;
      const title = document.createElement("span");
      title.className = "title";
      title.append(marked(part.heading || part.page.title, parts.terms));
      const where = document.createElement("span");
      where.className = "in";
      where.textContent = part.anchor ? part.page.section + " › " + part.page.title : part.page.section;
      const text = document.createElement("span");
      text.className = "text";
      text.append(marked(excerpt(part, parts.terms), parts.terms));
      a.append(title, where, text);
      const item = document.createElement("li");
      item.append(a);
      list.append(item);
    }
    box.append(list);
    box.hidden = false;
  };

  for (const form of document.querySelectorAll("form[role=search]")) {
    const input = form.querySelector("input");
    const box = form.querySelector(".found");
    const still = box.classList.contains("still");
    const close = () => { if (!still) box.hidden = true; };
    const run = async () => {
      const asked = input.value.trim().slice(0, 100);
      if (still) document.querySelector(".all").hidden = asked !== "";
      if (!asked) { box.hidden = true; box.replaceChildren(); return; }
      try {
        const index = await load();
        if (input.value.trim().slice(0, 100) === asked) show(box, search(index, asked));
      } catch {
        box.replaceChildren(Object.assign(document.createElement("p"),
          { className: "said", textContent: "The index cannot be loaded. The page Search lists every heading." }));
        box.hidden = false;
      }
    };
    input.addEventListener("focus", () => {
      load().catch(() => {}); // run says so
      if (input.value && box.firstChild) box.hidden = false;
    });
    input.addEventListener("input", run);
    form.addEventListener("keydown", (event) => {
      const links = [...box.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement);
      if (event.key === "Escape") {
        close();
        if (at >= 0) { input.focus(); box.hidden = !still; }
        else { input.value = ""; run(); }
      } else if (event.key === "ArrowDown" && !box.hidden && links.length) {
        event.preventDefault();
        links[Math.min(at + 1, links.length - 1)].focus();
      } else if (event.key === "ArrowUp" && at >= 0) {
        event.preventDefault();
        if (at === 0) input.focus();
        else links[at - 1].focus();
      }
    });
    form.addEventListener("submit", (event) => {
      const first = box.querySelector("a");
      if (!box.hidden && first) { event.preventDefault(); location.href = first.href; }
    });
    form.addEventListener("focusout", (event) => { if (!form.contains(event.relatedTarget)) close(); });
    // A press on a result takes the focus from the input: it stays open for the click.
    box.addEventListener("mousedown", (event) => { if (event.target.closest("a")) event.preventDefault(); });
    if (still) {
      form.hidden = false;
      const asked = new URLSearchParams(location.search).get("q");
      if (asked) { input.value = asked.slice(0, 100); run(); }
      input.focus({ preventScroll: true });
    }
  }
  addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const inputs = [...document.querySelectorAll("form[role=search] input")];
    const input = inputs.find((i) => i.checkVisibility ? i.checkVisibility() : i.offsetParent);
    event.preventDefault();
    if (input) input.focus();
    else location.href = new URL("search/", root).href;
  });
  // The menu of a phone closes by Escape.
  const menu = document.querySelector("details.menu");
  if (menu) {
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); }
    });
  }
})();
