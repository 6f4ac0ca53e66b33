/** The health of an endpoint in words. */
import type { endpointDetail } from '../../../../resources/delivery/endpoint.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { Pill, type Tone } from '../../kit/elements.ts';
import { countText, isPast, relativeText, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';

export type Endpoint = Shown<typeof endpointDetail>;

const DISABLED: Record<string, [Tone, string]> = {
  requested: ['warn', 'disabled by a person'],
  failing: ['bad', 'disabled: it failed for days'],
  gone: ['bad', 'disabled: it answered 410 Gone'],
};

/** An endpoint is red while it fails or was disabled because of failures. */
export function healthOf({ state, state_reason: reason, health }: Endpoint): [Tone, string] {
  const { consecutive_failures: failures, paused_until: until, last_success_at: last } = health;
  if (state === 'disabled') return DISABLED[reason ?? ''] ?? ['warn', 'disabled'];
  const isPaused = until !== null && !isPast(until);
  const times = failures === 1 ? 'the last attempt failed' : `${countText(failures)} failures`;
  if (failures > 0) return ['bad', isPaused ? `${times}, next ${relativeText(until)}` : times];
  if (isPaused) return ['warn', `waits, next ${relativeText(until)}`];
  return last === null ? ['none', 'nothing delivered yet'] : ['good', 'healthy'];
}

export function HealthPill({ endpoint }: { endpoint: Endpoint }) {
  const [tone, text] = healthOf(endpoint);
  return html`<${Pill} tone=${tone}>${text}<//>`;
}

export function typesText(types: readonly string[]): string {
  return types.includes('*') ? 'all events' : types.map(wordsOf).join(', ');
}
