"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (name) => root.setAttribute("data-theme", name);
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () =>
    setTheme(root.getAttribute("data-theme") === "dark" ? "light" : "dark"));

  const SVG = "http://www.w3.org/2000/svg";
  const draw = (parent, tag, attributes, text) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  };
  const make = (parent, tag, attributes, text) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  };
  const color = (i) => `var(--c${i % 8})`;

  // A step of 1, 2 or 5 times a power of ten that gives about `count` of them.
  const niceStep = (span, count) => {
    const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  };

  const lineChart = (figure, chart) => {
    const hidden = new Set();
    const legend = make(figure, "div", { class: "legend" });
    const tip = make(figure, "p", { class: "tip", "aria-live": "polite" }, "Hover over or tap a line to read a layer.");
    let svg = null;

    const paint = () => {
      const narrow = figure.clientWidth < 560;
      const [w, h] = narrow ? [420, 330] : [960, 420];
      const [left, right, top, bottom] = [56, 16, 16, 46];
      if (svg) svg.remove();
      svg = draw(figure, "svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": chart.caption });
      figure.insertBefore(svg, legend);
      const shown = chart.lines.filter((_, i) => !hidden.has(i)).flatMap(([, points]) => points);
      const values = shown.flatMap((p) => p.band || [p.y]);
      if (chart.reference) values.push(chart.reference[1]);
      let low = Math.min(...values), high = Math.max(...values);
      if (!Number.isFinite(low)) { low = 0; high = 1; }
      const step = niceStep(Math.max(high - low, 1e-6) * 1.1, 6);
      low = Math.floor(low / step) * step; high = Math.ceil(high / step) * step;
      if (low === high) high = low + step;
      const px = (x) => left + x * (w - left - right);
      const py = (y) => h - bottom - ((y - low) / (high - low)) * (h - top - bottom);
      const digits = Math.max(0, -Math.floor(Math.log10(step)));
      for (let y = low; y <= high + step / 2; y += step) {
        draw(svg, "line", { class: "grid", x1: left, x2: w - right, y1: py(y), y2: py(y) });
        draw(svg, "text", { x: left - 8, y: py(y) + 4, "text-anchor": "end" }, y.toFixed(digits));
      }
      for (const x of [0, 0.25, 0.5, 0.75, 1]) draw(svg, "text", { x: px(x), y: h - bottom + 18, "text-anchor": x === 1 ? "end" : "middle" }, `${x * 100} %`);
      draw(svg, "text", { x: px(0.5), y: h - 8, "text-anchor": "middle" }, chart.x_label);
      draw(svg, "text", { x: 14, y: py((low + high) / 2), "text-anchor": "middle", transform: `rotate(-90 14 ${py((low + high) / 2)})` }, chart.y_label);
      if (chart.reference) draw(svg, "path", { class: "reference", d: `M${px(0)},${py(chart.reference[1])}H${px(1)}` });
      chart.lines.forEach(([name, points], i) => {
        if (hidden.has(i) || !points.length) return;
        const banded = points.filter((p) => p.band !== null);
        if (banded.length > 1) {
          const upper = banded.map((p) => `${px(p.x)},${py(p.band[1])}`);
          const lower = banded.map((p) => `${px(p.x)},${py(p.band[0])}`).reverse();
          draw(svg, "path", { class: "band", fill: color(i), d: `M${upper.join("L")}L${lower.join("L")}Z` });
        }
        draw(svg, "path", { class: "path", stroke: color(i), d: `M${points.map((p) => `${px(p.x)},${py(p.y)}`).join("L")}`, "data-line": name });
        for (const p of points) draw(svg, "circle", { cx: px(p.x), cy: py(p.y), r: points.length > 40 ? 2 : 3.5, fill: color(i) });
      });
      const mark = draw(svg, "circle", { r: 7, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden" });
      const read = (event) => {
        const box = svg.getBoundingClientRect();
        const [x, y] = [(event.clientX - box.left) * w / box.width, (event.clientY - box.top) * h / box.height];
        let best = null;
        chart.lines.forEach(([name, points], i) => {
          if (hidden.has(i)) return;
          for (const p of points) {
            const distance = Math.hypot(px(p.x) - x, py(p.y) - y);
            if (!best || distance < best.distance) best = { distance, name, p };
          }
        });
        if (!best || best.distance > 60) return;
        mark.setAttribute("cx", px(best.p.x)); mark.setAttribute("cy", py(best.p.y)); mark.setAttribute("visibility", "visible");
        tip.textContent = `${best.name} · ${best.p.label}: ${best.p.detail}`;
      };
      svg.addEventListener("pointermove", read);
      svg.addEventListener("pointerdown", read);
    };

    chart.lines.forEach(([name], i) => {
      const button = make(legend, "button", { type: "button", "aria-pressed": "true" });
      make(button, "i", { style: `border-color: ${color(i)}` });
      make(button, "span", {}, name);
      button.addEventListener("click", () => {
        if (hidden.has(i)) hidden.delete(i); else hidden.add(i);
        button.setAttribute("aria-pressed", String(!hidden.has(i)));
        paint();
      });
    });
    if (chart.reference) {
      const note = make(legend, "button", { type: "button", disabled: "" });
      make(note, "i", { class: "dashed", style: "border-color: var(--quiet)" });
      make(note, "span", {}, `${chart.reference[0]} ${chart.reference[1].toFixed(1)}`);
    }
    paint();
    let narrow = figure.clientWidth < 560;
    new ResizeObserver(() => {
      if ((figure.clientWidth < 560) !== narrow) { narrow = !narrow; paint(); }
    }).observe(figure);
  };

  const charts = JSON.parse(document.getElementById("charts").textContent);
  for (const figure of document.querySelectorAll("[data-chart]")) lineChart(figure, charts[Number(figure.dataset.chart)]);

  for (const table of document.querySelectorAll("figure.table")) {
    const body = table.querySelector("tbody"), heads = [...table.querySelectorAll("th")];
    heads.forEach((head, column) => {
      if (body.rows[0] && body.rows[0].cells[column].classList.contains("number")) head.classList.add("number");
      head.querySelector("button").addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[column].textContent;
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [parseFloat(key(a)), parseFloat(key(b))];
          const order = Number.isNaN(x) || Number.isNaN(y) ? key(a).localeCompare(key(b)) : x - y;
          return up ? order : -order;
        });
        body.append(...rows);
      });
    });
    const filter = table.querySelector(".filter");
    if (filter) filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      for (const row of body.rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
  }
})();
