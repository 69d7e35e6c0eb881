"use strict";
// The model of this panel, in the page: features, forward-backward, best words and reasons, as
// Trellis computes them in Python. Weights are 16-bit numbers, so the last digits differ.
{
  const model = JSON.parse(document.getElementById("words-model").textContent);
  const L = model.labels.length;
  const FIRST = model.labels.map((label) => label === "B" || label === "S");

  const decode = (text, scale) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return Float64Array.from(new Int16Array(bytes.buffer), (x) => x * scale);
  };
  const node = decode(model.node, model.node_scale);
  const edge = decode(model.edge, model.edge_scale);
  const number = new Map(model.names.split("\n").map((name, i) => [name, i]));
  const lexicon = new Set(model.words.split(" "));
  const longest = model.longest;

  // A template is a test of two letters, a flag, or a conjunction of letters and lengths of words.
  const term = (text) => {
    const [, part, offset] = /^(?:char|lexicon\(char, "(\w+)"\))(?:\[(-?\d+)\])?$/.exec(text);
    return { text, part, offset: Number(offset || 0) };
  };
  const templates = model.templates.map((text) => {
    if (text === "bos" || text === "eos") return { flag: text };
    if (text.includes(" == ")) return { name: text, equal: text.split(" == ").map(term) };
    return { terms: text.split(" & ").map(term) };
  });

  // Length, at most 5, of the longest word that starts, ends or goes on at each letter.
  const lengths = (letters) => {
    const n = letters.length;
    const found = { start: Array(n).fill(1), end: Array(n).fill(1), inside: Array(n).fill(1) };
    for (let t = 0; t < n; t++) {
      for (let k = 2; k <= Math.min(longest, n - t); k++) {
        if (!lexicon.has(letters.slice(t, t + k))) continue;
        found.start[t] = Math.max(found.start[t], k);
        found.end[t + k - 1] = Math.max(found.end[t + k - 1], k);
        for (let u = t + 1; u < t + k - 1; u++) found.inside[u] = Math.max(found.inside[u], k);
      }
    }
    return found;
  };

  const featuresOf = (letters) => {
    const found = lengths(letters);
    const n = letters.length;
    return Array.from(letters, (_, t) => {
      const ids = [];
      const add = (name) => { if (number.has(name)) ids.push([number.get(name), name]); };
      for (const { flag, equal, name, terms } of templates) {
        if (flag) {
          if (flag === "bos" ? t === 0 : t === n - 1) add(flag);
        } else if (equal) {
          const [a, b] = equal.map(({ offset }) => letters[t + offset]);
          if (a !== undefined && a === b) add(name);
        } else if (terms.every(({ offset }) => t + offset >= 0 && t + offset < n)) {
          add(terms.map(({ text, part, offset }) => {
            const at = t + offset;
            return `${text}=${part ? Math.min(found[part][at], 5) : letters[at]}`;
          }).join(" & "));
        }
      }
      return ids;
    });
  };

  const logSum = (values) => {
    const top = Math.max(...values);
    return top + Math.log(values.reduce((sum, v) => sum + Math.exp(v - top), 0));
  };

  const analyse = (letters) => {
    const features = featuresOf(letters);
    const n = letters.length;
    const score = features.map((ids) => model.labels.map(
      (_, y) => ids.reduce((sum, [f]) => sum + node[f * L + y], 0)));
    const pair = features.map((ids) => Array.from({ length: L * L }, (_, q) =>
      ids.reduce((sum, [f]) => sum + edge[f * L * L + q], model.transitions[q])));
    const all = [...Array(L).keys()];
    const alpha = [score[0]], best = [score[0]], back = [];
    for (let t = 1; t < n; t++) {
      alpha.push(all.map((y) => score[t][y] + logSum(all.map((x) => alpha[t - 1][x] + pair[t][x * L + y]))));
      const from = all.map((y) => all.map((x) => best[t - 1][x] + pair[t][x * L + y]));
      back.push(from.map((row) => row.indexOf(Math.max(...row))));
      best.push(all.map((y) => score[t][y] + Math.max(...from[y])));
    }
    const beta = Array(n);
    beta[n - 1] = all.map(() => 0);
    for (let t = n - 2; t >= 0; t--) {
      beta[t] = all.map((x) => logSum(all.map((y) => pair[t + 1][x * L + y] + score[t + 1][y] + beta[t + 1][y])));
    }
    const total = logSum(alpha[n - 1]);
    const marginal = alpha.map((row, t) => row.map((a, y) => Math.exp(a + beta[t][y] - total)));
    const labels = Array(n);
    labels[n - 1] = best[n - 1].indexOf(Math.max(...best[n - 1]));
    for (let t = n - 1; t > 0; t--) labels[t - 1] = back[t - 1][labels[t]];

    // A word is what lies between two letters that begin one; its probability is that of its path.
    const starts = labels.map((y, t) => t === 0 || FIRST[y] || "ES".includes(model.labels[labels[t - 1]]));
    const words = [];
    for (let t = 0; t < n; t++) {
      if (starts[t]) words.push({ begin: t, end: t + 1 });
      else words[words.length - 1].end = t + 1;
    }
    for (const word of words) {
      const { begin, end } = word;
      let path = alpha[begin][labels[begin]];
      for (let t = begin + 1; t < end; t++) path += pair[t][labels[t - 1] * L + labels[t]] + score[t][labels[t]];
      word.chance = Math.exp(path + beta[end - 1][labels[end - 1]] - total);
      word.text = letters.slice(begin, end);
    }

    // Why: each feature's part in the lead over the next best label, neighbours as they are.
    const why = labels.map((y, t) => {
      const share = (f, z) => node[f * L + z]
        + (t > 0 ? edge[f * L * L + labels[t - 1] * L + z] : 0);
      const around = (z) => (t > 0 ? model.transitions[labels[t - 1] * L + z] : 0)
        + (t + 1 < n ? pair[t + 1][z * L + labels[t + 1]] : 0);
      const value = (z) => around(z) + features[t].reduce((sum, [f]) => sum + share(f, z), 0);
      const rival = all.filter((z) => z !== y).reduce((a, b) => (value(b) > value(a) ? b : a));
      const parts = features[t].map(([f, name]) => [name, share(f, y) - share(f, rival)]);
      parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
      return {
        letter: letters[t], label: model.labels[y], chance: marginal[t][y],
        rival: model.labels[rival], transitions: around(y) - around(rival), parts: parts.slice(0, 5),
      };
    });
    const begins = marginal.map((row) => row.reduce((sum, p, y) => sum + (FIRST[y] ? p : 0), 0));
    return { words, why, begins };
  };

  const box = document.getElementById("words-box");
  const shown = document.getElementById("words-answer");
  const reasons = document.getElementById("words-why");
  const MEANING = { B: "begins a word", M: "is inside a word", E: "ends a word", S: "is a word" };
  const percent = (p) => (p > 0.9995 ? "> 99.9 %" : `${(100 * p).toFixed(p < 0.1 ? 2 : 1)} %`);
  const element = (name, kind, text) => {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // A feature in plain words; its own name shows while the pointer is on it.
  const PLACE = { "-3": "three before", "-2": "two before", "-1": "before", 1: "after", 2: "two after", 3: "three after" };
  const known = (part, offset, length) => {
    const word = length === "1" ? "no known word" : `a known word of ${length}${length === "5" ? " or more" : ""} letters`;
    const where = offset === "1" ? "at the next letter" : offset === "-1" ? "at the letter before" : "here";
    return part === "inside" ? `${length === "1" ? "no known word" : word} goes on across it` : `${word} ${part}s ${where}`;
  };
  const inWords = (name) => {
    if (name === "bos" || name === "eos") return `the text ${name === "bos" ? "begins" : "ends"} here`;
    if (name.includes(" == ")) {
      const [a, b] = name.split(" == ").map((text) => term(text).offset);
      const place = (k) => (k ? `the letter ${PLACE[k]}` : "it");
      return `${place(a)} and ${place(b)} are the same`;
    }
    return name.split(" & ").map((text) => {
      const [, part, offset, value] = /^(?:char|lexicon\(char, "(\w+)"\))(?:\[(-?\d+)\])?=(.*)$/.exec(text);
      return part ? known(part, offset, value) : `«${value}» ${offset ? PLACE[offset] : "itself"}`;
    }).join(", ");
  };

  const explain = (why) => {
    reasons.replaceChildren();
    reasons.append(element("p", "", `«${why.letter}» ${MEANING[why.label]} (${percent(why.chance)}), `
      + `rather than that it ${MEANING[why.rival]}:`));
    const list = element("table", "why");
    const add = (value, words, name) => {
      const row = element("tr");
      row.title = name;
      row.append(element("td", "number", (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2)), element("td", "", words));
      list.append(row);
    };
    add(why.transitions, "the labels of its neighbours", "transitions");
    for (const [name, value] of why.parts) add(value, inWords(name), name);
    reasons.append(list);
  };

  const show = () => {
    const letters = box.value.toLowerCase().replace(/[^a-z]/g, "").slice(0, 200);
    shown.replaceChildren();
    reasons.replaceChildren();
    if (!letters) {
      shown.append(element("p", "note", "Type some letters: a to z, no spaces needed."));
      return;
    }
    const { words, why } = analyse(letters);
    for (const word of words) {
      const block = element("span", "word");
      block.style.setProperty("--sure", word.chance.toFixed(3));
      for (let t = word.begin; t < word.end; t++) {
        const letter = element("button", "letter", letters[t]);
        letter.type = "button";
        letter.setAttribute("aria-label", `why ${letters[t]}, letter ${t + 1}?`);
        letter.addEventListener("click", () => explain(why[t]));
        block.append(letter);
      }
      block.append(element("small", "", percent(word.chance)));
      shown.append(block);
    }
    const unsure = words.reduce((a, b) => (b.chance < a.chance ? b : a));
    explain(why[unsure.begin]);
  };

  box.addEventListener("input", show);
  for (const button of document.querySelectorAll("button.try")) {
    button.addEventListener("click", () => { box.value = button.textContent; show(); });
  }
  show();
  window.trellisWords = analyse; // for the tests, and for the curious
}
