// What a page does beyond its HTML: it swaps results as fields change, copies, and remembers a theme.
(() => {
  "use strict";
  const root = document.documentElement;
  const remembered = localStorage.getItem("theme");
  if (remembered) root.dataset.theme = remembered;

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  function showTheme() {
    const player = document.getElementById("play");
    if (player) player.hidden = false;
    const button = document.getElementById("theme");
    if (!button) return;
    button.hidden = false;
    button.setAttribute("aria-pressed", String(isDark()));
    button.setAttribute("aria-label", "Dark theme");
  }

  // On a phone some sections and the menu begin closed; what somebody opened or closed stays so.
  const phone = matchMedia("(max-width: 700px)");
  function fold(opened) {
    for (const one of document.querySelectorAll("details[id]")) {
      if (opened?.has(one.id)) one.open = opened.get(one.id);
      else if (one.hasAttribute("data-phone")) one.open = !phone.matches;
    }
  }
  fold();
  phone.addEventListener("change", () => fold());

  // Assumptions in a drawer, whatever the view: what their own page says. Beside a wide page, over a narrow one.
  const wide = matchMedia("(min-width: 1201px)");
  const drawer = document.getElementById("drawer");
  document.addEventListener("click", async (event) => {
    const opener = event.target.closest("[data-drawer]");
    if (event.target.closest("#close") || event.target === drawer) drawer.close();
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      const text = await (await fetch(opener.href)).text();
      const main = new DOMParser().parseFromString(text, "text/html").getElementById("results");
      main.querySelector("footer")?.remove();
      for (const one of main.querySelectorAll("[id]")) one.removeAttribute("id");
      drawer.querySelector(".drawer-body").replaceChildren(...main.childNodes);
      if (drawer.open) return;
      if (wide.matches) drawer.show();
      else drawer.showModal();
    } catch {
      location.assign(opener.href);
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drawer.open) drawer.close();
  });

  // Swap the parts of a page that say data-swap, but never what somebody is typing in.
  let last = 0, running;
  async function show(address) {
    const turn = ++last;
    for (const part of document.querySelectorAll("main[data-swap]")) part.classList.add("stale");
    let text;
    try {
      running?.abort();
      running = new AbortController();
      text = await (await fetch(address, { signal: running.signal })).text();
    } catch {
      if (turn === last) location.assign(address);
      return;
    }
    if (turn !== last) return;
    const page = new DOMParser().parseFromString(text, "text/html");
    const active = document.activeElement;
    const opened = new Map([...document.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
    for (const part of page.querySelectorAll("[data-swap], .field, form > input[name=s]")) {
      const old = part.id ? document.getElementById(part.id) : document.querySelector("form > input[name=s]");
      if (!old) continue;
      if (old.contains(active)) {
        const note = part.querySelector(":scope > .note"), before = old.querySelector(":scope > .note");
        if (note && before) before.replaceWith(note);
      } else old.replaceWith(part);
    }
    fold(opened);
    const main = document.getElementById("results");
    history.replaceState(null, "", main.dataset.link);
    document.title = page.title;
    document.getElementById("live").textContent = document.getElementById("verdict")?.textContent ?? "";
    showTheme();
  }

  const form = document.getElementById("form");
  if (form && form.method === "get") {
    let timer;
    const ask = () => show(form.getAttribute("action") + "?" + new URLSearchParams(new FormData(form)));
    form.addEventListener("input", (event) => {
      clearTimeout(timer);
      if (event.target.name === "plan") return;
      timer = setTimeout(ask, 250);
    });
    form.addEventListener("change", (event) => {
      if (event.target.name === "plan") form.requestSubmit(); // other fields stand there then
    });
  }

  document.addEventListener("click", async (event) => {
    const theme = event.target.closest("#theme");
    if (theme) {
      root.dataset.theme = isDark() ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
      showTheme();
      return;
    }
    const copied = event.target.closest("[data-copy]");
    if (copied && navigator.clipboard) {
      event.preventDefault();
      const source = copied.dataset.copy && document.getElementById(copied.dataset.copy);
      const text = source ? source.value : new URL(copied.href, location.href).href;
      const before = copied.textContent;
      try {
        await navigator.clipboard.writeText(text);
        copied.textContent = "Copied";
        document.getElementById("live").textContent = "Copied";
        setTimeout(() => (copied.textContent = before), 1500);
      } catch {
        if (!source) location.assign(copied.href);
      }
    }
  });

  // Write a text word by word, a word for a token, at the times that are predicted.
  function play(card) {
    const place = card.querySelector(".feel-text"), words = place.textContent.split(" ");
    const first = Number(card.dataset.ttft) * 1000, each = Number(card.dataset.tpot) * 1000;
    const lines = matchMedia("(prefers-reduced-motion: reduce)").matches ? 12 : 1; // whole lines then
    const begun = performance.now();
    place.textContent = "";
    place.dataset.playing = "1";
    const step = () => {
      if (!place.isConnected) return;
      const due = Math.floor((performance.now() - begun - first) / each) + 1;
      const count = Math.min(words.length, due - (due < words.length ? Math.max(0, due) % lines : 0));
      if (count > 0) place.textContent = words.slice(0, count).join(" ");
      if (count < words.length) requestAnimationFrame(step);
      else delete place.dataset.playing;
    };
    requestAnimationFrame(step);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("#play");
    if (button && !document.querySelector("[data-playing]")) play(button.closest("#feel"));
  });

  // Arrow keys walk a tree of figures: right to its inputs, left back, up and down along.
  document.addEventListener("keydown", (event) => {
    const node = event.target.closest("[data-tree] a.node");
    if (!node) return;
    const item = node.closest("li");
    const near = {
      ArrowRight: () => item.querySelector(":scope > ul a.node"),
      ArrowLeft: () => item.parentElement.closest("li")?.querySelector("a.node"),
      ArrowDown: () => item.nextElementSibling?.querySelector("a.node"),
      ArrowUp: () => item.previousElementSibling?.querySelector("a.node"),
    }[event.key]?.();
    if (near) {
      event.preventDefault();
      near.focus();
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, select, textarea")) {
      const find = document.getElementById("find");
      if (find) {
        event.preventDefault();
        find.focus();
      }
    }
  });

  showTheme();
})();
