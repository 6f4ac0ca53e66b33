/**
 * OpenTelemetry, started by its standard environment variables if its SDK is installed beside the
 * daemon: `npm install @opentelemetry/sdk-node`. Each process has its own.
 */
import { withDeadline } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/telemetry/log.ts';

const FLUSH_MS = 5_000;
/** Any of these asks for traces. */
const ASKING = [
  'OTEL_TRACES_EXPORTER',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
];

/** Answers what sends the last spans, within seconds. */
export async function startTracing(log: Log): Promise<() => Promise<void>> {
  const { env } = process;
  if (env.OTEL_SDK_DISABLED === 'true' || !ASKING.some((name) => env[name])) return async () => {};
  let sdk: typeof import('@opentelemetry/sdk-node');
  try {
    sdk = await import('@opentelemetry/sdk-node');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    log.warn('OTEL_* is set, but @opentelemetry/sdk-node is not installed: no traces are sent');
    return async () => {};
  }
  // Metrics are at /metrics and the log on standard error.
  env.OTEL_METRICS_EXPORTER ??= 'none';
  env.OTEL_LOGS_EXPORTER ??= 'none';
  const running = new sdk.NodeSDK({ serviceName: env.OTEL_SERVICE_NAME ?? 'tallyhook' });
  running.start();
  return async () => {
    const late = () => log.warn('the last spans were not sent in time');
    await withDeadline(running.shutdown(), FLUSH_MS, late).catch((err: unknown) => {
      log.warn({ err }, 'the last spans were not sent');
    });
  };
}
