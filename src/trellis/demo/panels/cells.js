"use strict";
// The movie of the panel «Cells»: draws a frame as SVG, and goes from frame to frame.
(() => {
  const box = document.getElementById("cells-movie");
  const movie = JSON.parse(document.getElementById("cells-data").textContent);
  const picture = box.querySelector("svg");
  const [button, slider, output] = ["button", "input[type=range]", "output"].map((s) => box.querySelector(s));
  const tree = document.getElementById("cells-tree"), now = document.getElementById("cells-now");
  const last = movie.frames.length - 1;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let frame = still ? movie.telling : 0, tracker = "learned", playing = !still, seen = true, timer = 0;

  picture.setAttribute("viewBox", `0 0 ${movie.side} ${movie.side}`);

  // Where each cell came from: the tracker's links backwards, right or wrong.
  const pasts = {};
  for (const [name, steps] of Object.entries(movie.trackers)) {
    pasts[name] = steps.map((s) => new Map([...s.right, ...s.wrong].map(([a, b]) => [b, a])));
  }

  const line = (kind, p, q, fade) =>
    `<path class="${kind}" opacity="${fade}" d="M${p[0]},${p[1]}L${q[0]},${q[1]}"/>`;

  function draw() {
    const { frames, trackers, tail } = movie, steps = trackers[tracker], past = pasts[tracker];
    const tails = [], dots = new Set(), marks = [];
    const cells = frames[frame].map(([x, y, a, b, turn, family]) =>
      `<ellipse class="f${family}" rx="${a}" ry="${b}" transform="translate(${x} ${y}) rotate(${turn})"/>`);
    frames[frame].forEach((_, cell) => {
      for (let t = frame, j = cell; t > 0 && t > frame - tail; t--) {
        const i = past[t].get(j);
        if (i === undefined) break;
        const [p, q] = [frames[t - 1][i], frames[t][j]];
        tails.push(line(`tail f${q[5]}`, p, q, (1 - 0.8 * (frame - t) / tail).toFixed(2)));
        if (steps[t].divides.includes(i)) dots.add(`<circle class="dot" cx="${p[0]}" cy="${p[1]}" r="1.8"/>`);
        j = i;
      }
    });
    // Mistakes stay for a few frames, or nobody would see them.
    for (let t = Math.max(1, frame - 2); t <= frame; t++) {
      const fade = [1, 0.55, 0.3][frame - t];
      for (const kind of ["missed", "wrong"]) {
        for (const [i, j] of steps[t][kind]) {
          const [p, q] = [frames[t - 1][i], frames[t][j]];
          const [x, y] = [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2];
          marks.push(`<circle class="halo" opacity="${fade * 0.8}" cx="${x}" cy="${y}" r="6"/>`, line(kind, p, q, fade));
          if (kind === "wrong") {
            marks.push(`<path class="wrong" opacity="${fade}" d="M${x - 2.6},${y - 2.6}l5.2,5.2m0,-5.2l-5.2,5.2"/>`);
          }
        }
      }
    }
    picture.innerHTML = [...cells, ...tails, ...dots, ...marks].join("");
    slider.value = frame;
    output.textContent = `frame ${frame} of ${last}`;
    const x = movie.tree.left + movie.tree.step * frame;
    now.setAttribute("x1", x);
    now.setAttribute("x2", x);
  }

  function go() {
    clearTimeout(timer);
    button.textContent = playing ? "pause" : "play";
    if (!playing || !seen) return;
    timer = setTimeout(() => {
      frame = frame === last ? 0 : frame + 1;
      draw();
      go();
    }, frame === last ? 2000 : 650);
  }

  function show(chosen) {
    playing = false;
    frame = Math.min(last, Math.max(0, chosen));
    draw();
    go();
  }

  button.addEventListener("click", () => { playing = !playing; go(); });
  slider.addEventListener("input", () => show(Number(slider.value)));
  for (const choice of box.querySelectorAll("input[type=radio]")) {
    choice.addEventListener("change", () => { tracker = choice.value; draw(); });
    if (choice.checked) tracker = choice.value; // some browsers keep a choice when a page is loaded again
  }
  tree.addEventListener("click", (event) => {
    const at = event.offsetX / tree.clientWidth * tree.viewBox.baseVal.width;
    show(Math.round((at - movie.tree.left) / movie.tree.step));
  });
  if ("IntersectionObserver" in window) {
    new IntersectionObserver(([entry]) => { seen = entry.isIntersecting; go(); }).observe(box);
  }
  draw();
  go();
})();
