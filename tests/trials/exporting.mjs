// As exporting.py, in Node: node exporting.mjs json|proto COUNT, run where the packages are installed.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(process.cwd() + "/");
const { BasicTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-base");
const [kind, count] = process.argv.slice(2);
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${kind === "json" ? "http" : "proto"}`);

process.on("unhandledRejection", console.error);
let ended = 0;
const counter = { onStart() {}, onEnd() { ended++; }, async forceFlush() {}, async shutdown() {} };
const timeoutMillis = Number(process.env.OTEL_EXPORTER_OTLP_TIMEOUT_MS ?? 10000);
const batches = new BatchSpanProcessor(new OTLPTraceExporter({ timeoutMillis }), {
  scheduledDelayMillis: 200, maxExportBatchSize: 100, exportTimeoutMillis: 120000,
});
const provider = new BasicTracerProvider({ spanProcessors: [counter, batches] });
const tracer = provider.getTracer("trial");
while (ended < Number(count)) {
  const span = tracer.startSpan("execute_tool t", { attributes: { "gen_ai.operation.name": "execute_tool" } });
  await sleep(40);
  span.end();
}
await provider.forceFlush().catch(console.error);
await provider.shutdown().catch(console.error);
console.log(ended);
