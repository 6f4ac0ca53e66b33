/** `tallyhook replay`: sends the events of a time to an endpoint again, through the daemon. */
import { type Instant, isoText, parseInstant, pause, systemClock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { parseJson } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import type { replay } from '../../resources/delivery/delivery.ts';
import type { Shown } from '../../resources/resource.ts';
import { callDaemon, type Remote } from '../api/remote.ts';

type Replay = Shown<typeof replay>;

interface Options extends Remote {
  since: string;
  until?: string;
  type?: string[];
  which: string;
  dryRun?: true;
  json?: true;
}

const POLL_MS = 500;
const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Waits until the replay has ended; exits with 1 when it was cancelled. */
export async function runReplay(endpoint: string, options: Options): Promise<number> {
  const { since, until, type: eventTypes = [], which, dryRun = false, json } = options;
  const now = systemClock.now();
  const body = {
    since: isoText(timeOf('--since', since, now)),
    ...(until === undefined ? {} : { until: isoText(timeOf('--until', until, now)) }),
    types: eventTypes,
    which,
    dry_run: dryRun,
  };
  const path = `/api/endpoints/${encodeURIComponent(endpoint)}/replay`;
  let text = await callDaemon(options, { method: 'POST', path, body });
  let run = parseJson(text) as Replay;
  if (dryRun) {
    const would = `${run.queued} deliveries of ${run.examined} events would be sent again`;
    printLine(json ? text : would);
    return 0;
  }
  if (!json) printLine(`${run.id} runs; it goes on when this command ends`);
  for (let shown = ''; run.state === 'running'; ) {
    await pause(POLL_MS);
    text = await callDaemon(options, { method: 'GET', path: `/api/replays/${run.id}` });
    run = parseJson(text) as Replay;
    const progress = `${run.queued} deliveries queued, events up to ${run.reached} examined`;
    if (!json && progress !== shown) printLine(progress);
    shown = progress;
  }
  printLine(json ? text : `${run.state}: ${run.queued} deliveries are sent again`);
  return run.state === 'done' ? 0 : 1;
}

/** An instant, or a duration before now such as 30m, 6h or 7d. */
function timeOf(option: string, text: string, now: Instant): Instant {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const at = count ? now - Number(count) * (UNITS[unit] ?? 0) : parseInstant(text);
  if (at !== undefined) return at;
  throw new Failure(
    'bad_setting',
    `${option} ${text}: expected RFC 3339, such as 2026-11-01T00:00:00Z, or 30m, 6h or 7d ago`,
  );
}
