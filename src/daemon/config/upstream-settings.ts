/** Maps the configuration to the settings of the service client; the doctor needs only these. */
import type { UpstreamSettings } from '../../upstream/upstream.ts';
import type { Config } from './config.ts';

export function upstreamSettings({ upstream }: Config): UpstreamSettings {
  return {
    readTimeoutMs: upstream.read_timeout_ms,
    writeTimeoutMs: upstream.write_timeout_ms,
    connectTimeoutMs: upstream.connect_timeout_ms,
    bodyBytesMax: upstream.body_bytes_max,
    budgetPerS: upstream.budget_per_s,
    initialRatePerS: Math.min(upstream.initial_rate_per_s, upstream.budget_per_s),
    concurrencyMax: upstream.poll_concurrency_max,
    steadyShare: upstream.steady_share,
    waitingMax: upstream.poll_queue_max,
    waitMs: upstream.poll_queue_timeout_ms,
    forwardsMax: upstream.app_concurrency_max,
  };
}
