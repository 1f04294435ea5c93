// Draws rows of tokens on one common axis. Knows text, places and pixels; nothing of rounds, models
// or where the tokens come from. Text from a model or a person only ever becomes a text node.
//
// A token is {start, end, label, control}: its places on the axis, and its bytes as text in which a
// lone surrogate U+DC80..U+DCFF stands for one byte that is no character (Python's surrogateescape).
// A `loose` one only begins at its place: it has another text than the rows above and divides nothing.
window.uagAxis = window.uagAxis || (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const PAD = 4; // pixels left and right of every stretch of text
  const SMALLEST = 16; // pixels of the narrowest token
  const MARKS = { " ": "·", "\n": "⏎", "\r": "␍", "\t": "→", "\u00a0": "⍽" };
  const UNSEEN = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cn}\p{Co}]$/u;
  const MARK_ALONE = /^[\p{M}]/u;
  const JOINS_BACK = /^[\p{M}\p{Emoji_Modifier}\u200d\ufe0e\ufe0f]$/u;
  const encoder = new TextEncoder();
  const segmenter = Intl.Segmenter ? new Intl.Segmenter("und", { granularity: "grapheme" }) : null;

  // Only a pointer that moves chooses a token: a page that scrolls or grows under a resting one
  // also reports it, and would take the line from the token that the keyboard is on.
  const pointer = { at: "", moved: false };
  document.addEventListener("mousemove", (event) => {
    const at = `${event.screenX},${event.screenY}`;
    pointer.moved = at !== pointer.at;
    pointer.at = at;
  }, true);

  const isByte = (code) => code >= 0xdc80 && code <= 0xdcff;
  const hex = (value, width) => value.toString(16).toUpperCase().padStart(width, "0");
  const pointSize = (code) => (isByte(code) || code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);

  // The bytes that a label stands for.
  function bytesOf(label) {
    const out = [];
    for (const char of label) {
      const code = char.codePointAt(0);
      if (isByte(code)) out.push(code - 0xdc00);
      else out.push(...encoder.encode(char));
    }
    return out;
  }

  // A label as runs of {kind: "text" | "mark" | "byte" | "code", text}: nothing in it is invisible.
  function runs(label) {
    const out = [];
    const add = (kind, text) => {
      const last = out[out.length - 1];
      if (last && last.kind === kind && kind !== "byte" && kind !== "code") last.text += text;
      else out.push({ kind, text });
    };
    const clusters = segmenter ? Array.from(segmenter.segment(label), (s) => s.segment) : Array.from(label);
    for (const cluster of clusters) {
      const code = cluster.codePointAt(0);
      const single = cluster.length === String.fromCodePoint(code).length;
      if (cluster === "\r\n") { add("mark", MARKS["\r"] + MARKS["\n"]); continue; }
      if (single && isByte(code)) add("byte", hex(code - 0xdc00, 2));
      else if (single && MARKS[cluster]) add("mark", MARKS[cluster]);
      else if (single && UNSEEN.test(cluster)) add("code", "U+" + hex(code, 4));
      else add("text", MARK_ALONE.test(cluster) ? "◌" + cluster : cluster);
    }
    return out;
  }

  // A label on one line that a person or a screen reader can read.
  function readable(label) {
    return runs(label).map((r) => (r.kind === "byte" ? `<${r.text}>` : r.kind === "code" ? `(${r.text})` : r.text)).join("");
  }

  // Divides a token's label at those inner `cuts` that lie between two characters of it.
  function pieces(token, cuts) {
    const whole = [{ start: token.start, end: token.end, label: token.label }];
    if (token.control || bytesOf(token.label).length !== token.end - token.start) return whole;
    const out = [];
    let start = token.start, place = token.start, label = "", before = "";
    for (const char of token.label) {
      const joined = JOINS_BACK.test(char) || before === "\u200d" || (before === "\r" && char === "\n");
      if (place > start && cuts.has(place) && !joined) {
        out.push({ start, end: place, label });
        start = place;
        label = "";
      }
      label += char;
      place += pointSize(char.codePointAt(0));
      before = char;
    }
    out.push({ start, end: place, label });
    return out;
  }

  const widths = new Map();
  let canvas = null;
  function textWidth(text, font) {
    const key = font + "\n" + text;
    let width = widths.get(key);
    if (width === undefined) {
      canvas = canvas || document.createElement("canvas").getContext("2d");
      canvas.font = font;
      width = canvas.measureText(text).width;
      if (widths.size > 20000) widths.clear();
      widths.set(key, width);
    }
    return width;
  }

  function pieceWidth(piece, fonts) {
    let width = 2 * PAD;
    for (const run of piece.runs) {
      const chip = run.kind === "byte" || run.kind === "code";
      width += textWidth(run.text, chip ? fonts.small : fonts.text) + (chip ? 7 : 0);
    }
    return Math.ceil(Math.max(width, SMALLEST));
  }

  function widthOf(token, at) {
    return token.loose ? token.pieces[0].width : at.get(token.end) - at.get(token.start);
  }

  // Pixels for every boundary, so that all rows' text fits and equal text stands below equal text.
  function layout(rows, fonts) {
    const cuts = new Set();
    for (const row of rows) for (const token of row) cuts.add(token.start).add(token.loose ? token.start : token.end);
    const places = Array.from(cuts).sort((a, b) => a - b);
    const ending = new Map(places.map((place) => [place, []]));
    for (const row of rows) {
      for (const token of row) {
        token.pieces = pieces(token, token.loose ? new Set() : cuts);
        for (const piece of token.pieces) {
          piece.runs = piece.label ? runs(piece.label) : [{ kind: "mark", text: "∅" }];
          piece.width = pieceWidth(piece, fonts);
          if (!token.loose) ending.get(piece.end).push(piece);
        }
      }
    }
    const at = new Map();
    let last = 0;
    for (const place of places) {
      let x = at.size ? last + 2 : 0;
      for (const piece of ending.get(place)) x = Math.max(x, (at.get(piece.start) ?? 0) + piece.width);
      at.set(place, x);
      last = x;
    }
    for (const row of rows) for (const token of row) last = Math.max(last, at.get(token.start) + widthOf(token, at));
    return { at, places, width: last };
  }

  function fontsOf(element) {
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize) || 14;
    return { text: `${size}px ${style.fontFamily}`, small: `${size * 0.72}px ${style.fontFamily}` };
  }

  function node(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function shape(tag, attributes) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  // The box of one token; `left` is the pixel that its line begins with.
  function box(token, plan, left) {
    const x = plan.at.get(token.start), width = widthOf(token, plan.at);
    const element = node("button", "uag-token");
    element.type = "button";
    element.style.left = `${x - left + 1}px`; // a pixel on either side parts neighbours
    element.style.width = `${width - 2}px`;
    if (token.control) element.classList.add("is-control");
    for (const piece of token.pieces) {
      const part = node("bdi", "uag-piece");
      part.dir = "ltr";
      part.style.left = `${plan.at.get(piece.start) - x + PAD - 2}px`;
      for (const run of piece.runs) part.append(node("span", `uag-run-${run.kind}`, run.text));
      element.append(part);
    }
    return element;
  }

  // Lines between tokens of two rows that cover the same bytes, and marks where both have a boundary.
  function connectors(upper, lower, links, shared, plan, left, width, height) {
    const svg = shape("svg", { width, height, class: "uag-links", "aria-hidden": "true" });
    for (const place of shared) {
      const x = plan.at.get(place) - left;
      if (x < -1 || x > width + 1) continue;
      svg.append(shape("line", { x1: x, x2: x, y1: 0, y2: height, class: "uag-shared" }));
      const y = height / 2;
      svg.append(shape("path", { d: `M${x - 4} ${y}L${x} ${y - 4}L${x + 4} ${y}L${x} ${y + 4}Z`, class: "uag-shared-mark" }));
    }
    const middle = (token) => (plan.at.get(token.start) + plan.at.get(token.end)) / 2 - left;
    for (const [i, j] of links) {
      const a = middle(upper[i]), b = middle(lower[j]);
      const d = `M${a} 0C${a} ${height / 2} ${b} ${height / 2} ${b} ${height}`;
      const line = shape("path", { d, class: "uag-link" });
      line.dataset.group = upper[i].group;
      if (!upper[i].alone) line.classList.add("is-many");
      svg.append(line);
    }
    return svg;
  }

  // Marks the chosen token of a stage and those of its group, which cover the same bytes; none for null.
  function choose(stage, token, element) {
    for (const other of stage.querySelectorAll(".is-partner, .is-chosen")) other.classList.remove("is-partner", "is-chosen");
    if (!token) return;
    element.classList.add("is-chosen");
    if (token.group < 0) return;
    for (const other of stage.querySelectorAll(`[data-group="${Number(token.group)}"]`))
      if (other !== element) other.classList.add("is-partner");
  }

  // Says what is known of a token (pairs of name and value) to assistive technology, and in the
  // line `detail` while it is pointed at or has the focus.
  function explain(element, token, known, stage, detail) {
    element.setAttribute("aria-label", known.map(([name, value]) => `${name} ${value}`.trim()).join(", "));
    const tell = () => {
      detail.replaceChildren();
      for (const [name, value] of known) {
        const item = node("span", "uag-fact");
        item.append(node("span", "uag-dim", name), node("b", "", value));
        detail.append(item);
      }
      choose(stage, token, element);
    };
    element.addEventListener("mousemove", () => {
      if (pointer.moved && !element.classList.contains("is-chosen")) tell();
    });
    element.addEventListener("focus", tell);
    element.addEventListener("mouseleave", () => {
      if (element.classList.contains("is-chosen") && element !== document.activeElement) choose(stage, null);
    });
    element.addEventListener("blur", () => choose(stage, null));
  }

  return { bytesOf, runs, readable, layout, fontsOf, node, shape, box, connectors, explain, hex };
})();
