// Compares a pair from JavaScript: node docs/clients/compare.mjs http://localhost:7860/
// Needs the package @gradio/client (npm install @gradio/client).
import { Client } from "@gradio/client";

const url = process.argv[2] ?? "http://localhost:7860/";
const settings = { prompt: "Name three colours of the sea.", max_new_tokens: 32 };
if (process.argv[3]) settings.target = process.argv[3];

const app = await Client.connect(url, { events: ["data", "status"] });
const job = app.submit("/compare", settings); // job.cancel() stops the run
let last;
for await (const message of job) {
  if (message.type === "data") {
    last = message.data[0];
    if (last.status === "running") console.error(`${last.phase}: ${last.num_new_tokens} tokens`);
  } else if (message.type === "status" && message.stage === "error") {
    console.error(message.message);
    process.exit(1);
  }
}
console.log(last.result.assisted.text);
console.log("identical:", last.result.identical, " decode speedup:", last.result.decode_speedup);
process.exit(0);
