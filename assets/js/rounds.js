// The rounds of a run as the Alignment view shows them: read from what uag_core/ui/alignment_json.py
// writes, and told in words and as a table. Needs axis.js; draws no tokens.
window.uagRounds = window.uagRounds || (() => {
  const { node, readable, bytesOf, hex } = window.uagAxis;
  const FATES = ["accepted", "rejected", "never reached"];
  const FATE_MARKS = { accepted: "✓", rejected: "✗", "never reached": "–" };
  const ORIGIN_MARKS = { prefill: "▸", accepted: "✓", bonus: "+", corrected: "↺", plain: "•" };
  const ORIGIN_HELP = {
    prefill: "the first token, read off the prompt",
    accepted: "drafted, and what the target would have written",
    bonus: "written by the target after all candidates were accepted",
    corrected: "written by the target instead of a candidate",
    plain: "written by the target in a round without candidates",
  };
  const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
  const quoted = (token) => (token.control ? token.label : `“${readable(token.label)}”`);

  function parse(value) {
    if (!value) return null;
    const data = JSON.parse(value);
    data.rounds = data.rounds.map((r) => {
      const draft = r.d.map(([id, label, start, end, group, confidence]) =>
        ({ row: "draft", id, label, start, end, group, confidence }));
      const candidates = r.c.map(([id, label, start, end, group, fate, control]) =>
        ({ row: "candidate", id, label, start, end, group, fate: FATES[fate], control: Boolean(control) }));
      const tokens = r.e.map(([id, label, start, end, origin, control, text], i) =>
        ({ row: "committed", id, label, start, end, origin: data.origins[origin], control: Boolean(control), text,
          group: candidates[i] ? candidates[i].group : -1 }));
      const sizes = new Map();
      for (const token of [...draft, ...candidates]) sizes.set(token.group, (sizes.get(token.group) || 0) + 1);
      for (const token of draft) token.alone = sizes.get(token.group) <= 2;
      [draft, candidates, tokens].forEach((row) => row.forEach((token, i) => { token.index = i; }));
      tokens.forEach((token, i) => { token.position = r.at + i; token.loose = token.origin === "corrected"; });
      candidates.forEach((token, i) => { token.position = r.at + i; });
      return { number: r.n, source: r.s, at: r.at, verified: r.v, drafted: r.p, draft, candidates, tokens, links: r.l, shared: r.b };
    });
    return data;
  }

  // One sentence that says what the drawing of a round shows.
  function sentence(round) {
    if (round.tokens.length && round.tokens[0].origin === "prefill")
      return `The target read the prompt and wrote the first token, ${quoted(round.tokens[0])}.`;
    if (!round.candidates.length) {
      const wrote = round.tokens.length ? `The target wrote ${quoted(round.tokens[0])} by itself.` : "Nothing was written.";
      const lost = round.drafted ? ` The ${count(round.drafted, "draft token")} gave no candidate.` : "";
      return `No candidates. ${wrote}${lost}`;
    }
    const from = round.draft.length
      ? `${count(round.draft.length, "draft token")} became ${count(round.candidates.length, "candidate")}.`
      : `${count(round.candidates.length, "candidate")} found in the text so far.`;
    if (!round.verified) return `${from} The run stopped before they were verified.`;
    const accepted = round.candidates.filter((c) => c.fate === "accepted").length;
    const rejected = round.candidates.some((c) => c.fate === "rejected") ? ", 1 rejected" : "";
    const skipped = round.candidates.filter((c) => c.fate === "never reached").length;
    const last = round.tokens[round.tokens.length - 1];
    let end = "";
    if (last && last.origin === "corrected")
      end = ` The target wrote ${quoted(last)} where the candidate was ${quoted(round.candidates[accepted] || last)}.`;
    else if (last && last.origin === "bonus") end = ` The target added ${quoted(last)}.`;
    else end = " The answer ended there.";
    const reached = skipped ? `, ${skipped} never reached` : "";
    return `${from} ${accepted} accepted${rejected}${reached}.${end}`;
  }

  // Everything about one token, for the line below the drawing and for screen readers.
  function facts(token, round) {
    const names = { draft: "Draft token", candidate: "Candidate", committed: "Committed token" };
    const bytes = bytesOf(token.label).map((b) => hex(b, 2)).join(" ");
    const out = [
      [`${names[token.row]} ${token.index + 1}`, quoted(token)],
      ["id", String(token.id)],
      [token.control ? "control token, no text" : "bytes", token.control ? "" : bytes || "none"],
      ["round", String(round.number)],
    ];
    if (token.position !== undefined) out.push(["position in the answer", String(token.position + 1)]);
    else out.push(["position in the draft", String(token.index + 1)]);
    if (token.confidence !== undefined && token.confidence !== null) out.push(["confidence", token.confidence.toFixed(3)]);
    if (token.fate) out.push(["fate", token.fate]);
    if (token.origin) out.push(["origin", token.origin]);
    return out;
  }

  // What happens in a round, for those who see one for the first time.
  function introduction(rounds) {
    const kept = "and the target keeps those that it would have written itself.";
    return rounds.some((round) => round.draft.length)
      ? `In each round the assistant drafts in its own tokens, the draft's text is cut into the target's tokens (candidates), ${kept}`
      : `In each round tokens that followed the same words before are proposed (candidates), ${kept}`;
  }

  // Every token of a round with all that is known about it.
  function table(round) {
    const drawn = node("table");
    drawn.append(node("caption", "", `Round ${round.number}`));
    const row = (parent, cells, tag) => {
      const line = node("tr");
      cells.forEach((cell, i) => {
        const element = node(i && tag === "td" ? "td" : "th", "", cell);
        element.scope = tag === "th" ? "col" : "row";
        if (i && tag === "td") element.removeAttribute("scope");
        line.append(element);
      });
      parent.append(line);
    };
    const head = node("thead"), body = node("tbody");
    row(head, ["Row", "#", "Token", "Id", "Bytes", "Fate or origin", "Confidence"], "th");
    for (const token of [...round.draft, ...round.candidates, ...round.tokens]) {
      const bytes = token.control ? "" : bytesOf(token.label).map((b) => hex(b, 2)).join(" ");
      const confidence = token.confidence === undefined || token.confidence === null ? "" : token.confidence.toFixed(3);
      row(body, [token.row, String(token.index + 1), quoted(token), String(token.id), bytes, token.fate || token.origin || "", confidence], "td");
    }
    drawn.append(head, body);
    return drawn;
  }

  return { FATES, FATE_MARKS, ORIGIN_MARKS, ORIGIN_HELP, parse, sentence, facts, introduction, table };
})();
