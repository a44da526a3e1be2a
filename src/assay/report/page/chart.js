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
  const dashes = (i) => (i >= 8 ? "7 4" : "none"); // after eight lines the colours come again

  // A step of 1, 2 or 5 times a power of ten that gives about `count` of them.
  const niceStep = (span, count) => {
    const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  };

  // Where an axis of these values begins and ends, and its step. A value that is over a step by a trace, as an interval
  // that reaches below 0 by rounding, adds no step.
  const axis = (values, count) => {
    let low = Math.min(...values), high = Math.max(...values);
    if (!Number.isFinite(low)) { low = 0; high = 1; }
    const size = Math.max(Math.abs(low), Math.abs(high)) || 10;
    if (high - low <= 1e-9 * size) { low -= size / 10; high += size / 10; } // all alike: the line lies in the middle
    const step = niceStep((high - low) * 1.1, count), trace = 0.05;
    low = Math.floor(low / step + trace) * step; high = Math.ceil(high / step - trace) * step;
    return [low, low === high ? low + step : high, step];
  };

  // A number with a minus sign that is no hyphen, and none before a zero.
  const fixed = (value, digits) => {
    const said = value.toFixed(digits);
    return (Number(said) === 0 ? said.replace("-", "") : said).replace("-", "−");
  };

  // Quarters of a range where they are short numbers, else multiples of a nice step.
  const ticks = (from, to) => {
    const quarter = (to - from) / 4;
    if (Number(quarter.toPrecision(2)) === quarter) return [0, 1, 2, 3, 4].map((i) => from + i * quarter);
    const step = niceStep(to - from, 6), found = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * step; i++) found.push(i * step);
    return found;
  };

  // Attributes that squeeze a text of about 7 units a letter into the room there is, so that no label is cut off.
  const fit = (text, room) => (text.length * 7 <= room ? {} : { textLength: room, lengthAdjust: "spacingAndGlyphs" });

  // What the charts of a grid share: one legend, one line to read points in, and a colour for each name.
  const grids = new Map();
  const gridOf = (figure) => {
    const around = figure.closest("figure.charts");
    if (around && !grids.has(around)) grids.set(around, { around, names: [], hidden: new Set(), paints: [], legend: null, tip: null });
    return around ? grids.get(around) : null;
  };
  const READ = "Hover over or tap a line to read a point.";

  const lineChart = (figure, chart) => {
    const grid = gridOf(figure);
    const names = grid ? grid.names : [];
    for (const [name] of chart.lines) if (!names.includes(name)) names.push(name);
    const hidden = grid ? grid.hidden : new Set();
    if (grid && !grid.legend) {
      grid.legend = make(grid.around, "div", { class: "legend" });
      grid.tip = make(grid.around, "p", { class: "tip", "aria-live": "polite" }, READ);
    }
    const legend = grid ? grid.legend : make(figure, "div", { class: "legend" });
    const tip = grid ? grid.tip : make(figure, "p", { class: "tip", "aria-live": "polite" }, READ);
    let svg = null;

    const paint = () => {
      const narrow = figure.clientWidth < 560;
      const [w, h] = narrow ? [420, 330] : [960, 420];
      const [left, right, top, bottom] = [66, 16, 16, 46];
      if (svg) svg.remove();
      svg = draw(figure, "svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": chart.caption });
      figure.insertBefore(svg, grid ? null : legend);
      const shown = chart.lines.filter(([name]) => !hidden.has(name)).flatMap(([, points]) => points);
      const values = shown.flatMap((p) => p.band || [p.y]);
      if (chart.reference) values.push(chart.reference[1]);
      const [low, high, step] = axis(values, 6);
      const [from, to] = chart.x_range || [0, 1];
      const px = (x) => left + ((x - from) / (to - from)) * (w - left - right);
      const py = (y) => h - bottom - ((y - low) / (high - low)) * (h - top - bottom);
      const digits = Math.max(0, -Math.floor(Math.log10(step)));
      for (let y = low; y <= high + step / 2; y += step) {
        draw(svg, "line", { class: "grid", x1: left, x2: w - right, y1: py(y), y2: py(y) });
        draw(svg, "text", { x: left - 8, y: py(y) + 4, "text-anchor": "end" }, fixed(y, digits));
      }
      for (const x of ticks(from, to)) {
        const said = chart.x_range ? String(Number(x.toPrecision(3))) : `${x * 100} %`;
        draw(svg, "text", { x: px(x), y: h - bottom + 18, "text-anchor": px(x) > w - right - 9 ? "end" : "middle" }, said);
      }
      draw(svg, "text", { x: px((from + to) / 2), y: h - 8, "text-anchor": "middle" }, chart.x_label);
      draw(svg, "text", { x: 14, y: py((low + high) / 2), "text-anchor": "middle", transform: `rotate(-90 14 ${py((low + high) / 2)})`, ...fit(chart.y_label, h - top - bottom) }, chart.y_label);
      if (chart.reference) draw(svg, "path", { class: "reference", d: `M${px(from)},${py(chart.reference[1])}H${px(to)}` });
      chart.lines.forEach(([name, points]) => {
        if (hidden.has(name) || !points.length) return;
        const i = names.indexOf(name);
        const banded = points.filter((p) => p.band !== null);
        if (banded.length > 1) {
          const upper = banded.map((p) => `${px(p.x)},${py(p.band[1])}`);
          const lower = banded.map((p) => `${px(p.x)},${py(p.band[0])}`).reverse();
          draw(svg, "path", { class: "band", fill: color(i), d: `M${upper.join("L")}L${lower.join("L")}Z` });
        }
        draw(svg, "path", { class: "path", stroke: color(i), "stroke-dasharray": dashes(i), d: `M${points.map((p) => `${px(p.x)},${py(p.y)}`).join("L")}`, "data-line": name });
        for (const p of points) draw(svg, "circle", { cx: px(p.x), cy: py(p.y), r: points.length > 40 ? 2 : 3.5, fill: color(i) });
      });
      const mark = draw(svg, "circle", { r: 7, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden" });
      const read = (event) => {
        const box = svg.getBoundingClientRect();
        const [x, y] = [(event.clientX - box.left) * w / box.width, (event.clientY - box.top) * h / box.height];
        let best = null;
        chart.lines.forEach(([name, points]) => {
          if (hidden.has(name)) return;
          for (const p of points) {
            const distance = Math.hypot(px(p.x) - x, py(p.y) - y);
            if (!best || distance < best.distance) best = { distance, name, p };
          }
        });
        if (!best || best.distance > 60) return;
        mark.setAttribute("cx", px(best.p.x)); mark.setAttribute("cy", py(best.p.y)); mark.setAttribute("visibility", "visible");
        tip.textContent = `${grid ? `${chart.caption} · ` : ""}${best.name} · ${best.p.label}: ${best.p.detail}`;
      };
      svg.addEventListener("pointermove", read);
      svg.addEventListener("pointerdown", read);
    };

    const paints = grid ? grid.paints : [];
    paints.push(paint);
    for (const [name] of chart.lines) {
      if ([...legend.children].some((button) => button.dataset.name === name)) continue;
      const i = names.indexOf(name);
      const button = make(legend, "button", { type: "button", "aria-pressed": "true", "data-name": name });
      make(button, "i", { class: i >= 8 ? "dashed" : "", style: `border-color: ${color(i)}` });
      make(button, "span", {}, name);
      button.addEventListener("click", () => {
        if (hidden.has(name)) hidden.delete(name); else hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        for (const again of paints) again();
      });
    }
    if (chart.reference) {
      const note = make(legend, "button", { type: "button", disabled: "" });
      make(note, "i", { class: "dashed", style: "border-color: var(--quiet)" });
      make(note, "span", {}, `${chart.reference[0]} ${fixed(chart.reference[1], Math.abs(chart.reference[1]) < 1 ? 3 : 1)}`);
    }
    paint();
    let narrow = figure.clientWidth < 560;
    new ResizeObserver(() => {
      if ((figure.clientWidth < 560) !== narrow) { narrow = !narrow; paint(); }
    }).observe(figure);
  };

  // Marks of four shapes, of the same area to the eye.
  const SHAPES = [
    (x, y, r) => `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0Z`,
    (x, y, r) => `M${x},${y - 1.3 * r}L${x + 1.3 * r},${y}L${x},${y + 1.3 * r}L${x - 1.3 * r},${y}Z`,
    (x, y, r) => `M${x - 0.9 * r},${y - 0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}Z`,
    (x, y, r) => `M${x},${y - 1.2 * r}L${x + 1.15 * r},${y + 0.8 * r}H${x - 1.15 * r}Z`,
  ];
  const cut = (text, room) => (text.length * 7 <= room ? text : `${text.slice(0, Math.max(3, Math.floor(room / 7) - 1))}…`);

  const dotChart = (figure, chart) => {
    const hidden = new Set();
    const legend = make(figure, "div", { class: "legend" });
    const tip = make(figure, "p", { class: "tip", "aria-live": "polite" }, "Hover over or tap a mark to read it.");
    let svg = null;

    const paint = () => {
      const narrow = figure.clientWidth < 560;
      const down = chart.rows || narrow; // groups one below the other
      const slots = chart.spread ? chart.series.map((_, i) => i).filter((i) => !hidden.has(i)) : [null];
      const longest = Math.max(...chart.groups.map((g) => g.length), 1) * 7 + 14;
      const w = narrow ? 420 : 960;
      const band = down ? Math.max(24, slots.length * 6 + 8) : (w - 72) / chart.groups.length;
      const tilted = !down && longest > band;
      const left = down ? Math.min(longest, w * 0.42) : 56;
      const [right, top, bottom] = [16, 14, down ? 46 : tilted ? 30 + Math.min(longest * 0.55, 90) : 32];
      const h = down ? top + bottom + band * chart.groups.length : 420;
      if (svg) svg.remove();
      svg = draw(figure, "svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": chart.alt });
      figure.insertBefore(svg, legend);
      const shown = chart.marks.filter((m) => !hidden.has(m.series));
      const values = shown.flatMap((m) => (m.interval ? [...m.interval, m.value] : [m.value]));
      if (chart.reference !== null) values.push(chart.reference);
      if (chart.band) values.push(chart.band[1], chart.band[2]);
      const [low, high, step] = axis(values, narrow ? 4 : 6);
      const along = (v) => (v - low) / (high - low);
      const pv = (v) => (down ? left + along(v) * (w - left - right) : h - bottom - along(v) * (h - top - bottom));
      const pg = (m) => {
        const at = chart.spread ? (slots.indexOf(m.series) + 0.5) / slots.length : 0.5;
        return (down ? top : left) + (m.group + 0.1 + 0.8 * at) * band;
      };
      const size = !chart.spread ? 5 : shown.length > 150 ? 2.6 : 4;
      const place = (m, v = m.value) => (down ? [pv(v), pg(m)] : [pg(m), pv(v)]);
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      for (let v = low; v <= high + step / 2; v += step) {
        const ends = down ? { x1: pv(v), x2: pv(v), y1: top, y2: h - bottom } : { x1: left, x2: w - right, y1: pv(v), y2: pv(v) };
        draw(svg, "line", { class: "grid", ...ends });
        const at = down ? { x: pv(v), y: h - bottom + 18, "text-anchor": "middle" } : { x: left - 8, y: pv(v) + 4, "text-anchor": "end" };
        draw(svg, "text", at, fixed(v, digits));
      }
      chart.groups.forEach((name, i) => {
        const middle = (down ? top : left) + (i + 0.5) * band;
        let label;
        if (down) label = draw(svg, "text", { x: left - 8, y: middle + 4, "text-anchor": "end" }, cut(name, left - 10));
        else if (tilted) label = draw(svg, "text", { x: middle + 4, y: h - bottom + 14, "text-anchor": "end", transform: `rotate(-35 ${middle + 4} ${h - bottom + 14})` }, cut(name, 150));
        else label = draw(svg, "text", { x: middle, y: h - bottom + 18, "text-anchor": "middle" }, name);
        draw(label, "title", {}, name);
        if (i && chart.spread) draw(svg, "path", { class: "group", d: down ? `M${left},${top + i * band}H${w - right}` : `M${left + i * band},${top}V${h - bottom}` });
      });
      const short = chart.value_label.length * 7 <= w - left - right; // a longer one takes the width of the chart
      if (down) draw(svg, "text", { x: short ? (left + w - right) / 2 : w / 2, y: h - 6, "text-anchor": "middle", ...fit(chart.value_label, w - 16) }, chart.value_label);
      else draw(svg, "text", { x: 14, y: (top + h - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + h - bottom) / 2})`, ...fit(chart.value_label, h - top - bottom) }, chart.value_label);
      if (chart.band) {
        const [name, from, to] = chart.band, [a, b] = [pv(from), pv(to)];
        const at = down ? { x: a, y: top, width: b - a, height: h - bottom - top } : { x: left, y: b, width: w - right - left, height: a - b };
        draw(svg, "rect", { class: "range", ...at });
        draw(svg, "text", down ? { x: (a + b) / 2, y: top + 12, "text-anchor": "middle", ...fit(name, b - a) } : { x: w - right - 4, y: b + 14, "text-anchor": "end" }, name);
      }
      if (chart.reference !== null) draw(svg, "path", { class: "reference", d: down ? `M${pv(chart.reference)},${top}V${h - bottom}` : `M${left},${pv(chart.reference)}H${w - right}` });
      for (const m of shown) {
        const { color: c, shape } = chart.series[m.series];
        if (m.interval) {
          const [[x1, y1], [x2, y2]] = m.interval.map((v) => place(m, v));
          const caps = down ? `M${x1},${y1 - 3}v6M${x2},${y2 - 3}v6` : `M${x1 - 3},${y1}h6M${x2 - 3},${y2}h6`;
          draw(svg, "path", { class: "whisker", stroke: color(c), d: `M${x1},${y1}L${x2},${y2}${caps}` });
        }
        const path = draw(svg, "path", { class: "mark", fill: color(c), d: SHAPES[shape](...place(m), size) });
        draw(path, "title", {}, m.detail);
      }
      for (const [group, why] of chart.absent) {
        const middle = (down ? top : left) + (group + 0.5) * band;
        const at = down ? { x: left + 8, y: middle + 4 } : { x: middle, y: h - bottom - 8, transform: `rotate(-90 ${middle} ${h - bottom - 8})`, dy: 4 };
        draw(svg, "text", { class: "absent", ...at }, why);
      }
      const ring = draw(svg, "circle", { r: 8, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden" });
      const read = (event) => {
        const box = svg.getBoundingClientRect();
        const [x, y] = [(event.clientX - box.left) * w / box.width, (event.clientY - box.top) * h / box.height];
        let best = null;
        for (const m of shown) {
          const [mx, my] = place(m), distance = Math.hypot(mx - x, my - y);
          if (!best || distance < best.distance) best = { distance, m, mx, my };
        }
        if (!best || best.distance > 60) return;
        ring.setAttribute("cx", best.mx); ring.setAttribute("cy", best.my); ring.setAttribute("visibility", "visible");
        tip.textContent = best.m.detail;
      };
      svg.addEventListener("pointermove", read);
      svg.addEventListener("pointerdown", read);
    };

    if (chart.spread) chart.series.forEach((one, i) => {
      const button = make(legend, "button", { type: "button", "aria-pressed": "true" });
      const key = draw(button, "svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
      draw(key, "path", { fill: color(one.color), d: SHAPES[one.shape](8, 8, 6) });
      make(button, "span", {}, one.name);
      button.addEventListener("click", () => {
        if (hidden.has(i)) hidden.delete(i); else hidden.add(i);
        button.setAttribute("aria-pressed", String(!hidden.has(i)));
        paint();
      });
    });
    paint();
    let narrow = figure.clientWidth < 560;
    new ResizeObserver(() => {
      if ((figure.clientWidth < 560) !== narrow) { narrow = !narrow; paint(); }
    }).observe(figure);
  };

  const charts = JSON.parse(document.getElementById("charts").textContent);
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const chart = charts[Number(figure.dataset.chart)];
    (chart.marks ? dotChart : lineChart)(figure, chart);
  }

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
