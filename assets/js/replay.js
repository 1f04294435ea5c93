// The Replay view: plays the recorded time lines that uag_core/ui/replay_json.py writes, side by
// side on one clock. Nothing plays before it is asked to. Text is only ever set as text.
window.uagReplay = window.uagReplay || (() => {
  const SPEEDS = [0.25, 0.5, 1, 2, 4];
  const SCRUB_STEPS = 1000;
  let views = 0;

  function node(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }
  const seconds = (t) => `${t.toFixed(2)} s`;
  const count = (n) => `${n.toLocaleString("en")} token${n === 1 ? "" : "s"}`;

  // One engine: its text so far, the tokens that came last, its counts.
  class Lane {
    constructor(data) {
      Object.assign(this, data);
      this.full = "";
      this.offsets = data.frames.map((frame) => (this.full += frame[2]).length);
      this.at = -1;
      this.box = node("section", "uag-lane");
      this.box.setAttribute("aria-label", data.name);
      const head = node("header");
      this.facts = node("p", "uag-sub");
      head.append(node("h3", "", data.name), this.facts);
      this.answer = node("div", "uag-lane-text");
      this.answer.tabIndex = 0;
      this.answer.setAttribute("role", "region");
      this.answer.setAttribute("aria-label", `${data.name}: text so far`);
      this.old = document.createTextNode("");
      this.fresh = node("span", "uag-fresh");
      this.answer.append(this.old, this.fresh);
      this.bar = node("progress");
      this.bar.max = Math.max(1, data.tokens);
      this.bar.setAttribute("aria-hidden", "true");
      this.box.append(head, this.bar, this.answer);
    }

    // How many frames have been reached at time t.
    reached(t) {
      let low = 0, high = this.frames.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.frames[middle][0] <= t) low = middle + 1; else high = middle;
      }
      return low;
    }

    tokensAt(t) {
      const at = this.reached(t);
      return at ? this.frames[at - 1][1] : 0;
    }

    show(t) {
      const at = this.reached(t);
      const done = t >= this.end;
      const tokens = at ? this.frames[at - 1][1] : 0;
      const spent = Math.min(t, this.end);
      const rate = tokens && spent > 0 ? `${(tokens / spent).toFixed(1)} tokens/s` : "–";
      const state = done ? `finished after ${seconds(this.end)}` : seconds(spent);
      this.facts.textContent = `${count(tokens)} · ${rate} · ${state}`;
      this.box.dataset.state = done ? "done" : at ? "running" : "waiting";
      if (at === this.at) return;
      this.at = at;
      this.bar.value = tokens;
      const follow = this.answer.scrollHeight - this.answer.scrollTop - this.answer.clientHeight < 40;
      const before = at > 1 && !done ? this.offsets[at - 2] : done ? this.full.length : 0;
      this.old.data = this.full.slice(0, before);
      this.fresh.textContent = at ? this.full.slice(before, this.offsets[at - 1]) : "";
      if (follow) this.answer.scrollTop = this.answer.scrollHeight;
    }
  }

  class View {
    constructor(root) {
      this.root = root;
      this.name = `uag-replay-${++views}`;
      root.classList.add("uag-replay");
      root.addEventListener("keydown", (event) => this.key(event));
    }

    draw(value) {
      if (value === this.value) return;
      this.pause(false);
      this.value = value;
      this.root.replaceChildren();
      this.lanes = value ? JSON.parse(value).lanes.map((lane) => new Lane(lane)) : [];
      if (!value) return;
      if (!this.lanes.length) {
        this.root.append(node("p", "uag-note", "No time line was recorded."));
        return;
      }
      this.t = 0;
      this.speed = 1;
      this.build();
      this.seek(0);
    }

    build() {
      const bar = node("div", "uag-replay-bar");
      this.button = node("button", "uag-play", "Play");
      const restart = node("button", "", "Restart");
      for (const button of [this.button, restart]) button.type = "button";
      this.button.addEventListener("click", () => this.toggle());
      restart.addEventListener("click", () => this.restart());
      this.scrubber = node("input", "uag-scrubber");
      Object.assign(this.scrubber, { type: "range", min: 0, max: SCRUB_STEPS, step: 1, value: 0 });
      this.scrubber.setAttribute("aria-label", "Time");
      this.scrubber.addEventListener("input", () => {
        this.pause(false);
        this.seek((this.scrubber.value / SCRUB_STEPS) * this.end());
      });
      this.clock = node("output", "uag-replay-clock");
      this.clock.setAttribute("aria-live", "off");
      bar.append(this.button, restart, this.scrubber, this.clock, this.speeds());
      this.ahead = node("p", "uag-ahead");
      this.live = node("p", "uag-hidden");
      this.live.setAttribute("aria-live", "polite");
      this.track = node("div", "uag-lanes");
      this.root.append(bar, this.choice(), this.ahead, this.live, this.track);
      this.place();
    }

    speeds() {
      const label = node("label", "", "Speed ");
      const select = node("select");
      for (const speed of SPEEDS) {
        const option = node("option", "", `${speed}×`);
        option.value = String(speed);
        option.selected = speed === 1;
        select.append(option);
      }
      select.addEventListener("change", () => { this.speed = Number(select.value); });
      label.append(select);
      return label;
    }

    choice() {
      const set = node("fieldset", "uag-replay-choice");
      set.append(node("legend", "", "Engines"));
      for (const lane of this.lanes) {
        const label = node("label");
        const box = node("input");
        box.type = "checkbox";
        box.checked = lane.shown;
        box.addEventListener("change", () => {
          lane.shown = box.checked;
          this.place();
          this.seek(Math.min(this.t, this.end()));
        });
        label.append(box, ` ${lane.name}`);
        set.append(label);
      }
      return set;
    }

    place() {
      this.track.replaceChildren(...this.playing().map((lane) => lane.box));
    }

    playing() { return this.lanes.filter((lane) => lane.shown); }

    end() { return Math.max(0, ...this.playing().map((lane) => lane.end)); }

    seek(t) {
      this.t = t;
      for (const lane of this.playing()) lane.show(t);
      const end = this.end();
      this.scrubber.value = String(end ? Math.round((t / end) * SCRUB_STEPS) : 0);
      this.scrubber.setAttribute("aria-valuetext", `${seconds(t)} of ${seconds(end)}`);
      this.clock.textContent = `${seconds(t)} / ${seconds(end)}`;
      this.ahead.textContent = this.leader();
    }

    // Who is ahead: by tokens while both write, by time once one has finished.
    leader() {
      const lanes = this.playing();
      if (!this.t) return "Press Play to see the race as it was recorded.";
      const done = lanes.filter((lane) => lane.end <= this.t).sort((a, b) => a.end - b.end);
      if (done.length === lanes.length && lanes.length > 1) {
        const [first, second] = done;
        const gap = second.end - first.end;
        return gap < 0.005 ? "A dead heat." : `${first.name} finished first, ${seconds(gap)} before ${second.name}.`;
      }
      if (done.length) {
        const left = lanes.filter((lane) => lane.end > this.t).map((lane) => `${lane.name} has ${count(lane.tokens - lane.tokensAt(this.t))} to go`);
        return [`${done[0].name} finished after ${seconds(done[0].end)}`, ...left].join("; ") + ".";
      }
      const standing = lanes.map((lane) => [lane.tokensAt(this.t), lane.name]).sort((a, b) => b[0] - a[0]);
      if (standing.length < 2) return "";
      const lead = standing[0][0] - standing[1][0];
      return lead ? `${standing[0][1]} is ${count(lead)} ahead of ${standing[1][1]}.` : "Level.";
    }

    toggle() { if (this.frame) this.pause(true); else this.play(); }

    play() {
      if (!this.playing().length) return;
      if (this.t >= this.end()) this.seek(0);
      this.button.textContent = "Pause";
      this.say("Playing.");
      let last = performance.now();
      const step = (now) => {
        if (!this.root.isConnected) { this.frame = 0; return; }
        // A page that was hidden goes on where it stood.
        const passed = Math.min(0.25, Math.max(0, (now - last) / 1000));
        last = now;
        this.seek(Math.min(this.end(), this.t + passed * this.speed));
        if (this.t >= this.end()) { this.pause(false); this.say(this.leader()); return; }
        this.frame = requestAnimationFrame(step);
      };
      this.frame = requestAnimationFrame(step);
    }

    pause(tell) {
      if (this.frame) cancelAnimationFrame(this.frame);
      this.frame = 0;
      if (this.button) this.button.textContent = "Play";
      if (tell) this.say(`Paused. ${this.leader()}`);
    }

    restart() {
      const playing = Boolean(this.frame);
      this.pause(false);
      this.seek(0);
      if (playing) this.play();
    }

    say(message) { this.live.textContent = message; }

    key(event) {
      if (!this.lanes || !this.lanes.length || event.ctrlKey || event.metaKey || event.altKey) return;
      const typed = event.key.toLowerCase();
      const native = event.target.closest("button, select, input");
      if (typed === "k" || (typed === " " && !native)) this.toggle();
      else if (typed === "home" && !native) this.restart();
      else return;
      event.preventDefault();
    }
  }

  const drawn = new WeakMap();
  return (root, value) => {
    if (!drawn.has(root)) drawn.set(root, new View(root));
    drawn.get(root).draw(value);
  };
})();
