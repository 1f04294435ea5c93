// The Alignment view: the whole answer by origin, and one round at a time on its axis.
// Draws what uag_core/ui/alignment_json.py writes; needs axis.js and rounds.js. Asks the server for
// nothing.
window.uagAlignment = window.uagAlignment || (() => {
  const { node, readable } = window.uagAxis;
  const { FATES, FATE_MARKS, ORIGIN_MARKS, ORIGIN_HELP, parse, sentence, facts, introduction, table } = window.uagRounds;
  const STEP_MS = 1100;
  const MOST_STRETCHES = 6000;
  let views = 0;

  class View {
    constructor(root) {
      this.root = root;
      this.name = `uag-view-${++views}`;
      root.classList.add("uag-alignment");
      root.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.stale && root.clientWidth && this.show(this.index)).observe(root);
    }

    draw(value) {
      this.stop();
      if (value === this.value) return;
      this.value = value;
      this.data = null;
      this.root.replaceChildren();
      if (!value) return;
      this.data = parse(value);
      if (!this.data.rounds.length) {
        this.root.append(node("p", "uag-note", this.data.message || "No rounds were recorded: the run ended before its first one."));
        this.data = null;
        return;
      }
      this.build();
      const first = this.data.rounds.findIndex((round) => round.candidates.length);
      this.show(Math.max(0, first));
    }

    build() {
      const answer = node("section", "uag-origin");
      answer.append(node("h3", "", "The answer by origin"), this.legend());
      this.answer = node("div", "uag-origin-text");
      this.answer.setAttribute("role", "group");
      this.answer.setAttribute("aria-label", "The answer; each stretch opens its round. Arrow keys move, Enter opens.");
      this.fillAnswer();
      answer.append(this.answer, this.help());

      this.stage = node("div", "uag-stage");
      this.stage.tabIndex = 0;
      this.stage.setAttribute("role", "group");
      this.stage.setAttribute("aria-label", "One round. Left and right arrow keys step through the rounds.");
      this.detail = node("p", "uag-detail");
      this.head = node("h3", "");
      this.say = node("p", "uag-say");
      this.say.setAttribute("aria-live", "polite");
      this.context = node("p", "uag-context");
      const intro = node("p", "uag-note", introduction(this.data.rounds));
      this.table = node("details", "uag-round-table");
      this.table.append(node("summary", "", "This round as a table"), node("div", "uag-table"));
      this.table.addEventListener("toggle", () => this.fillTable());
      const round = node("section", "uag-round");
      round.append(intro, this.head, this.controls(), this.say, this.context, this.stage, this.detail, this.key_(), this.table);
      this.root.append(round, answer);
    }

    legend() {
      const list = node("ul", "uag-legend");
      const totals = new Map();
      for (const round of this.data.rounds)
        for (const token of round.tokens) totals.set(token.origin, (totals.get(token.origin) || 0) + 1);
      for (const origin of this.data.origins) {
        const item = node("li");
        const swatch = node("span", "uag-swatch", ORIGIN_MARKS[origin]);
        swatch.dataset.origin = origin;
        swatch.setAttribute("aria-hidden", "true");
        item.append(swatch, node("span", "", `${origin} ${(totals.get(origin) || 0).toLocaleString("en")}`));
        item.title = ORIGIN_HELP[origin];
        list.append(item);
      }
      return list;
    }

    help() {
      const help = node("details", "uag-more"), list = node("dl", "uag-origin-help");
      for (const origin of this.data.origins) list.append(node("dt", "", origin), node("dd", "", ORIGIN_HELP[origin]));
      help.append(node("summary", "", "What the origins mean"), list);
      return help;
    }

    key_() {
      const list = node("ul", "uag-legend uag-key-list");
      const add = (build, text) => {
        const item = node("li");
        item.append(build, node("span", "", text));
        list.append(item);
      };
      for (const fate of FATES) {
        const sample = node("span", "uag-sample", FATE_MARKS[fate]);
        sample.dataset.fate = fate;
        add(sample, fate);
      }
      const mark = node("span", "uag-sample-mark", "◆");
      add(mark, "boundary that both share");
      add(node("span", "uag-sample-white", "· ⏎ →"), "space, newline, tab");
      return list;
    }

    controls() {
      const bar = node("div", "uag-steps");
      const button = (text, label, act) => {
        const element = node("button", "uag-step", text);
        element.type = "button";
        element.setAttribute("aria-label", label);
        element.addEventListener("click", act);
        return element;
      };
      this.back = button("‹", "Previous round", () => this.go(this.index - 1));
      this.forth = button("›", "Next round", () => this.go(this.index + 1));
      this.playing = button("Play", "Play the rounds", () => (this.timer ? this.stop() : this.play()));
      this.playing.classList.add("uag-play");
      this.slider = node("input", "uag-slider");
      this.slider.type = "range";
      this.slider.min = 0;
      this.slider.max = this.data.rounds.length - 1;
      this.slider.step = 1;
      this.slider.setAttribute("aria-label", "Round");
      this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
      bar.append(this.back, this.slider, this.forth, this.playing);
      return bar;
    }

    fillAnswer() {
      const parts = [];
      this.data.rounds.forEach((round, index) => {
        let last = null;
        for (const token of round.tokens) {
          if (!last || last.origin !== token.origin) parts.push((last = { index, round, origin: token.origin, text: "", shown: "", size: 0 }));
          last.text += token.text;
          last.shown += token.control ? token.label : readable(token.label);
          last.size += 1;
          last.control = token.control && !token.text ? token.label : "";
        }
      });
      this.stretches = [];
      const all = document.createDocumentFragment();
      parts.forEach((part) => {
        if (this.stretches.length >= MOST_STRETCHES) { // the text goes on, without buttons
          all.append(document.createTextNode(part.text));
          return;
        }
        const element = node("span", "uag-stretch");
        element.dataset.origin = part.origin;
        element.dataset.round = part.index;
        if (part.control) element.dataset.control = part.control;
        element.setAttribute("role", "button");
        element.setAttribute("aria-label", `Round ${part.round.number}, ${part.origin}: ${part.shown}`);
        element.tabIndex = this.stretches.length ? -1 : 0;
        part.text.split("\n").forEach((line, i) => {
          if (i) element.append(node("span", "uag-newline", "\n"));
          if (line) element.append(document.createTextNode(line));
        });
        this.stretches.push(element);
        all.append(element);
      });
      this.answer.append(all);
      this.answer.addEventListener("click", (event) => this.open(event));
    }

    open(event) {
      const stretch = event.target.closest(".uag-stretch");
      if (!stretch) return;
      this.roam(stretch);
      this.go(Number(stretch.dataset.round));
    }

    roam(stretch) {
      for (const other of this.answer.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
      stretch.tabIndex = 0;
    }

    key(event) {
      if (!this.data || event.altKey || event.ctrlKey || event.metaKey) return;
      const stretch = event.target.closest(".uag-stretch");
      if (stretch) {
        if (event.key === "Enter" || event.key === " ") this.open(event);
        else {
          const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
          const next = step && this.stretches[this.stretches.indexOf(stretch) + step];
          if (!next) return;
          this.roam(next);
          next.focus();
        }
      } else if (event.target === this.slider) return; // it has its own keys
      else if (event.key === "ArrowLeft") this.go(this.index - 1);
      else if (event.key === "ArrowRight") this.go(this.index + 1);
      else if (event.key === "Home") this.go(0);
      else if (event.key === "End") this.go(this.data.rounds.length - 1);
      else return;
      event.preventDefault();
    }

    go(index) {
      this.stop();
      this.show(index);
    }

    play() {
      if (this.index >= this.data.rounds.length - 1) this.show(0);
      this.timer = setInterval(() => {
        if (!this.root.isConnected || this.index >= this.data.rounds.length - 1) this.stop();
        else this.show(this.index + 1);
      }, STEP_MS);
      this.playing.textContent = "Pause";
      this.playing.setAttribute("aria-label", "Pause");
      this.say.setAttribute("aria-live", "off");
    }

    stop() {
      if (!this.timer) return;
      clearInterval(this.timer);
      this.timer = null;
      this.playing.textContent = "Play";
      this.playing.setAttribute("aria-label", "Play the rounds");
      this.say.setAttribute("aria-live", "polite");
    }

    show(index) {
      const rounds = this.data && this.data.rounds;
      if (!rounds) return;
      index = Math.min(Math.max(index, 0), rounds.length - 1);
      const inside = this.stage.contains(document.activeElement) && document.activeElement !== this.stage;
      this.index = index;
      const round = rounds[index];
      this.head.textContent = `Round ${round.number} of ${rounds[rounds.length - 1].number}`;
      this.slider.value = index;
      this.slider.setAttribute("aria-valuetext", `Round ${round.number}`);
      this.back.disabled = index === 0;
      this.forth.disabled = index === rounds.length - 1;
      this.say.textContent = sentence(round);
      this.fillContext(index);
      this.fillStage(round);
      this.fillTable();
      this.markAnswer(index);
      if (inside) this.stage.focus({ preventScroll: true });
    }

    fillContext(index) {
      let before = "", first = index;
      while (first > 0 && before.length < 80)
        before = this.data.rounds[--first].tokens.map((token) => token.text).join("") + before;
      const chars = Array.from(before), tail = chars.slice(-60).join("");
      const whole = first === 0 && chars.length <= 60;
      this.context.replaceChildren();
      this.context.append(node("span", "uag-dim", "Written before: "));
      if (!tail) this.context.append(node("span", "uag-dim", "nothing yet"));
      else this.context.append(node("span", "uag-dim", whole ? "" : "… "), node("bdi", "", readable(tail)));
    }

    fillStage(round) {
      const { layout, fontsOf, box, connectors } = window.uagAxis;
      this.stale = this.root.clientWidth === 0; // a hidden tab has no fonts to measure with
      const rows = [round.draft, round.candidates, round.tokens];
      const plan = layout(rows, fontsOf(this.stage));
      const names = node("div", "uag-names"), inner = node("div", "uag-axis");
      const width = Math.max(plan.width, 1);
      inner.style.width = `${width}px`;
      const row = (tokens, name, whose, className) => {
        const title = node("div", `uag-row-name ${className}`, name);
        if (whose) title.append(node("span", "uag-dim", whose));
        title.setAttribute("aria-hidden", "true");
        names.append(title);
        const line = node("div", `uag-row ${className}`);
        line.setAttribute("role", "group");
        line.setAttribute("aria-label", whose ? `${name}, ${whose}` : name);
        for (const token of tokens) line.append(this.token(token, round, box(token, plan, 0)));
        inner.append(line);
      };
      if (round.draft.length) {
        row(round.draft, "Draft", "assistant's tokens", "is-draft");
        inner.append(connectors(round.draft, round.candidates, round.links, round.shared, plan, 0, width, 32));
      }
      if (round.candidates.length)
        row(round.candidates, "Candidates", round.draft.length ? "target's tokens" : round.source, "is-candidates");
      if (round.tokens.length) row(round.tokens, "Committed", "", "is-committed");
      const frame = node("div", "uag-scroll");
      frame.append(inner);
      this.stage.replaceChildren(names, frame);
      this.detail.replaceChildren(node("span", "uag-dim", "Point at a token, or reach it with Tab, for its id, bytes and partners."));
    }

    token(token, round, element) {
      element.dataset.group = token.group;
      if (token.fate) element.dataset.fate = token.fate;
      if (token.origin) element.dataset.origin = token.origin;
      const mark = token.fate ? FATE_MARKS[token.fate] : token.origin ? ORIGIN_MARKS[token.origin] : "";
      if (mark) {
        const badge = node("span", "uag-badge", mark);
        badge.setAttribute("aria-hidden", "true");
        element.append(badge);
      }
      window.uagAxis.explain(element, token, facts(token, round), this.stage, this.detail);
      return element;
    }

    fillTable() {
      if (!this.table.open || !this.data) return;
      this.table.querySelector(".uag-table").replaceChildren(table(this.data.rounds[this.index]));
    }

    markAnswer(index) {
      let first = null;
      for (const old of this.answer.querySelectorAll(".is-current")) old.classList.remove("is-current");
      for (const now of this.answer.querySelectorAll(`[data-round="${index}"]`)) {
        now.classList.add("is-current");
        first = first || now;
      }
      if (!first) return;
      const frame = this.answer.getBoundingClientRect(), place = first.getBoundingClientRect();
      if (place.top < frame.top || place.bottom > frame.bottom) // only inside the answer, never the page
        this.answer.scrollTop += place.top - frame.top - frame.height / 3;
    }
  }

  return (root, value) => {
    if (!root.uagView) root.uagView = new View(root);
    root.uagView.draw(value);
  };
})();
