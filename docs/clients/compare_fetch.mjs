// The same without any package, for a browser or node: node docs/clients/compare_fetch.mjs URL
// Two requests: one that queues the run, and one whose answer is a stream of events.

export async function* compare(url, settings) {
  const base = url.replace(/\/$/, "") + "/gradio_api/call";
  const queued = await fetch(`${base}/v2/compare`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(settings),
  });
  if (!queued.ok) throw new Error(`${queued.status} ${await queued.text()}`);
  const { event_id } = await queued.json();
  const stream = await fetch(`${base}/compare/${event_id}`);
  let text = "";
  for await (const chunk of stream.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const [, event, data] = block.match(/^event: (\w+)\ndata: (.*)$/s) ?? [];
      if (event === "error") throw new Error(JSON.parse(data)?.error ?? "The run failed.");
      if (event === "generating" || event === "complete") {
        const item = JSON.parse(data)?.[0];
        if (item) yield item;
      }
    }
  }
}

if (typeof process !== "undefined" && process.argv[1]?.endsWith("compare_fetch.mjs")) {
  const settings = { prompt: "Name three colours of the sea.", max_new_tokens: 32 };
  if (process.argv[3]) settings.target = process.argv[3];
  let last;
  try {
    for await (last of compare(process.argv[2] ?? "http://localhost:7860", settings)) {
      if (last.status === "running") console.error(`${last.phase}: ${last.num_new_tokens} tokens`);
    }
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
  console.log(last.result.assisted.text);
  console.log("identical:", last.result.identical, " decode speedup:", last.result.decode_speedup);
}
