/** Maps the configuration to the settings of the service client; the doctor needs only these. */
import type { UpstreamSettings } from '../../upstream/upstream.ts';
import type { Config } from './config.ts';

export function upstreamSettings({ upstream }: Config): UpstreamSettings {
  const { budget_per_s: budget, initial_rate_per_s: initial } = upstream;
  return {
    readTimeoutMs: upstream.read_timeout_ms,
    writeTimeoutMs: upstream.write_timeout_ms,
    connectTimeoutMs: upstream.connect_timeout_ms,
    bodyBytesMax: upstream.body_bytes_max,
    budgetPerS: budget === 'auto' ? null : budget,
    initialRatePerS: budget === 'auto' ? initial : Math.min(initial, budget),
    concurrencyMax: upstream.poll_concurrency_max,
    steadyShare: upstream.steady_share,
    waitingMax: upstream.poll_queue_max,
    waitMs: upstream.poll_queue_timeout_ms,
    forwardsMax: upstream.app_concurrency_max,
  };
}
