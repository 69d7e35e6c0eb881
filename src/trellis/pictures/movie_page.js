"use strict";
// A tracked movie: draws frames and lineage on canvases, lists links, and goes where one clicks.
(() => {
  const $ = (id) => document.getElementById(id);
  const movie = JSON.parse($("movie").textContent);
  const BARS = 60; // frames that a chart shows as bars
  const FULL = 65535, KINDS = {
    int8: Int8Array, int16: Int16Array, int32: Int32Array, uint8: Uint8Array, uint16: Uint16Array,
    float64: Float64Array,
  };
  const film = $("film"), pen = film.getContext("2d");
  const tree = $("tree"), brush = tree.getContext("2d"), box = $("tree-box");
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  // ------------------------------------------------------------------ data

  function column({ kind, text }) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new KINDS[kind](bytes.buffer);
  }

  function unpack(s) {
    if (s.n !== undefined) return s;
    for (const [name, packed] of Object.entries(s.columns)) s[name] = column(packed);
    s.columns = null;
    s.n = s.x.length;
    s.start = [0];
    for (const count of s.counts) s.start.push(s.start[s.start.length - 1] + count);
    s.frames = s.counts.length;
    s.at = new Uint32Array(s.n);
    for (let t = 0; t < s.frames; t++) s.at.fill(t, s.start[t], s.start[t + 1]);
    // Fates, two at most; the first object and the daughters of each track.
    s.fate = new Int32Array(s.n).fill(-1);
    s.fate2 = new Int32Array(s.n).fill(-1);
    for (let k = 0; k < s.n; k++) {
      const p = s.past[k];
      if (p >= 0) (s.fate[p] < 0 ? s.fate : s.fate2)[p] = k;
    }
    const tracks = s.t_name.length;
    s.head = new Int32Array(tracks).fill(-1);
    s.foot = new Int32Array(tracks).fill(-1);
    for (let k = 0; k < s.n; k++) {
      if (s.head[s.track[k]] < 0) s.head[s.track[k]] = k;
      s.foot[s.track[k]] = k;
    }
    s.daughters = Array.from({ length: tracks }, () => []);
    for (let i = 0; i < tracks; i++) if (s.t_parent[i] >= 0) s.daughters[s.t_parent[i]].push(i);
    s.spacing = Math.sqrt((s.size[0] || s.side) * (s.size[1] || s.side) / Math.max(...s.counts, 1)) / s.side;
    s.radius = s.longest === null ? 0.22 * Math.min(s.spacing, 0.2) : null;
    return s;
  }

  let now, frame = 0, playing = false, timer = 0, chosen = -1, doubt = -1;
  let sequence = 0, scale = 1, left = 0, top = 0; // pixels of the unit, and where the origin is

  const family = (s, k) => s.t_family[s.track[k]];
  const lineages = (s, i) => { // the founder of a track
    while (s.t_parent[i] >= 0) i = s.t_parent[i];
    return i;
  };
  const percent = (share) => {
    const p = 100 * share / FULL;
    return p > 99.9 ? "> 99.9 %" : p < 0.1 ? "< 0.1 %" : `${p.toFixed(p < 10 || p > 99 ? 1 : 0)} %`;
  };
  const called = (s, k) => `${s.id[k]} of frame ${s.first + s.at[k]}`;
  const few = (v) => Number(v.toPrecision(4)).toString();

  // ------------------------------------------------------------------ colours

  let paint = {};
  function palette() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    paint = {
      family: [0, 1, 2, 3, 5].map((i) => of(`--c${i}`)),
      lone: of("--lone"), ink: of("--ink"), rule: of("--rule"), alarm: of("--alarm"),
      faint: of("--faint"), field: of("--field"), mark: of("--mark"), link: of("--link"),
    };
    paint.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  }

  // Colours are few, so that all that has one is drawn at once.
  function inkOf(s, k) {
    const how = $("colour").value;
    if (how === "track") return `hsl(${(s.track[k] * 137.508) % 360 | 0} 65% ${paint.dark ? 68 : 40}%)`;
    if (how === "chance" && movie.likely) {
      if (s.past[k] < 0) return paint.lone;
      const p = s.chance[k] / FULL;
      return p < 0.5 ? paint.alarm : p < 0.9 ? paint.family[1] : p < 0.99 ? paint.family[3] : paint.family[0];
    }
    const f = family(s, k);
    return f < 0 ? paint.lone : paint.family[f % paint.family.length];
  }

  // ------------------------------------------------------------------ the movie

  function fit(canvas, context, width, height) {
    const ratio = Math.min(devicePixelRatio || 1, 3);
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  const px = (s, k) => left + scale * s.x[k] / FULL;
  const py = (s, k) => top + scale * s.y[k] / FULL;

  function wholeView() {
    const s = now, pad = 26, w = film.clientWidth, h = film.clientHeight;
    const least = s.size[0] || s.size[1] ? 0.02 : 1; // all in one place
    const [a, b] = [Math.max(s.size[0] / s.side, least), Math.max(s.size[1] / s.side, least)];
    scale = Math.min((w - 2 * pad) / a, (h - 2 * pad) / b);
    left = (w - scale * s.size[0] / s.side) / 2;
    top = (h - scale * s.size[1] / s.side) / 2;
  }

  function grouped(groups, key) {
    let path = groups.get(key);
    if (!path) groups.set(key, path = new Path2D());
    return path;
  }

  function draw() {
    const s = now, w = film.clientWidth, h = film.clientHeight;
    fit(film, pen, w, h);
    pen.clearRect(0, 0, w, h);
    const seen = (x, y, by) => x > -by && y > -by && x < w + by && y < h + by;
    const tails = new Map(), dashed = new Map(), cells = new Map(), dots = new Map();
    const tail = Number($("tail").value), all = tail > 1000;
    const forks = new Path2D(), wrong = new Path2D(), missed = new Path2D();
    const of = chosen >= 0 ? lineages(s, s.track[chosen]) : -1;
    const fork = (p) => {
      pen.fillStyle = paint.ink;
      const [x, y] = [px(s, p), py(s, p)];
      forks.moveTo(x + 3.4, y);
      forks.arc(x, y, 3.4, 0, 7);
    };
    const before = new Set();
    const [first, last] = [s.start[frame], s.start[frame + 1]];
    const walk = (k, ink, long) => {
      let path = null;
      for (let j = k; s.past[j] >= 0; j = s.past[j]) {
        const p = s.past[j];
        if (frame - s.at[p] > long) break;
        if (before.has(j) && j !== k) break;
        before.add(j);
        const gap = s.at[j] - s.at[p] > 1;
        path = grouped(gap ? dashed : tails, ink);
        path.moveTo(px(s, j), py(s, j));
        path.lineTo(px(s, p), py(s, p));
        if (s.fate2[p] >= 0) fork(p);
      }
    };
    for (let k = first; k < last; k++) {
      const [x, y] = [px(s, k), py(s, k)];
      if (!seen(x, y, 200)) continue;
      const ink = inkOf(s, k);
      if (tail) walk(k, ink, tail);
      let [a, b, turn] = s.longest === null
        ? [s.radius * scale, s.radius * scale, 0]
        : [s.long[k] / 255 * s.longest / s.side * scale, s.wide[k] / 255 * s.longest / s.side * scale, s.turn[k] * Math.PI / 255];
      if (s.deep) { const z = 0.55 + 0.9 * s.z[k] / FULL; a *= z; b *= z; }
      if (a < 1.6) {
        grouped(dots, ink).rect(x - 1.5, y - 1.5, 3, 3);
      } else {
        const path = grouped(cells, ink);
        path.moveTo(x + a * Math.cos(turn), y + a * Math.sin(turn));
        path.ellipse(x, y, a, Math.max(b, 0.8), turn, 0, 2 * Math.PI);
      }
      if (s.fate2[k] >= 0) fork(k);
    }
    // A cell that is missed here: dashed on its way.
    for (let k = s.start[Math.min(frame + 1, s.frames)]; k < (s.start[Math.min(frame + 6, s.frames)] ?? s.n); k++) {
      const p = s.past[k];
      if (p < 0 || s.at[p] >= frame || s.at[k] <= frame) continue;
      const path = grouped(dashed, inkOf(s, k));
      path.moveTo(px(s, k), py(s, k));
      path.lineTo(px(s, p), py(s, p));
      if (tail) walk(p, inkOf(s, k), tail);
    }
    if (movie.truth) {
      for (let k = s.start[Math.max(0, frame - 2)]; k < last; k++) {
        if (!s.wrong[k]) continue;
        const p = s.past[k], x = (px(s, k) + px(s, p)) / 2, y = (py(s, k) + py(s, p)) / 2;
        wrong.moveTo(px(s, k), py(s, k));
        wrong.lineTo(px(s, p), py(s, p));
        for (const d of [-5, 5]) { wrong.moveTo(x - 5, y - d); wrong.lineTo(x + 5, y + d); }
      }
      for (const [a, b] of s.missed) {
        if (s.at[b] > frame || s.at[b] < frame - 2) continue;
        missed.moveTo(px(s, a), py(s, a));
        missed.lineTo(px(s, b), py(s, b));
      }
    }
    pen.lineCap = "round";
    if (of >= 0) { // the chosen family has a halo
      pen.strokeStyle = paint.mark;
      pen.lineWidth = 9;
      const halo = new Path2D();
      for (let k = 0; k < last; k++) {
        if (lineages(s, s.track[k]) !== of || s.past[k] < 0) continue;
        halo.moveTo(px(s, k), py(s, k));
        halo.lineTo(px(s, s.past[k]), py(s, s.past[k]));
      }
      pen.stroke(halo);
      pen.strokeStyle = paint.faint;
      pen.lineWidth = 1.2;
      pen.stroke(halo);
    }
    pen.lineWidth = 1.8;
    pen.globalAlpha = all ? 0.5 : 0.8;
    for (const [ink, path] of tails) { pen.strokeStyle = ink; pen.stroke(path); }
    pen.setLineDash([5, 4]);
    for (const [ink, path] of dashed) { pen.strokeStyle = ink; pen.stroke(path); }
    pen.setLineDash([]);
    pen.lineWidth = 1.3;
    for (const [ink, path] of cells) {
      pen.globalAlpha = ink === paint.lone ? 0.16 : 0.3;
      pen.fillStyle = ink;
      pen.fill(path);
      pen.globalAlpha = 1;
      pen.strokeStyle = ink;
      pen.stroke(path);
    }
    pen.globalAlpha = 1;
    for (const [ink, path] of dots) { pen.fillStyle = ink; pen.fill(path); }
    pen.fillStyle = paint.ink;
    pen.fill(forks);
    pen.strokeStyle = paint.alarm;
    pen.lineWidth = 2;
    pen.stroke(wrong);
    pen.setLineDash([1, 5]);
    pen.stroke(missed);
    pen.setLineDash([]);
    if (doubt >= 0) arrows(s);
    ring(s);
    scaleBar(s, h);
    $("slider").value = frame;
    const word = `frame ${s.first + frame}`;
    $("now").textContent = word;
    $("slider").setAttribute("aria-valuetext", word);
    film.setAttribute("aria-label",
      `Movie of the tracks, ${word}: ${last - first} objects, ${s.divided[frame]} divide, ` +
      `${s.came[frame]} appear, ${s.went[frame]} disappear after it`);
    for (const at of document.querySelectorAll(".charts .at")) {
      const x = s.frames > BARS ? 36 + 254 * frame / (s.frames - 1) : 36 + 254 * (frame + 0.5) / s.frames;
      at.setAttribute("x1", x);
      at.setAttribute("x2", x);
    }
    drawTree();
  }

  // The link that is looked at, and what else may have been.
  function arrows(s) {
    const b = doubt, a = s.past[b];
    let lower = -7; // labels do not cover each other
    const line = (p, q, ink, dash, text) => {
      pen.setLineDash(dash);
      pen.strokeStyle = ink;
      pen.lineWidth = 2.6;
      pen.beginPath();
      pen.moveTo(px(s, p), py(s, p));
      pen.lineTo(px(s, q), py(s, q));
      pen.stroke();
      pen.setLineDash([]);
      const [x, y] = [(px(s, p) + px(s, q)) / 2, (py(s, p) + py(s, q)) / 2];
      pen.font = "600 13px system-ui, sans-serif";
      pen.lineWidth = 4;
      pen.strokeStyle = paint.field;
      pen.strokeText(text, x + 7, y + lower);
      pen.fillStyle = ink;
      pen.fillText(text, x + 7, y + lower);
      lower += 14;
    };
    for (const k of [a, s.other[b]]) if (k >= 0 && s.at[k] !== frame) ghost(s, k);
    for (const k of [b, s.else[b]]) if (k >= 0 && s.at[k] !== frame) ghost(s, k);
    if (s.other[b] >= 0) line(s.other[b], b, paint.alarm, [6, 4], percent(s.other_chance[b]));
    if (s.else[b] >= 0) line(a, s.else[b], paint.alarm, [6, 4], percent(s.else_chance[b]));
    line(a, b, paint.link, [], percent(s.chance[b]));
  }

  function ghost(s, k) {
    pen.strokeStyle = paint.faint;
    pen.lineWidth = 1.4;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.arc(px(s, k), py(s, k), Math.max(6, 0.35 * s.spacing * scale * 0.5), 0, 7);
    pen.stroke();
    pen.setLineDash([]);
  }

  function ring(s) {
    if (chosen < 0) return;
    let k = -1; // the chosen track in this frame
    for (let j = s.start[frame]; j < s.start[frame + 1]; j++) if (s.track[j] === s.track[chosen]) k = j;
    if (k < 0) return;
    pen.strokeStyle = paint.ink;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.arc(px(s, k), py(s, k), Math.max(9, s.longest === null ? 9 : s.long[k] / 255 * s.longest / s.side * scale + 5), 0, 7);
    pen.stroke();
  }

  function scaleBar(s, h) {
    const unit = s.side / scale * 90, power = 10 ** Math.floor(Math.log10(unit));
    const length = [5, 2, 1].map((m) => m * power).find((v) => v <= unit) ?? power;
    const wide = length * scale / s.side;
    pen.strokeStyle = pen.fillStyle = paint.ink;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.moveTo(14, h - 12);
    pen.lineTo(14 + wide, h - 12);
    pen.stroke();
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(few(length), 14, h - 18);
  }

  // ------------------------------------------------------------------ the lineage

  let layout = { step: 4, high: 12, left: 8 };

  function setTree() {
    const s = now, choice = $("row-height").value, only = $("only-families").checked;
    let rows = s.rows;
    if (only) {
      rows = 1;
      for (let i = 0; i < s.t_row.length; i++) if (s.t_family[i] >= 0) rows = Math.max(rows, s.t_row[i] / 4 + 1);
    }
    layout.high = choice === "fit" ? Math.max((box.clientHeight - 34) / (rows + 0.5), 0.02) : Number(choice);
    layout.rows = rows;
    $("tree-size").style.height = `${Math.max(0, layout.high * (rows + 1) + 30 - box.clientHeight)}px`;
    drawTree();
  }

  function drawTree() {
    const s = now, w = box.clientWidth, h = box.clientHeight, only = $("only-families").checked;
    if (!w) return;
    fit(tree, brush, w, h);
    tree.style.width = `${w}px`;
    tree.style.height = `${h}px`;
    const off = box.scrollTop, high = layout.high, margin = 10;
    layout.step = (w - 2 * margin) / Math.max(s.frames, 1);
    const x = (t) => margin + layout.step * (t + 0.5);
    const y = (i) => 26 + high * (s.t_row[i] / 4 + 0.5) - off;
    layout.x = x;
    layout.y = y;
    brush.clearRect(0, 0, w, h);
    const of = chosen >= 0 ? lineages(s, s.track[chosen]) : -1;
    const groups = new Map(), halo = new Path2D(), dots = new Path2D();
    for (let i = 0; i < s.t_row.length; i++) {
      if (only && s.t_family[i] < 0) continue;
      const parent = s.t_parent[i], at = y(i);
      const up = parent >= 0 ? y(parent) : at;
      if (Math.max(at, up) < 0 || Math.min(at, up) > h) continue;
      const k = s.head[i];
      const ink = k < 0 ? paint.lone : $("colour").value === "chance" ? (s.t_family[i] < 0 ? paint.lone : paint.family[s.t_family[i] % 5]) : inkOf(s, k);
      const path = grouped(groups, ink);
      const from = parent >= 0 ? x(s.t_end[parent]) + layout.step / 2 : x(s.t_begin[i]) - 0.3 * layout.step;
      const to = x(s.t_end[i]) + (s.daughters[i].length ? 0.5 : 0.3) * layout.step;
      for (const p of lineages(s, i) === of ? [path, halo] : [path]) {
        if (parent >= 0) { p.moveTo(from, up); p.lineTo(from, at); } else p.moveTo(from, at);
        p.lineTo(Math.max(to, from + 1.5), at);
      }
      if (s.daughters[i].length && high > 2) {
        dots.moveTo(to + 2.4, at);
        dots.arc(to, at, 2.4, 0, 7);
      }
    }
    brush.strokeStyle = paint.mark;
    brush.lineWidth = Math.max(6, Math.min(high, 10));
    brush.stroke(halo);
    brush.lineWidth = high > 8 ? 2.2 : high > 2.5 ? 1.5 : 1;
    for (const [ink, path] of groups) { brush.strokeStyle = ink; brush.stroke(path); }
    brush.fillStyle = paint.ink;
    brush.fill(dots);
    if (high >= 12) {
      brush.font = "10px system-ui, sans-serif";
      brush.fillStyle = paint.faint;
      for (let i = 0; i < s.t_row.length; i++) {
        const at = y(i);
        if (at < 0 || at > h || (only && s.t_family[i] < 0) || (s.t_family[i] < 0 && s.t_end[i] - s.t_begin[i] < 1)) continue;
        brush.fillText(String(s.t_name[i]), x(s.t_begin[i]) - 0.2 * layout.step + 1, at - 2);
      }
    }
    // The ruler stays in view.
    brush.fillStyle = paint.field;
    brush.fillRect(0, 0, w, 18);
    brush.fillStyle = paint.faint;
    brush.font = "11px system-ui, sans-serif";
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000].find((v) => v * layout.step > 44) ?? 10000;
    for (let t = 0; t < s.frames; t++) {
      if ((s.first + t) % every === 0) brush.fillText(String(s.first + t), x(t) - 4, 12);
    }
    brush.strokeStyle = paint.ink;
    brush.globalAlpha = 0.55;
    brush.setLineDash([3, 2]);
    brush.lineWidth = 1.2;
    brush.beginPath();
    brush.moveTo(x(frame), 16);
    brush.lineTo(x(frame), h);
    brush.stroke();
    brush.setLineDash([]);
    brush.globalAlpha = 1;
  }

  function showTrack(i) { // scroll the lineage to a track
    const s = now, at = 26 + layout.high * (s.t_row[i] / 4 + 0.5);
    if (at < box.scrollTop + 30 || at > box.scrollTop + box.clientHeight - 20) {
      box.scrollTop = Math.max(0, at - box.clientHeight / 2);
    }
  }

  // ------------------------------------------------------------------ a cell

  function element(tag, text, ...children) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  }

  function goTo(text, k) {
    const button = element("button", text);
    button.type = "button";
    button.addEventListener("click", () => choose(k, true));
    return button;
  }

  function choose(k, jump = false, link = -1) {
    chosen = k;
    doubt = link;
    if (k >= 0 && jump) {
      stop();
      frame = now.at[k];
      if (link >= 0) look(now, link);
      else bring(now, k);
    }
    if (k >= 0) showTrack(now.track[k]);
    tellCell();
    markRow();
    draw();
  }

  // Zoom to a link and its alternatives.
  function look(s, b) {
    const some = [b, s.past[b], s.other[b], s.else[b]].filter((k) => k >= 0);
    const xs = some.map((k) => s.x[k] / FULL), ys = some.map((k) => s.y[k] / FULL);
    const wide = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys), 2.5 * s.spacing);
    scale = Math.min(film.clientWidth, film.clientHeight) / (1.8 * wide);
    centre((Math.max(...xs) + Math.min(...xs)) / 2, (Math.max(...ys) + Math.min(...ys)) / 2);
  }

  function centre(x, y) {
    left = film.clientWidth / 2 - scale * x;
    top = film.clientHeight / 2 - scale * y;
  }

  function bring(s, k) { // into view
    const [x, y] = [px(s, k), py(s, k)], by = 30;
    if (x < by || y < by || x > film.clientWidth - by || y > film.clientHeight - by) centre(s.x[k] / FULL, s.y[k] / FULL);
  }

  function tellCell() {
    const place = $("cell-text"), s = now, k = chosen;
    if (k < 0) {
      place.replaceChildren(element("p", "Click a cell in the movie, a track in the lineage, or a link in the list."));
      place.firstChild.className = "note";
      return;
    }
    const i = s.track[k], list = document.createElement("dl");
    const add = (name, ...what) => list.append(element("dt", name), element("dd", "", ...what));
    const where = [s.low[0] + s.side * s.x[k] / FULL, s.low[1] + s.side * s.y[k] / FULL].map(few);
    if (s.deep) where.push(few(s.deep[0] + (s.deep[1] - s.deep[0]) * s.z[k] / FULL));
    add("object", `${called(s, k)}, at ${where.join(", ")}`);
    add("track", `${s.t_name[i]}, frames ${s.first + s.t_begin[i]} to ${s.first + s.t_end[i]} `,
      goTo("begin", s.head[i]), " ", goTo("end", s.foot[i]));
    const parent = s.t_parent[i];
    if (parent >= 0) add("mother", goTo(`track ${s.t_name[parent]}`, s.foot[parent]));
    const born = s.daughters[i].filter((d) => s.head[d] >= 0);
    if (born.length) add("daughters", ...born.flatMap((d) => [goTo(`track ${s.t_name[d]}`, s.head[d]), " "]));
    for (const [name, b] of [["came from", k], ["goes to", s.fate[k]], ["and to", s.fate2[k]]]) {
      if (b < 0) continue;
      const other = name === "came from" ? s.past[b] : b;
      if (other < 0) { add(name, s.at[k] ? "nowhere: it appears here" : "before the movie"); continue; }
      const said = [goTo(called(s, other), other)];
      if (s.at[b] - s.at[s.past[b]] > 1) said.push(` over ${s.at[b] - s.at[s.past[b]] - 1} missed`);
      if (movie.likely) said.push(` ${percent(s.chance[b])}`);
      if (movie.likely && s.event[b] < s.chance[b] - 60) said.push(`, with its sister ${percent(s.event[b])}`);
      if (movie.truth && s.wrong[b]) said.push(" ", Object.assign(element("span", "wrong"), { className: "wrong" }));
      add(name, ...said);
      if (movie.likely) add("", alternatives(s, b));
    }
    if (s.fate[k] < 0) add("goes to", s.at[k] < s.frames - 1 || s.left_out[1] ? "nowhere: it is not seen again" : "after the movie");
    place.replaceChildren(list);
  }

  function alternatives(s, b) {
    const past = s.other[b] >= 0 ? `from ${called(s, s.other[b])}` : "it appeared";
    const fate = s.else[b] >= 0 ? `${called(s, s.past[b])} to ${called(s, s.else[b])}` : `${called(s, s.past[b])} disappeared`;
    return `or ${past} ${percent(s.other_chance[b])}; ${fate} ${percent(s.else_chance[b])}`;
  }

  // ------------------------------------------------------------------ the list

  let listed = [], shown = 0;

  function fillList() {
    if (!movie.likely) { $("doubts").hidden = true; return; }
    movie.sequences.forEach((one, i) => {
      const s = unpack(one);
      for (let k = 0; k < s.n; k++) if (s.past[k] >= 0) listed.push([s.chance[k], i, k]);
    });
    listed.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    listed = listed.slice(0, movie.listed);
    const several = movie.sequences.length > 1;
    const head = [...(several ? ["sequence"] : []), "probability", "from", "to", "it may have come from", "or gone to", ...(movie.truth ? ["truth"] : [])];
    const table = element("table", "", element("thead", "", element("tr", "", ...head.map((t) => element("th", t)))), element("tbody"));
    const more = element("button", "");
    more.type = "button";
    more.addEventListener("click", () => fillRows(table, more, 100));
    $("doubts").replaceChildren(table, more);
    fillRows(table, more, 30);
  }

  function fillRows(table, more, n) {
    for (const [p, i, b] of listed.slice(shown, shown + n)) {
      const s = movie.sequences[i], a = s.past[b], rank = shown++;
      const go = element("button", percent(p));
      go.type = "button";
      go.setAttribute("aria-label", `Look at the link from ${called(s, a)} to ${called(s, b)}, ${percent(p)}`);
      const bar = element("span", "", element("i"));
      bar.className = "bar";
      bar.firstChild.style.width = `${100 * p / FULL}%`;
      const past = s.other[b] < 0 ? "nowhere (appeared)" : called(s, s.other[b]);
      const fate = s.else[b] < 0 ? "nowhere (gone)" : called(s, s.else[b]);
      const row = element("tr", "",
        ...(movie.sequences.length > 1 ? [element("td", s.name || "(no name)")] : []),
        element("td", "", bar, go), element("td", called(s, a)), element("td", called(s, b)),
        element("td", `${past}, ${percent(s.other_chance[b])}`),
        element("td", `${fate}, ${percent(s.else_chance[b])}`),
        ...(movie.truth ? [element("td", s.wrong[b] ? "wrong" : "right")] : []));
      if (movie.truth && s.wrong[b]) row.lastChild.className = "wrong";
      row.dataset.rank = rank;
      row.addEventListener("click", () => visit(rank));
      table.tBodies[0].append(row);
    }
    more.textContent = `${listed.length - shown} more`;
    more.hidden = shown >= listed.length;
  }

  let rank = -1;
  function visit(next) {
    if (next < 0 || next >= listed.length) return;
    rank = next;
    const [, i, b] = listed[next];
    if (i !== sequence) open(i);
    choose(b, true, b);
    if (film.getBoundingClientRect().bottom < 80 || film.getBoundingClientRect().top > innerHeight - 80) {
      film.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
    }
  }

  function markRow() {
    for (const row of document.querySelectorAll("#doubts tr.here")) row.classList.remove("here");
    if (doubt < 0 || rank < 0) return;
    document.querySelector(`#doubts tr[data-rank="${rank}"]`)?.classList.add("here");
  }

  // ------------------------------------------------------------------ charts

  const SVG = "http://www.w3.org/2000/svg";
  function shape(tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function chart(title, values, edges, moving) {
    const svg = shape("svg", { viewBox: "0 0 300 150", role: "img", "aria-label": title });
    const most = Math.max(...values, 1), y = (v) => 122 - 108 * v / most;
    svg.append(shape("line", { class: "axis", x1: 36, x2: 290, y1: 122, y2: 122 }));
    for (const v of [0, most]) svg.append(shape("text", { x: 31, y: y(v) + 4, "text-anchor": "end" }, few(v)));
    const n = values.length, width = 254 / n;
    if (moving && n > BARS) {
      const points = values.map((v, t) => `${(36 + 254 * t / Math.max(n - 1, 1)).toFixed(1)},${y(v).toFixed(1)}`);
      svg.append(shape("path", { class: "line", d: `M${points.join("L")}` }));
    } else {
      values.forEach((v, t) => svg.append(shape("rect", {
        class: "bars", x: (36 + width * t + 0.1 * width).toFixed(2), width: (0.8 * width).toFixed(2),
        y: y(v).toFixed(1), height: (122 - y(v)).toFixed(1),
      })));
    }
    svg.append(shape("text", { x: 36, y: 140 }, few(edges[0])));
    svg.append(shape("text", { x: 290, y: 140, "text-anchor": "end" }, few(edges[1])));
    svg.append(shape("text", { x: 163, y: 140, "text-anchor": "middle" }, edges[2]));
    if (moving) svg.append(shape("line", { class: "at", x1: 36, x2: 36, y1: 12, y2: 122 }));
    return element("figure", "", element("figcaption", title), svg);
  }

  function charts() {
    const s = now, time = [s.first, s.first + s.frames - 1, "frame"];
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    const of = (h, name) => [h.edges[0], h.edges[h.edges.length - 1], name];
    const lengths = { ...s.lengths, edges: s.lengths.edges.map((e) => e + 0.5) };
    lengths.edges[lengths.edges.length - 1] -= 1;
    $("charts").replaceChildren(
      chart("Cells", s.counts, time, true),
      chart(`Divisions: ${sum(s.divided)}`, s.divided, time, true),
      chart(`Appear: ${sum(s.came)}`, s.came, time, true),
      chart(`Disappear: ${sum(s.went)}`, s.went, time, true),
      chart(`Length of tracks: median ${few(s.lengths.median)}`, s.lengths.counts, of(lengths, "frames"), false),
      chart(`Way from frame to frame: median ${few(s.speeds.median)}`, s.speeds.counts, of(s.speeds, "units of x and y"), false),
    );
  }

  // ------------------------------------------------------------------ driving

  function step(by) {
    stop();
    frame = Math.min(now.frames - 1, Math.max(0, frame + by));
    draw();
  }

  function tick() {
    clearTimeout(timer);
    $("play").textContent = playing ? "pause" : "play";
    $("play").setAttribute("aria-pressed", String(playing));
    if (!playing) return;
    timer = setTimeout(() => {
      frame = frame >= now.frames - 1 ? 0 : frame + 1;
      draw();
      tick();
    }, frame >= now.frames - 1 ? 1200 : 1000 / Number($("speed").value));
  }

  function stop() { playing = false; tick(); }
  function toggle() { playing = !playing; tick(); }

  function zoom(by, x = film.clientWidth / 2, y = film.clientHeight / 2) {
    const next = Math.min(Math.max(scale * by, 20), 4e6);
    left = x - (x - left) * next / scale;
    top = y - (y - top) * next / scale;
    scale = next;
    draw();
  }

  function nearest(x, y) {
    const s = now;
    let best = -1, least = Infinity;
    for (let k = s.start[frame]; k < s.start[frame + 1]; k++) {
      const d = Math.hypot(px(s, k) - x, py(s, k) - y);
      if (d < least) { least = d; best = k; }
    }
    const reach = best >= 0 && s.longest !== null ? s.long[best] / 255 * s.longest / s.side * scale : 0;
    return least < Math.max(14, reach + 4) ? best : -1;
  }

  function open(i) {
    sequence = i;
    now = unpack(movie.sequences[i]);
    if ($("sequence")) $("sequence").value = String(i);
    $("slider").max = now.frames - 1;
    frame = Math.min(frame, now.frames - 1);
    chosen = doubt = -1;
    wholeView();
    charts();
    setTree();
    tellCell();
    key();
    box.scrollTop = 0;
  }

  const pointers = new Map();
  let moved = 0, apart = 0;
  film.addEventListener("pointerdown", (e) => {
    film.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
    moved = 0;
    apart = 0;
    film.classList.add("moving");
  });
  film.addEventListener("pointermove", (e) => {
    const old = pointers.get(e.pointerId);
    if (!old) return;
    const [dx, dy] = [e.offsetX - old[0], e.offsetY - old[1]];
    pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
    moved += Math.abs(dx) + Math.abs(dy);
    if (pointers.size > 1) {
      const [[ax, ay], [bx, by]] = [...pointers.values()];
      const distance = Math.hypot(ax - bx, ay - by);
      if (apart) zoom(distance / apart, (ax + bx) / 2, (ay + by) / 2);
      apart = distance;
    } else if (moved > 4) {
      left += dx;
      top += dy;
      draw();
    }
  });
  const lifted = (e) => {
    pointers.delete(e.pointerId);
    film.classList.remove("moving");
  };
  film.addEventListener("pointerup", (e) => {
    const click = pointers.size === 1 && moved <= 4;
    lifted(e);
    if (click) choose(nearest(e.offsetX, e.offsetY));
  });
  film.addEventListener("pointercancel", lifted);
  film.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return; // else the page scrolls
    e.preventDefault();
    zoom(Math.exp(-e.deltaY / 250), e.offsetX, e.offsetY);
  }, { passive: false });
  film.addEventListener("dblclick", (e) => zoom(2, e.offsetX, e.offsetY));

  tree.addEventListener("click", (e) => {
    const s = now, t = Math.round((e.offsetX - 10) / layout.step - 0.5);
    let best = -1, least = Math.max(9, layout.high);
    for (let i = 0; i < s.t_row.length; i++) {
      if ($("only-families").checked && s.t_family[i] < 0) continue;
      const away = Math.abs(layout.y(i) - e.offsetY) + layout.step * Math.max(s.t_begin[i] - t, t - s.t_end[i], 0);
      if (away < least) { least = away; best = i; }
    }
    stop();
    frame = Math.min(now.frames - 1, Math.max(0, t));
    if (best < 0) { draw(); return; }
    let k = s.head[best];
    for (let j = s.start[frame]; j < s.start[frame + 1]; j++) if (s.track[j] === best) k = j;
    if (k < 0) { draw(); return; }
    bring(s, k);
    choose(k);
  });
  box.addEventListener("scroll", () => drawTree());

  $("play").addEventListener("click", toggle);
  $("back").addEventListener("click", () => step(-1));
  $("on").addEventListener("click", () => step(1));
  $("closer").addEventListener("click", () => zoom(1.5));
  $("wider").addEventListener("click", () => zoom(1 / 1.5));
  $("whole").addEventListener("click", () => { wholeView(); draw(); });
  $("slider").addEventListener("input", () => { stop(); frame = Number($("slider").value); draw(); });
  $("sequence")?.addEventListener("change", () => { stop(); frame = 0; open(Number($("sequence").value)); draw(); });
  for (const id of ["colour", "tail"]) $(id).addEventListener("change", () => { key(); draw(); });
  for (const id of ["row-height", "only-families"]) $(id).addEventListener("change", setTree);

  document.addEventListener("keydown", (e) => {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const on = e.target instanceof Element ? e.target.tagName : "";
    const typing = on === "SELECT" || on === "TEXTAREA" || (on === "INPUT" && e.target.type !== "range");
    if (typing) return;
    const press = on === "BUTTON" || on === "SUMMARY" || on === "A";
    const scrolls = e.target === box;
    const does = {
      " ": () => !press && toggle(), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
      Home: () => !scrolls && step(-now.frames), End: () => !scrolls && step(now.frames),
      "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5),
      0: () => { wholeView(); draw(); }, Escape: () => choose(-1),
      n: () => visit(rank + 1), p: () => visit(rank - 1),
    }[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (does && does() !== false) e.preventDefault();
  });

  function key() {
    const how = $("colour").value;
    const words = {
      family: "Colours are families; grey cells neither divide nor come from a division.",
      track: "Each track has a colour of its own.",
      chance: "Colours say how sure the link is that leads to a cell: blue above 99 %, violet above 90 %, orange above 50 %, red below; grey: no link.",
    };
    $("key").textContent = `${words[how]} Dots are divisions${now.past.some((p, k) => p >= 0 && now.at[k] - now.at[p] > 1) ? ", dashed lines frames in which a cell was missed" : ""}${now.deep ? "; nearer in z is larger" : ""}.`;
  }

  if (!movie.likely) $("colour").querySelector('[value="chance"]').remove();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { palette(); draw(); });
  let width = 0;
  addEventListener("resize", () => {
    if (film.clientWidth !== width) { width = film.clientWidth; wholeView(); }
    setTree();
    draw();
  });
  palette();
  open(0);
  frame = Math.min(8, now.frames - 1);
  width = film.clientWidth;
  fillList();
  draw();
  window.trellisMovie = () => ({ frame: now.first + frame, chosen, doubt, sequence, playing, scale, listed: listed.length });
})();
