// The Tokenize tab: two rows of tokens over one text, broken into lines where both have a boundary.
// Draws what uag_core/ui/tokenize_json.py writes; needs axis.js.
window.uagTokenize = window.uagTokenize || (() => {
  const { node, readable, bytesOf, hex } = window.uagAxis;
  const quoted = (token) => (token.control ? token.label : `“${readable(token.label)}”`);

  function facts(token) {
    const bytes = bytesOf(token.label).map((b) => hex(b, 2)).join(" ");
    return [
      [`${token.whose} token ${token.index + 1}`, quoted(token)],
      ["id", String(token.id)],
      [token.control ? "stands for what is unknown" : "bytes", token.control ? "" : bytes || "none"],
      ["at byte", String(Math.floor(token.start))],
    ];
  }

  class View {
    constructor(root) {
      this.root = root;
      root.classList.add("uag-alignment", "uag-two");
      root.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.data && root.clientWidth && root.clientWidth !== this.width && this.show()).observe(root);
    }

    draw(value) {
      if (value === this.value) return;
      this.value = value;
      this.data = value ? JSON.parse(value) : null;
      if (!this.data) return this.root.replaceChildren();
      const { names } = this.data;
      const read = (rows, whose) => rows.map(([id, label, start, end, group, control], index) =>
        ({ id, label, start, end, group, control: Boolean(control), index, whose }));
      this.upper = read(this.data.upper, "Assistant");
      this.lower = read(this.data.lower, "Target");
      const sizes = new Map();
      for (const token of [...this.upper, ...this.lower]) sizes.set(token.group, (sizes.get(token.group) || 0) + 1);
      for (const token of this.upper) token.alone = sizes.get(token.group) <= 2;
      this.stage = node("div", "uag-stage");
      this.detail = node("p", "uag-detail");
      const legend = node("ul", "uag-legend");
      const item = (mark, text) => {
        const li = node("li");
        li.append(mark, node("span", "", text));
        legend.append(li);
      };
      item(node("span", "uag-sample-mark", "◆"), "boundary that both share");
      item(node("span", "uag-sample-white", "· ⏎ →"), "space, newline, tab");
      this.names = names;
      this.root.replaceChildren(this.stage, this.detail, legend);
      if (this.data.note) this.root.append(node("p", "uag-note", this.data.note));
      this.show();
    }

    // Lines of places [from, to], each as wide as fits and broken at a boundary that both share.
    lines(plan, room) {
      const out = [], shared = this.data.shared;
      let from = shared.length ? shared[0] : 0, last = from;
      for (const place of shared) {
        if (place > last && last > from && plan.at.get(place) - plan.at.get(from) > room) {
          out.push([from, last]);
          from = last;
        }
        last = place;
      }
      const end = plan.places[plan.places.length - 1];
      if (end > from) out.push([from, end]);
      return out;
    }

    show() {
      const { layout, fontsOf, box, connectors } = window.uagAxis;
      this.width = this.root.clientWidth;
      if (!this.width || !(this.upper.length || this.lower.length)) {
        if (this.width) this.stage.replaceChildren(node("p", "uag-dim", "Type something above."));
        return;
      }
      const plan = layout([this.upper, this.lower], fontsOf(this.stage));
      const frame = node("div", "uag-scroll");
      let first = true;
      for (const [from, to] of this.lines(plan, Math.max(160, this.width - 60))) {
        const left = plan.at.get(from), width = plan.at.get(to) - left;
        const line = node("div", "uag-axis uag-line");
        line.style.width = `${width}px`;
        const inside = (token) => token.start < to && token.end > from;
        const row = (tokens, name) => {
          const element = node("div", "uag-row");
          element.setAttribute("role", "group");
          element.setAttribute("aria-label", name);
          for (const token of tokens.filter(inside)) {
            const shown = this.token(token, box(token, plan, left));
            shown.tabIndex = first ? 0 : -1; // one stop for all; arrow keys go on from there
            first = false;
            element.append(shown);
          }
          return element;
        };
        const links = this.data.links.filter(([i]) => inside(this.upper[i]));
        const shared = this.data.shared.filter((place) => place >= from && place <= to);
        line.append(
          row(this.upper, `Assistant, ${this.names[0]}`),
          connectors(this.upper, this.lower, links, shared, plan, left, width, 22),
          row(this.lower, `Target, ${this.names[1]}`),
        );
        frame.append(line);
      }
      this.stage.replaceChildren(frame);
      this.detail.replaceChildren(node("span", "uag-dim", "The assistant's tokens are above, the target's below. Point at one for its id and bytes."));
    }

    token(token, element) {
      element.dataset.group = token.group;
      window.uagAxis.explain(element, token, facts(token), this.stage, this.detail);
      return element;
    }

    // Left and right along a row, up and down to the partner.
    key(event) {
      const token = event.target.closest(".uag-token");
      if (!token || event.altKey || event.ctrlKey || event.metaKey) return;
      const row = token.parentElement;
      let next = null;
      if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
        const all = Array.from(this.stage.querySelectorAll(`.uag-row[aria-label^="${row.getAttribute("aria-label").split(",")[0]}"] .uag-token`));
        next = all[all.indexOf(token) + (event.key === "ArrowRight" ? 1 : -1)];
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        next = Array.from(this.stage.querySelectorAll(`.uag-token[data-group="${Number(token.dataset.group)}"]`)).find((other) => other.parentElement !== row);
      } else return;
      event.preventDefault();
      if (!next) return;
      token.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
  }

  return (root, value) => {
    if (!root.uagView) root.uagView = new View(root);
    root.uagView.draw(value);
  };
})();
