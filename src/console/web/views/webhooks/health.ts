/** What the API says of an endpoint, and its health in words. */
import { Pill, type Tone } from '../../kit/elements.ts';
import { countText, isPast, relativeText, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';

export interface Endpoint {
  id: string;
  url: string;
  description: string | null;
  event_types: string[];
  ordering: string;
  signing: string[];
  rate_per_s: number | null;
  header_names: string[];
  public_key: string | null;
  keys: { scheme: string; from: string; until: string | null }[];
  state: string;
  state_reason: string | null;
  state_at: string;
  created_by: string;
  created_at: string;
  health: {
    consecutive_failures: number;
    failing_since: string | null;
    paused_until: string | null;
    last_success_at: string | null;
  };
}

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
